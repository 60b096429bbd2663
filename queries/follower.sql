-- Reads that always took the same definition as the read before them in their thread, and can take another.
SELECT variable, use_file, use_line, use_function, learned, def_file, def_line, def_function, source, run, pair
  FROM invariants WHERE invariant = 'Follower' ORDER BY use_file, use_line, def_file, def_line;
