-- One pair: run by run, from which thread to which, and whether the accesses are ordered, under a common lock, or a data race.
-- :pair  its name, as in p12
SELECT d.name AS pair, d.variable, d.def_file, d.def_line, d.use_file, d.use_line, 'r' || e.run_id AS run, e.state,
       ifnull(a.path, '(initial)') AS def_thread, b.path AS use_thread, e.relation, e.count
  FROM defuse d JOIN evidence e USING (pair_id) LEFT JOIN thread a ON a.id = e.def_thread_id LEFT JOIN thread b ON b.id = e.use_thread_id
 WHERE d.pair_id = CAST(ltrim(:pair, 'p') AS INTEGER) ORDER BY e.run_id, e.use_thread_id, e.def_thread_id;
