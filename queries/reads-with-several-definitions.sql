-- Reads that more than one definition can reach (seen or predicted).
SELECT use_file AS file, use_line AS line, use_function AS function, variable, count(*) AS definitions,
       sum(state = 'explicit') AS seen, sum(state <> 'explicit') AS predicted,
       group_concat(CASE def_kind WHEN 'write' THEN ifnull(def_function, '?') || ':' || ifnull(def_line, '?') ELSE def_kind END, ', ') AS taken_from
  FROM defuse WHERE current AND class IN ('covered', 'predicted')
 GROUP BY use_site_id, variable_id HAVING count(*) > 1 ORDER BY definitions DESC, file, line;
