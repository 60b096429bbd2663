-- Violations of the three DefUse invariants, learned from passing runs (Local/Remote, Follower, Definition set).
SELECT invariant, variable, use_file, use_line, use_function, learned, def_file, def_line, def_function, source, run, pair
  FROM invariants ORDER BY invariant, use_file, use_line, def_file, def_line;
