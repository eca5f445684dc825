-- What starts runs by the calendar. `next_at` is the tick to fire next; it moves by a compare-and-set, and is null while the
-- schedule is paused or has no tick any more.
create table schedules (
  id text primary key,
  name text not null,
  cron text not null,
  zone text not null,
  workflow text not null,
  version text,
  input text,
  owner text not null default '',
  queue text,
  labels text not null default '[]',
  priority int not null default 0 check (priority between -100 and 100),
  missed text not null check (missed in ('skip', 'one', 'all')),
  overlap text not null check (overlap in ('allow', 'skip', 'cancel_running', 'queue')),
  rev int not null default 1,
  next_at bigint,
  last_at bigint,
  paused_at bigint,
  paused_by text,
  why text,
  created_at bigint not null,
  updated_at bigint not null,
  updated_by text not null,
  check ((paused_at is null) = (paused_by is null)),
  check (paused_at is null or next_at is null)
){hot};
create unique index schedules_name on schedules (name);
create index schedules_due on schedules (next_at) where next_at is not null;

-- What became of each tick: once for a schedule and instant. The id is that of the run that it starts.
create table ticks (
  id text primary key,
  schedule text not null,
  tick bigint not null,
  cause text not null check (cause in ('time', 'person')),
  outcome text not null check (outcome in ('started', 'waiting', 'skipped', 'missed', 'refused', 'replaced')),
  note text,
  -- 1 while its run may be active, as far as has been looked
  open int not null default 0 check (open in (0, 1)),
  at bigint not null,
  check (open = 0 or outcome = 'started')
);
create unique index ticks_once on ticks (schedule, tick) where cause = 'time';
create index ticks_newest on ticks (schedule, at, id);
create index ticks_open on ticks (schedule) where open = 1;
create index ticks_waiting on ticks (schedule, tick, id) where outcome = 'waiting';
create index ticks_at on ticks (at);
