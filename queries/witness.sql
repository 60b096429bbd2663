-- How a predicted pair comes about, step by step.
-- :pair  its name, as in p12
SELECT s.ordinal AS step, t.path AS thread, s.kind, s.detail, p.file, p.line, p.function, s.skipped,
       CASE s.ordinal WHEN w.def_step THEN 'definition' WHEN w.use_step THEN 'use' END AS mark
  FROM defuse d JOIN witness w ON w.id = d.witness_id JOIN witness_step s ON s.witness_id = w.id
  JOIN thread t ON t.id = s.thread_id LEFT JOIN place p ON p.site_id = s.site_id
 WHERE d.pair_id = CAST(ltrim(:pair, 'p') AS INTEGER) ORDER BY s.ordinal;
