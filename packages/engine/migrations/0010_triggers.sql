-- What starts runs by what others send. `spec` is JSON; the secrets that it names stand in the server's configuration alone.
create table triggers (
  name text primary key,
  kind text not null check (kind in ('github', 'standard', 'token')),
  spec text not null,
  rev int not null default 1,
  paused_at bigint,
  paused_by text,
  why text,
  created_at bigint not null,
  updated_at bigint not null,
  updated_by text not null,
  check ((paused_at is null) = (paused_by is null))
){hot};

-- What arrived at a trigger, once for each delivery of its sender. A row that is `refused` may be taken anew when it comes again;
-- one that is `started`, `known` or `signaled` has the run of which that is.
create table arrivals (
  hook text not null,
  delivery text not null,
  event text,
  outcome text not null check (outcome in ('started', 'known', 'signaled', 'ignored', 'refused')),
  run text,
  note text,
  times int not null default 1,
  at bigint not null,
  last_at bigint not null,
  primary key (hook, delivery),
  check (outcome in ('ignored', 'refused') or run is not null)
);
create index arrivals_newest on arrivals (hook, at, delivery);
create index arrivals_at on arrivals (at);
