-- Coverage by pair of threads: from which thread to which the flows go, seen and only predicted.
WITH flow AS (
  SELECT e.pair_id, ifnull(a.path, '(initial)') AS def_thread, a.start AS def_start, b.path AS use_thread, b.start AS use_start,
         max(e.state = 'explicit') AS seen
    FROM evidence e LEFT JOIN thread a ON a.id = e.def_thread_id JOIN thread b ON b.id = e.use_thread_id
   WHERE e.rank IN (1, 2, 3, 4) GROUP BY e.pair_id, e.def_thread_id, e.use_thread_id)
SELECT def_thread, def_start, use_thread, use_start, sum(seen) AS covered, sum(NOT seen) AS predicted, count(*) AS total,
       round(100.0 * sum(seen) / count(*), 1) AS percent
  FROM flow GROUP BY def_thread, use_thread ORDER BY def_thread, use_thread;
