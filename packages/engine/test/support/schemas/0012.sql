-- What version 12 of the schema added, as it held it. Never edited.
insert into spawns (session, queue, n, spawner, kind, reason, state, asked_at, start_by, settled_at, evidence) values ('ses_none', 'default', 1, 'host:1', 'process', '3 runs wait', 'failed', 1, 60001, 9, 'its process exited with 1');
insert into spawns (session, queue, n, spawner, kind, reason, state, asked_at, start_by, settled_at, evidence) values ('ses_new', 'default', 2, 'host:1', 'process', '3 runs wait', 'open', 10, 60010, null, null);
