-- The pairs whose definition or use is in one function.
-- :function  its name; * and ? stand for anything
SELECT name AS pair, variable, def_file, def_line, def_function, use_file, use_line, use_function, cross_thread, state, evidence
  FROM defuse WHERE current AND (def_function = :function OR use_function = :function OR def_function GLOB :function OR use_function GLOB :function)
 ORDER BY use_file, use_line, variable, def_file, def_line;
