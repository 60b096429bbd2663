-- Reads that can take a definition which they never took in a passing run.
SELECT variable, use_file, use_line, use_function, learned, def_file, def_line, def_function, source, run, pair
  FROM invariants WHERE invariant = 'Definition set' ORDER BY use_file, use_line, def_file, def_line;
