-- What version 11 of the schema added, as it held it. Never edited.
insert into attempt_logs (run, attempt, n, upto, place, size, lines) values ('run_p', 1, 1, 2, 0, 160, '[{"n":1,"at":8,"source":"log","text":"began","facts":"{\"of\":1}"},{"n":2,"at":9,"source":"stdout","text":"half","facts":null}]');
