-- Pairs whose two accesses nothing orders: no common lock, not atomic, no create, join, condition or barrier between them.
SELECT name AS pair, variable, def_file, def_line, def_function, use_file, use_line, use_function, state, evidence
  FROM defuse WHERE current AND relation = 'data race' ORDER BY variable, use_file, use_line, def_file, def_line;
