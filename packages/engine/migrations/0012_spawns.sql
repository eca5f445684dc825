-- Executors that spawners have started while a queue waited, each with why. `n` numbers those of a queue, so that of two spawners that
-- want the same one, one has it. One that is `open` may live; it is settled by evidence, or by what became of its session.
create table spawns (
  session text primary key,
  queue text not null,
  n int not null check (n >= 1),
  spawner text not null,
  kind text not null,
  reason text not null,
  state text not null default 'open' check (state in ('open', 'ended', 'failed')),
  asked_at bigint not null,
  start_by bigint not null,
  settled_at bigint,
  evidence text,
  check ((state = 'open') = (settled_at is null)),
  check (state = 'open' or evidence is not null)
);
create unique index spawns_of_queue on spawns (queue, n);
create index spawns_open on spawns (queue, session) where state = 'open';
create index spawns_newest on spawns (asked_at, session);
