-- What attempts have written, a row for each part as it came: lines `n` to `upto` of the attempt, `place` characters after its
-- first. Of a long log the middle is removed.
create table attempt_logs (
  run text not null,
  attempt int not null,
  n bigint not null,
  upto bigint not null check (upto >= n),
  place bigint not null,
  size int not null,
  lines text not null,
  primary key (run, attempt, n)
);
