-- Branches on shared values or inputs, and which outcomes were taken.
SELECT p.file, p.line, p.function, sum(CASE WHEN b.outcome = 0 THEN b.count ELSE 0 END) AS false_count,
       sum(CASE WHEN b.outcome <> 0 THEN b.count ELSE 0 END) AS true_count
  FROM branch b JOIN run r ON r.id = b.run_id JOIN version v ON v.id = r.version_id AND v.current JOIN place p ON p.site_id = b.site_id
 GROUP BY b.site_id ORDER BY p.file, p.line;
