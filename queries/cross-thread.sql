-- Pairs whose definition and use are in different threads, and what orders the two accesses.
SELECT name AS pair, variable, def_file, def_line, def_function, use_file, use_line, use_function, state, relation, evidence
  FROM defuse WHERE current AND cross_thread ORDER BY variable, use_file, use_line, def_file, def_line;
