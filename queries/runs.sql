-- Every recorded run: input, mode, outcome, how many pairs it showed and how many were predicted from it.
SELECT name AS run, program, mode, seed, argv, inputs, outcome, exit_code, events, pairs, implicit, recorded_at, trace_path FROM runs ORDER BY run_id;
