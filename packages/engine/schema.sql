-- Generated from packages/engine/migrations by `npm run docs`. Do not edit.

CREATE TABLE approvals (
  id text primary key,
  run text not null,
  key text not null,
  prompt text not null,
  data text,
  deciders text not null default '[]',
  deadline bigint not null,
  state text not null check (state in ('open', 'approved', 'denied', 'lapsed', 'canceled')),
  decided_by text,
  decided_at bigint,
  reason text,
  payload text,
  created_at bigint not null,
  rev bigint not null,
  unique (run, key),
  check ((decided_at is not null) = (state <> 'open'))
);

CREATE INDEX approvals_open on approvals (deadline) where state = 'open';

CREATE TABLE arrivals (
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

CREATE INDEX arrivals_at on arrivals (at);

CREATE INDEX arrivals_newest on arrivals (hook, at, delivery);

CREATE TABLE attempt_logs (
  run text not null,
  attempt int not null,
  n bigint not null,
  upto bigint not null check (upto >= n),
  place bigint not null,
  size int not null,
  lines text not null,
  primary key (run, attempt, n)
);

CREATE TABLE attempts (
  run text not null,
  attempt int not null check (attempt >= 1),
  session text not null,
  leased_at bigint not null,
  ended_at bigint not null,
  "end" text not null check ("end" in ('completed', 'failed', 'suspended', 'handed_back', 'expired', 'lost', 'canceled', 'stale', 'revoked')),
  reason text,
  note text,
  first_reason text,
  rev bigint not null,
  primary key (run, attempt)
) without rowid;

CREATE TABLE commands (
  id text primary key,
  route text not null,
  request_hash text not null,
  status int not null,
  answer text not null,
  at bigint not null
);

CREATE INDEX commands_at on commands (at);

CREATE TABLE definitions (
  workflow text not null,
  version text not null,
  queue text not null,
  definition text not null,
  created_at bigint not null,
  updated_at bigint not null,
  primary key (workflow, version)
);

CREATE TABLE deliveries (
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
);

CREATE INDEX deliveries_due on deliveries (sink, due_at, id) where state in ('due', 'sending');

CREATE INDEX deliveries_line on deliveries (run, sink, seq);

CREATE INDEX deliveries_newest on deliveries (created_at, id);

CREATE INDEX deliveries_settled on deliveries (settled_at) where settled_at is not null;

CREATE INDEX deliveries_state on deliveries (state, created_at, id);

CREATE TABLE events (
  run text not null,
  rev bigint not null,
  seq int not null default 0,
  at bigint not null,
  kind text not null,
  actor text,
  data text,
  primary key (run, rev, seq)
);

CREATE TABLE lanes (
  lane text primary key,
  queue text not null,
  workflow text not null,
  version text not null,
  labels text not null,
  tag double precision not null default 0,
  created_at bigint not null
);

CREATE TABLE limits (
  key text primary key,
  mode text not null check (mode in ('whole_run', 'while_held')),
  code_value int,
  operator_value int,
  policy text not null default 'queue' check (policy in ('queue', 'reject')),
  weight double precision not null default 1 check (weight > 0),
  tag double precision not null default 0,
  updated_at bigint not null,
  updated_by text
);

CREATE TABLE meta (
  name text primary key,
  value text not null
);

CREATE TABLE "notices" (
  run text not null,
  kind text not null,
  occurrence text not null default '',
  at bigint not null,
  sentence text not null,
  data text,
  primary key (run, kind, occurrence)
);

CREATE INDEX notices_at on "notices" (at, kind, run, occurrence);

CREATE TABLE orders (
  id text primary key,
  kind text not null check (kind in ('start', 'signal', 'cancel', 'child_ended')),
  run text not null,
  payload text,
  created_at bigint not null,
  not_before bigint not null default 0,
  tries int not null default 0,
  error text
, failures int not null default 0, set_aside_at bigint);

CREATE INDEX orders_due on orders (not_before, id) where set_aside_at is null;

CREATE INDEX orders_set_aside on orders (set_aside_at, id) where set_aside_at is not null;

CREATE TABLE pauses (
  kind text not null check (kind in ('queue', 'workflow')),
  name text not null,
  paused_by text not null,
  why text,
  paused_at bigint not null,
  until bigint,
  primary key (kind, name)
);

CREATE TABLE receipts (
  run text not null,
  kind text not null,
  attempt int not null default 0,
  recipient text not null,
  at bigint not null,
  outcome text not null,
  primary key (run, kind, attempt, recipient)
);

CREATE TABLE runs (
  id text primary key,
  workflow text not null,
  version text not null,
  queue text not null,
  labels text not null default '[]',
  lane text not null,
  priority int not null default 0 check (priority between -100 and 100),
  tag double precision not null,
  rank double precision not null,
  owner text not null default '',
  key text,
  input_hash text not null,
  command text,
  status text not null check (status in ('queued', 'running', 'waiting', 'paused', 'canceling', 'succeeded', 'failed', 'canceled')),
  wait_on text check (wait_on in ('child', 'workspace', 'approval', 'signal', 'time', 'slot')),
  reason text,
  note text,
  attempt int not null default 0,
  session text,
  claim int,
  leased_at bigint,
  entries int not null default 0,
  journal_bytes bigint not null default 0,
  rev bigint not null default 1,
  created_at bigint not null,
  not_before bigint,
  ready_at bigint,
  progress_at bigint,
  ended_at bigint,
  deadline bigint,
  attempt_limit_ms bigint,
  attempt_deadline bigint,
  start_by bigint,
  cancel_requested_at bigint,
  cancel_by text,
  pause_requested_at bigint,
  pause_by text,
  losses int not null default 0,
  suspect_since bigint,
  hand_backs int not null default 0,
  failures int not null default 0,
  resumed int not null default 0,
  parent text,
  parent_key text,
  awaited int not null default 0,
  on_parent_end text not null default 'cancel' check (on_parent_end in ('cancel', 'detach')),
  depth int not null default 0,
  root text not null,
  children int not null default 0,
  waits int not null default 0,
  retry_of text,
  series text not null,
  on_end text,
  on_end_of text,
  limit_owner text,
  limit_global text,
  limit_a text,
  limit_b text,
  limit_modes text not null default '' check (limit_modes in ('', 'w', 'h', 'wh')),
  units_a int not null default 1 check (units_a >= 1),
  units_b int not null default 1 check (units_b >= 1),
  slot_state int generated always as (case
    when status in ('queued', 'running') then 3
    when status in ('waiting', 'paused') then case when wait_on in ('child', 'slot') then 0 else 1 end
    when status = 'canceling' then 2
    else 0 end) stored,
  input text,
  output text,
  error text,
  state text,
  progress text, replay_seed text, replay_at bigint,
  -- one holder while held, none otherwise
  check ((session is not null) = (status in ('running', 'canceling'))),
  check ((leased_at is not null) = (status in ('running', 'canceling'))),
  check ((claim is not null) = (status in ('running', 'canceling'))),
  check ((ended_at is not null) = (status in ('succeeded', 'failed', 'canceled'))),
  check (wait_on is not null or status <> 'waiting'),
  check (wait_on is null or status in ('waiting', 'paused')),
  check (ready_at is null or status in ('waiting', 'paused')),
  check ((parent is null) = (parent_key is null))
);

CREATE INDEX runs_active on runs (id) where ended_at is null;

CREATE INDEX runs_attempt_deadline on runs (attempt_deadline) where attempt_deadline is not null;

CREATE INDEX runs_canceled on runs (id) where status = 'canceled';

CREATE INDEX runs_canceling on runs (cancel_requested_at) where status = 'canceling';

CREATE UNIQUE INDEX runs_child on runs (parent, parent_key) where parent is not null and series = id;

CREATE INDEX runs_children on runs (parent) where depth > 0 and ended_at is null;

CREATE UNIQUE INDEX runs_command on runs (command) where command is not null;

CREATE INDEX runs_deadline on runs (deadline) where deadline is not null and ended_at is null;

CREATE INDEX runs_due on runs (ready_at) where status = 'waiting' and ready_at is not null;

CREATE INDEX runs_ended on runs (ended_at, id) where ended_at is not null and root = id;

CREATE INDEX runs_failed on runs (id) where status = 'failed';

CREATE INDEX runs_held on runs (session, claim) where session is not null;

CREATE UNIQUE INDEX runs_key on runs (owner, workflow, key) where key is not null;

CREATE INDEX runs_limit_a on runs (limit_a, slot_state) where limit_a is not null and slot_state > 0;

CREATE INDEX runs_limit_b on runs (limit_b, slot_state) where limit_b is not null and slot_state > 0;

CREATE INDEX runs_limit_global on runs (limit_global, slot_state) where limit_global is not null and slot_state > 0;

CREATE INDEX runs_limit_owner on runs (limit_owner, slot_state) where limit_owner is not null and slot_state > 0;

CREATE INDEX runs_line_a on runs (limit_a, resumed desc, rank, id) where limit_a is not null and status = 'waiting' and wait_on = 'slot';

CREATE INDEX runs_line_b on runs (limit_b, resumed desc, rank, id) where limit_b is not null and status = 'waiting' and wait_on = 'slot';

CREATE INDEX runs_line_global on runs (limit_global, resumed desc, rank, id) where limit_global is not null and status = 'waiting' and wait_on = 'slot';

CREATE INDEX runs_line_owner on runs (limit_owner, resumed desc, rank, id) where limit_owner is not null and status = 'waiting' and wait_on = 'slot';

CREATE INDEX runs_owner on runs (owner, id) where owner <> '';

CREATE INDEX runs_parent on runs (parent) where parent is not null;

CREATE INDEX runs_queued on runs (lane, rank, id) where status = 'queued';

CREATE INDEX runs_root on runs (root) where root <> id;

CREATE INDEX runs_series on runs (series, id) where series <> id;

CREATE INDEX runs_slot on runs (rank) where status = 'waiting' and wait_on = 'slot';

CREATE INDEX runs_start_by on runs (start_by) where start_by is not null and attempt = 0 and ended_at is null;

CREATE INDEX runs_suspect on runs (lane, suspect_since) where suspect_since is not null;

CREATE INDEX runs_workflow on runs (workflow, id);

CREATE TABLE schedules (
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
);

CREATE INDEX schedules_due on schedules (next_at) where next_at is not null;

CREATE UNIQUE INDEX schedules_name on schedules (name);

CREATE TABLE sessions (
  id text primary key,
  embedded int not null default 0,
  process text not null,
  host text not null,
  pid int not null,
  build text not null,
  queues text not null,
  labels text not null,
  workflows text not null,
  capacity int not null,
  lease_ms bigint not null,
  created_at bigint not null,
  renewed_at bigint not null,
  lease_until bigint,
  claim_no int not null default 0,
  connection int not null default 1,
  state text not null default 'live' check (state in ('live', 'draining', 'retired', 'ended')),
  status text,
  ended_at bigint,
  end_reason text,
  evidence text,
  check ((ended_at is not null) = (state = 'ended')),
  check ((embedded = 1) = (lease_until is null) or state in ('retired', 'ended'))
);

CREATE INDEX sessions_ended on sessions (ended_at) where ended_at is not null;

CREATE INDEX sessions_lease on sessions (lease_until) where ended_at is null and lease_until is not null;

CREATE INDEX sessions_live on sessions (id) where ended_at is null;

CREATE TABLE signals (
  run text not null,
  id text not null,
  seq int not null,
  name text not null,
  payload text,
  bytes int not null,
  sent_by text,
  created_at bigint not null,
  taken_by text,
  read_at bigint,
  primary key (run, id)
);

CREATE INDEX signals_unread on signals (run, seq) where read_at is null;

CREATE TABLE sinks (
  name text not null,
  kind text not null,
  type text not null,
  seen_at bigint not null,
  primary key (name, kind)
);

CREATE TABLE spawns (
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

CREATE INDEX spawns_newest on spawns (asked_at, session);

CREATE UNIQUE INDEX spawns_of_queue on spawns (queue, n);

CREATE INDEX spawns_open on spawns (queue, session) where state = 'open';

CREATE TABLE steps (
  run text not null,
  key text not null,
  n int not null check (n >= 1),
  kind text not null,
  attempt int not null,
  rev bigint not null,
  at bigint not null,
  output text,
  error text,
  primary key (run, key)
) without rowid;

CREATE TABLE streams (
  run text not null,
  stream text not null,
  seq int not null,
  data text,
  at bigint not null,
  primary key (run, stream, seq)
);

CREATE TABLE sweeps (
  name text primary key,
  interval_ms bigint not null,
  last_at bigint not null,
  examined int not null,
  acted int not null,
  skipped int not null,
  error text,
  duration_ms double precision not null
);

CREATE TABLE ticks (
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

CREATE INDEX ticks_at on ticks (at);

CREATE INDEX ticks_newest on ticks (schedule, at, id);

CREATE UNIQUE INDEX ticks_once on ticks (schedule, tick) where cause = 'time';

CREATE INDEX ticks_open on ticks (schedule) where open = 1;

CREATE INDEX ticks_waiting on ticks (schedule, tick, id) where outcome = 'waiting';

CREATE TABLE triggers (
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
);

CREATE TABLE turns (
  sweep text primary key,
  holder text not null,
  until bigint not null
);

CREATE TABLE waits (
  run text not null,
  key text not null,
  seq int not null,
  kind text not null check (kind in ('time', 'signal', 'approval', 'child', 'retry')),
  name text,
  due_at bigint,
  state text not null check (state in ('open', 'satisfied', 'lapsed', 'closed', 'taken')),
  result text,
  tries int not null default 0,
  error text,
  created_at bigint not null,
  settled_at bigint,
  rev bigint not null,
  primary key (run, key)
);

CREATE INDEX waits_children on waits (name) where kind = 'child' and state = 'open';

CREATE TABLE workflows (
  name text primary key,
  current_version text not null,
  updated_at bigint not null
);
