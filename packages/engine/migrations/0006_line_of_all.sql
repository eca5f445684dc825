-- As 0005_line_of_owner.
drop index runs_line_global;
create index runs_line_global on runs (limit_global, resumed desc, rank, id) where limit_global is not null and status = 'waiting' and wait_on = 'slot';
