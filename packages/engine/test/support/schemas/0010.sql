-- What this version of the schema added, as it held it. Never edited.
insert into triggers (name, kind, spec, paused_at, paused_by, why, created_at, updated_at, updated_by) values ('pulls', 'github', '{"secrets":["github"],"own":[],"rules":[{"workflow":"p"}]}', 1, 'ana', 'noise', 1, 1, 'ana');
insert into arrivals (hook, delivery, event, outcome, run, note, times, at, last_at) values ('pulls', '72d3162e-cc78-11e3-81ab-4c9367dc0958', 'push', 'refused', null, 'no executor has registered p', 2, 1767225600000, 1767225600001);
