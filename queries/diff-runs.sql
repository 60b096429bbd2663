-- What two runs differ in: the pairs that only one of them showed.
-- :a  a run, as its number
-- :b  another
WITH one AS (SELECT DISTINCT pair_id FROM observation WHERE run_id = CAST(ltrim(:a, 'r') AS INTEGER)),
     two AS (SELECT DISTINCT pair_id FROM observation WHERE run_id = CAST(ltrim(:b, 'r') AS INTEGER))
SELECT CASE WHEN pair_id IN one THEN 'only in r' || ltrim(:a, 'r') ELSE 'only in r' || ltrim(:b, 'r') END AS difference,
       name AS pair, variable, def_file, def_line, use_file, use_line, cross_thread
  FROM defuse WHERE (pair_id IN one) <> (pair_id IN two) ORDER BY difference, use_file, use_line, def_file, def_line;
