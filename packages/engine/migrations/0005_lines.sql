-- A line is read in the order in which it moves, however long it is: those that resume before those that begin, then by rank.
drop index runs_line_owner;
drop index runs_line_global;
drop index runs_line_a;
drop index runs_line_b;
create index runs_line_owner on runs (limit_owner, resumed desc, rank, id) where limit_owner is not null and status = 'waiting' and wait_on = 'slot';
create index runs_line_global on runs (limit_global, resumed desc, rank, id) where limit_global is not null and status = 'waiting' and wait_on = 'slot';
create index runs_line_a on runs (limit_a, resumed desc, rank, id) where limit_a is not null and status = 'waiting' and wait_on = 'slot';
create index runs_line_b on runs (limit_b, resumed desc, rank, id) where limit_b is not null and status = 'waiting' and wait_on = 'slot';
