-- As 0005_line_of_owner.
drop index runs_line_b;
create index runs_line_b on runs (limit_b, resumed desc, rank, id) where limit_b is not null and status = 'waiting' and wait_on = 'slot';
