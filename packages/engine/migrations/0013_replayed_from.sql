-- A run that is started again from a step keeps the entries before it, which were made with what the first run drew and told as the
-- time: the run whose chance it goes on with, and the instant that `ctx.now()` gives before the first entry. Null: its own.
alter table runs add column replay_seed text;
alter table runs add column replay_at bigint;
