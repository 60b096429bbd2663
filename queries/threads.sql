-- The threads of each program, by creation path, and how many flows enter and leave them.
SELECT g.path AS program, t.path AS thread, t.start,
       (SELECT count(DISTINCT o.pair_id) FROM observation o WHERE o.use_thread_id = t.id AND o.def_thread_id <> t.id) AS flows_in,
       (SELECT count(DISTINCT o.pair_id) FROM observation o WHERE o.def_thread_id = t.id AND o.use_thread_id <> t.id) AS flows_out
  FROM thread t JOIN program g ON g.id = t.program_id ORDER BY g.path, t.path;
