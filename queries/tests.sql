-- Tests (input and schedule) that STEM made; `stem replay TEST` runs one.
SELECT 't' || t.id AS test, g.path AS program, t.origin, t.status, t.priority, length(t.json) AS bytes, t.created
  FROM test t JOIN program g ON g.id = t.program_id ORDER BY t.id;
