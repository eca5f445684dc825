-- A notice is told of each time that its cause occurs: `occurrence` says which (the attempt, the approval), and is empty where
-- a run has one at most.
drop index notices_at;
create table notices_told (
  run text not null,
  kind text not null,
  occurrence text not null default '',
  at bigint not null,
  sentence text not null,
  data text,
  primary key (run, kind, occurrence)
);
insert into notices_told (run, kind, at, sentence, data) select run, kind, at, sentence, data from notices;
create index notices_at on notices_told (at, kind, run, occurrence);
drop table notices;
alter table notices_told rename to notices;

-- Where notices go, a row for each kind that a sink takes; `seen_at` is when a server that has the sink last said so.
create table sinks (
  name text not null,
  kind text not null,
  type text not null,
  seen_at bigint not null,
  primary key (name, kind)
);

-- What is to be sent of a notice to a sink, written with the notice. Whoever has claimed it (`claim`, until `due_at`) sends it
-- and records what came of it; `seq` is its place among those of the same run.
create table deliveries (
  id text primary key,
  run text not null,
  kind text not null,
  occurrence text not null,
  sink text not null,
  seq int not null,
  state text not null default 'due' check (state in ('due', 'sending', 'delivered', 'dead', 'dropped', 'void')),
  claim int not null default 0,
  holder text,
  due_at bigint not null,
  refusals int not null default 0,
  lapses int not null default 0,
  error text,
  note text,
  created_at bigint not null,
  settled_at bigint,
  check ((holder is not null) = (state = 'sending')),
  check ((settled_at is null) = (state in ('due', 'sending')))
){hot};
create index deliveries_due on deliveries (sink, due_at, id) where state in ('due', 'sending');
create index deliveries_line on deliveries (run, sink, seq);
create index deliveries_newest on deliveries (created_at, id);
create index deliveries_state on deliveries (state, created_at, id);
create index deliveries_settled on deliveries (settled_at) where settled_at is not null;
