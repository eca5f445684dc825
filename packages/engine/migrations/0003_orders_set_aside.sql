-- An order that fails by its content is tried so many times, and then set aside until somebody says what becomes of it.
alter table orders add column failures int not null default 0;
alter table orders add column set_aside_at bigint;
drop index orders_due;
create index orders_due on orders (not_before, id) where set_aside_at is null;
create index orders_set_aside on orders (set_aside_at, id) where set_aside_at is not null;
