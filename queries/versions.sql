-- The versions of each program, with how many runs and pairs they have.
SELECT v.id AS version, g.path AS program, v.build_id, v.git_commit, v.git_dirty, v.current,
       (SELECT count(*) FROM run r WHERE r.version_id = v.id) AS runs,
       (SELECT count(DISTINCT e.pair_id) FROM evidence e WHERE e.version_id = v.id) AS pairs, v.first_seen, v.last_seen
  FROM version v JOIN program g ON g.id = v.program_id ORDER BY v.id;
