-- What version 3 of the schema added, as it held it. Never edited.
insert into orders (id, kind, run, payload, created_at, not_before, tries, failures, error, set_aside_at) values ('aside', 'signal', 'run_q', '{', 1, 5, 10, 10, 'it cannot be read', 7);
insert into notices (run, kind, at, sentence, data) values ('aside', 'order_set_aside', 7, 'the order aside failed 10 times', '{}');
