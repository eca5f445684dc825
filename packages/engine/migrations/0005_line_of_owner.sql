-- A line is read in the order in which it moves, however long it is: those that resume before those that begin, then by rank.
-- One index a migration, since nobody writes to runs while one is built.
drop index runs_line_owner;
create index runs_line_owner on runs (limit_owner, resumed desc, rank, id) where limit_owner is not null and status = 'waiting' and wait_on = 'slot';
