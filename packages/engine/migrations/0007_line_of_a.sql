-- As 0005_line_of_owner.
drop index runs_line_a;
create index runs_line_a on runs (limit_a, resumed desc, rank, id) where limit_a is not null and status = 'waiting' and wait_on = 'slot';
