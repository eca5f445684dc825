-- What version 13 of the schema added, as it held it. Never edited.
update runs set replay_seed = 'run_before', replay_at = 7 where id = (select min(id) from runs);
