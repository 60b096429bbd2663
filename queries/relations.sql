-- Whether the two accesses of each cross-thread pair are ordered, under a common lock, atomic, or a data race.
SELECT relation, name AS pair, variable, def_file, def_line, def_function, use_file, use_line, use_function, state
  FROM defuse WHERE current AND cross_thread ORDER BY relation_rank DESC, variable, use_file, use_line;
