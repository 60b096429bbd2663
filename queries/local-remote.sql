-- Reads that always took definitions of their own thread (or always of others), and can take one of the other kind.
SELECT variable, use_file, use_line, use_function, learned, def_file, def_line, def_function, source, run, pair
  FROM invariants WHERE invariant = 'Local/Remote' ORDER BY use_file, use_line, def_file, def_line;
