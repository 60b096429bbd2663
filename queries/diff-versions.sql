-- What two versions of a program differ in: pairs that only one has, and pairs whose state changed.
-- :a  a version, as `stem query versions` numbers it
-- :b  another
WITH state_in AS (
  SELECT e.version_id, e.pair_id, s.name AS state FROM (
    SELECT version_id, pair_id, min(rank % 100) AS rank FROM evidence WHERE version_id IN (CAST(:a AS INTEGER), CAST(:b AS INTEGER))
     GROUP BY version_id, pair_id) e JOIN state s ON s.rank = e.rank),
one AS (SELECT * FROM state_in WHERE version_id = CAST(:a AS INTEGER)), two AS (SELECT * FROM state_in WHERE version_id = CAST(:b AS INTEGER)),
both AS (SELECT pair_id, one.state AS before, NULL AS after FROM one WHERE pair_id NOT IN (SELECT pair_id FROM two)
  UNION ALL SELECT two.pair_id, one.state, two.state FROM two LEFT JOIN one USING (pair_id) WHERE one.state IS NOT two.state)
SELECT CASE WHEN after IS NULL THEN 'lost' WHEN before IS NULL THEN 'added' ELSE 'changed' END AS difference,
       d.name AS pair, d.variable, d.def_file, d.def_line, d.use_file, d.use_line, before, after
  FROM both JOIN defuse d USING (pair_id) ORDER BY difference, d.use_file, d.use_line, d.def_file, d.def_line;
