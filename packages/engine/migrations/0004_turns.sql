-- Of the servers of one database one at a time looks by itself for what a sweep is for; whose turn lapses is followed by another.
create table turns (
  sweep text primary key,
  holder text not null,
  until bigint not null
){hot};
