-- What version 2 of the schema added, as it held it. Never edited.
insert into schedules (id, name, cron, zone, workflow, missed, overlap, paused_at, paused_by, created_at, updated_at, updated_by) values ('sch_1', 'nightly', '0 3 * * *', 'UTC', 'p', 'one', 'skip', 1, 'ana', 1, 1, 'ana');
insert into ticks (id, schedule, tick, cause, outcome, open, at) values ('run_tick', 'sch_1', 1767225600000, 'time', 'skipped', 0, 1767225600000);
