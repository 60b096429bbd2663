-- The pairs of one variable: which definitions reach which reads.
-- :variable  its name; * and ? stand for anything
SELECT name AS pair, variable, def_file, def_line, def_function, use_file, use_line, use_function, cross_thread, state, evidence
  FROM defuse WHERE current AND (variable = :variable OR variable GLOB :variable)
 ORDER BY variable, use_file, use_line, def_file, def_line;
