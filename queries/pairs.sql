-- Every def-use pair of the program as it is now, with its state.
SELECT name AS pair, variable, def_file, def_line, def_function, use_file, use_line, use_function, cross_thread, state, bound, evidence
  FROM defuse WHERE current ORDER BY use_file, use_line, variable, def_file, def_line;
