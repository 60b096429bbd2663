-- The pairs whose definition or use is on one line of the source.
-- :file  the file, or the end of its path
-- :line  the line
SELECT name AS pair, CASE WHEN use_line = :line AND (use_file = :file OR use_file LIKE '%/' || :file) THEN 'use' ELSE 'definition' END AS here,
       variable, def_file, def_line, def_function, use_file, use_line, use_function, cross_thread, state, evidence
  FROM defuse
 WHERE current AND ((def_line = :line AND (def_file = :file OR def_file LIKE '%/' || :file))
                 OR (use_line = :line AND (use_file = :file OR use_file LIKE '%/' || :file)))
 ORDER BY here, variable, use_file, use_line, def_file, def_line;
