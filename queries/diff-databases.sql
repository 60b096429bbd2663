-- What this database and another (--other FILE) differ in: pairs that only one has, and pairs whose state differs.
WITH mine AS (SELECT * FROM main.defuse WHERE current), theirs AS (SELECT * FROM other.defuse WHERE current)
SELECT 'only here' AS difference, m.variable, m.def_file, m.def_line, m.use_file, m.use_line, m.state AS here, NULL AS there
  FROM mine m WHERE m.fingerprint NOT IN (SELECT fingerprint FROM theirs)
UNION ALL
SELECT 'only there', t.variable, t.def_file, t.def_line, t.use_file, t.use_line, NULL, t.state
  FROM theirs t WHERE t.fingerprint NOT IN (SELECT fingerprint FROM mine)
UNION ALL
SELECT 'state', m.variable, m.def_file, m.def_line, m.use_file, m.use_line, m.state, t.state
  FROM mine m JOIN theirs t USING (fingerprint) WHERE m.state <> t.state
ORDER BY 1, 5, 6, 3, 4;
