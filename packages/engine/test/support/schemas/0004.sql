-- What version 4 of the schema added, as it held it. Never edited.
insert into turns (sweep, holder, until) values ('wake-due', 'host:1:own', 1000);
