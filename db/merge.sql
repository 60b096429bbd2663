-- Adds everything that database `other` knows to `main`, by natural keys; ids differ, names do not. Run in one transaction.
-- temp.m_<table>(old, new) maps ids; temp.fresh holds the runs that main did not have.

INSERT INTO main.program(path) SELECT path FROM other.program WHERE true ON CONFLICT DO NOTHING;
CREATE TEMP TABLE m_program AS SELECT o.id AS old, n.id AS new FROM other.program o JOIN main.program n USING (path);

INSERT INTO main.version(program_id, build_id, git_commit, git_dirty, first_seen, last_seen, static_done)
  SELECT m.new, o.build_id, o.git_commit, o.git_dirty, o.first_seen, o.last_seen, o.static_done
    FROM other.version o JOIN temp.m_program m ON m.old = o.program_id ORDER BY o.id
  ON CONFLICT DO UPDATE SET git_commit = ifnull(git_commit, excluded.git_commit), first_seen = min(first_seen, excluded.first_seen),
    last_seen = max(last_seen, excluded.last_seen), static_done = max(static_done, excluded.static_done);
CREATE TEMP TABLE m_version AS SELECT o.id AS old, n.id AS new FROM other.version o JOIN temp.m_program m ON m.old = o.program_id
  JOIN main.version n ON n.program_id = m.new AND n.build_id = o.build_id;
CREATE UNIQUE INDEX temp.m_version_old ON m_version(old);

INSERT INTO main.source_text SELECT * FROM other.source_text WHERE true ON CONFLICT DO NOTHING;
INSERT INTO main.source SELECT m.new, o.path, o.hash FROM other.source o JOIN temp.m_version m ON m.old = o.version_id WHERE true
  ON CONFLICT DO NOTHING;

INSERT INTO main.site(program_id, key) SELECT m.new, o.key FROM other.site o JOIN temp.m_program m ON m.old = o.program_id WHERE true
  ON CONFLICT DO NOTHING;
CREATE TEMP TABLE m_site AS SELECT o.id AS old, n.id AS new FROM other.site o JOIN temp.m_program m ON m.old = o.program_id
  JOIN main.site n ON n.program_id = m.new AND n.key = o.key;
CREATE UNIQUE INDEX temp.m_site_old ON m_site(old);
INSERT INTO main.site_at SELECT s.new, v.new, o.file, o.line, o.column, o.function, o.text
  FROM other.site_at o JOIN temp.m_site s ON s.old = o.site_id JOIN temp.m_version v ON v.old = o.version_id WHERE true
  ON CONFLICT DO NOTHING;

INSERT INTO main.variable(program_id, name) SELECT m.new, o.name FROM other.variable o JOIN temp.m_program m ON m.old = o.program_id
  WHERE true ON CONFLICT DO NOTHING;
CREATE TEMP TABLE m_variable AS SELECT o.id AS old, n.id AS new FROM other.variable o JOIN temp.m_program m ON m.old = o.program_id
  JOIN main.variable n ON n.program_id = m.new AND n.name = o.name;
CREATE UNIQUE INDEX temp.m_variable_old ON m_variable(old);

INSERT INTO main.thread(program_id, path, start) SELECT m.new, o.path, o.start FROM other.thread o
  JOIN temp.m_program m ON m.old = o.program_id WHERE true ON CONFLICT DO NOTHING;
CREATE TEMP TABLE m_thread AS SELECT o.id AS old, n.id AS new FROM other.thread o JOIN temp.m_program m ON m.old = o.program_id
  JOIN main.thread n ON n.program_id = m.new AND n.path = o.path;
CREATE UNIQUE INDEX temp.m_thread_old ON m_thread(old);

INSERT INTO main.test(program_id, hash, origin, status, priority, json, created, detail)
  SELECT m.new, o.hash, o.origin, o.status, o.priority, o.json, o.created, o.detail FROM other.test o
    JOIN temp.m_program m ON m.old = o.program_id WHERE true
  ON CONFLICT DO UPDATE SET status = excluded.status WHERE status = 'pending';
CREATE TEMP TABLE m_test AS SELECT o.id AS old, n.id AS new FROM other.test o JOIN temp.m_program m ON m.old = o.program_id
  JOIN main.test n ON n.program_id = m.new AND n.hash = o.hash;
CREATE UNIQUE INDEX temp.m_test_old ON m_test(old);

-- Runs: what hangs on a run comes with it, once.
CREATE TEMP TABLE fresh AS SELECT o.id AS old FROM other.run o WHERE o.trace_hash NOT IN (SELECT trace_hash FROM main.run);
INSERT INTO main.run(version_id, trace_hash, trace_path, recorder, semantics, mode, seed, argv, cwd, schedule, test_id, outcome,
                     exit_code, events, recorded_at, imported_at, analysed_at, paths, visible)
  SELECT v.new, o.trace_hash, o.trace_path, o.recorder, o.semantics, o.mode, o.seed, o.argv, o.cwd, o.schedule, t.new, o.outcome,
         o.exit_code, o.events, o.recorded_at, o.imported_at, o.analysed_at, o.paths, o.visible
    FROM other.run o JOIN temp.fresh f ON f.old = o.id JOIN temp.m_version v ON v.old = o.version_id
    LEFT JOIN temp.m_test t ON t.old = o.test_id ORDER BY o.id;
CREATE TEMP TABLE m_run AS SELECT o.id AS old, n.id AS new, o.id IN (SELECT old FROM temp.fresh) AS fresh
  FROM other.run o JOIN main.run n USING (trace_hash);
CREATE UNIQUE INDEX temp.m_run_old ON m_run(old);
UPDATE main.run SET analysed_at = (SELECT o.analysed_at FROM other.run o WHERE o.trace_hash = run.trace_hash)
  WHERE analysed_at IS NULL AND trace_hash IN (SELECT trace_hash FROM other.run WHERE analysed_at IS NOT NULL);
INSERT INTO main.run_input SELECT r.new, o.ordinal, o.name, o.bytes FROM other.run_input o
  JOIN temp.m_run r ON r.old = o.run_id AND r.fresh;
INSERT INTO main.access SELECT r.new, s.new, v.new, o.kind, o.count FROM other.access o JOIN temp.m_run r ON r.old = o.run_id AND r.fresh
  JOIN temp.m_site s ON s.old = o.site_id JOIN temp.m_variable v ON v.old = o.variable_id;
INSERT INTO main.branch SELECT r.new, s.new, o.outcome, o.count FROM other.branch o JOIN temp.m_run r ON r.old = o.run_id AND r.fresh
  JOIN temp.m_site s ON s.old = o.site_id;
INSERT INTO main.follower SELECT r.new, v.new, a.new, b.new, o.same, o.different FROM other.follower o
  JOIN temp.m_run r ON r.old = o.run_id AND r.fresh JOIN temp.m_variable v ON v.old = o.variable_id
  JOIN temp.m_site a ON a.old = o.first_site_id JOIN temp.m_site b ON b.old = o.second_site_id;
INSERT INTO main.solver_stat SELECT r.new, o.name, o.value FROM other.solver_stat o JOIN temp.m_run r ON r.old = o.run_id WHERE true
  ON CONFLICT DO NOTHING;

-- Pairs and their evidence.
INSERT INTO main.pair(variable_id, def_kind, def_site_id, use_site_id, fingerprint)
  SELECT v.new, o.def_kind, d.new, u.new, o.fingerprint FROM other.pair o JOIN temp.m_variable v ON v.old = o.variable_id
    JOIN temp.m_site u ON u.old = o.use_site_id LEFT JOIN temp.m_site d ON d.old = o.def_site_id ORDER BY o.id
  ON CONFLICT DO NOTHING;
CREATE TEMP TABLE m_pair AS SELECT o.id AS old, n.id AS new FROM other.pair o JOIN temp.m_variable v ON v.old = o.variable_id
  JOIN temp.m_site u ON u.old = o.use_site_id LEFT JOIN temp.m_site d ON d.old = o.def_site_id
  JOIN main.pair n ON n.variable_id = v.new AND n.use_site_id = u.new AND n.def_kind = o.def_kind
    AND ifnull(n.def_site_id, 0) = ifnull(d.new, 0);
CREATE UNIQUE INDEX temp.m_pair_old ON m_pair(old);
INSERT INTO main.observation(pair_id, run_id, def_thread_id, use_thread_id, count, relation, first_event)
  SELECT p.new, r.new, a.new, b.new, o.count, o.relation, o.first_event FROM other.observation o
    JOIN temp.m_run r ON r.old = o.run_id AND r.fresh JOIN temp.m_pair p ON p.old = o.pair_id
    LEFT JOIN temp.m_thread a ON a.old = o.def_thread_id JOIN temp.m_thread b ON b.old = o.use_thread_id;
INSERT INTO main.potential SELECT p.new, v.new FROM other.potential o JOIN temp.m_pair p ON p.old = o.pair_id
  JOIN temp.m_version v ON v.old = o.version_id WHERE true ON CONFLICT DO NOTHING;
INSERT INTO main.definition SELECT s.new, x.new, v.new FROM other.definition o JOIN temp.m_site s ON s.old = o.site_id
  JOIN temp.m_variable x ON x.old = o.variable_id JOIN temp.m_version v ON v.old = o.version_id WHERE true ON CONFLICT DO NOTHING;
INSERT INTO main.escort(version_id, def_site_id, def_outcome, use_site_id, use_outcome, state, pair_id, detail)
  SELECT v.new, d.new, o.def_outcome, u.new, o.use_outcome, o.state, p.new, o.detail FROM other.escort o
    JOIN temp.m_version v ON v.old = o.version_id JOIN temp.m_site u ON u.old = o.use_site_id
    LEFT JOIN temp.m_site d ON d.old = o.def_site_id LEFT JOIN temp.m_pair p ON p.old = o.pair_id WHERE true
  ON CONFLICT DO UPDATE SET state = excluded.state, pair_id = excluded.pair_id, detail = excluded.detail WHERE state <> 'covered';

-- Verdicts: of two about the same pair and run the one that says more stays (as in the store: confirmed, diverged,
-- implicit, infeasible in the wider bound, unknown).
CREATE TEMP TABLE strength(state, bound, value);
INSERT INTO strength VALUES ('implicit confirmed', '', 9), ('diverged', '', 8), ('implicit', '', 7), ('infeasible', 'program', 6),
  ('infeasible', 'trace', 5), ('infeasible', 'window', 4), ('unknown', '', 1);
CREATE TEMP TABLE incoming AS
  SELECT o.id AS old, p.new AS pair_id, v.new AS version_id, r.new AS run_id, o.witness_id AS old_witness
    FROM other.verdict o JOIN temp.m_pair p ON p.old = o.pair_id JOIN temp.m_version v ON v.old = o.version_id
    LEFT JOIN temp.m_run r ON r.old = o.run_id
    JOIN temp.strength s ON s.state = o.state AND s.bound = ifnull(o.bound, '')
   WHERE NOT EXISTS (SELECT 1 FROM main.verdict n JOIN temp.strength t ON t.state = n.state AND t.bound = ifnull(n.bound, '')
      WHERE n.pair_id = p.new AND n.version_id = v.new AND ifnull(n.run_id, 0) = ifnull(r.new, 0) AND t.value >= s.value);
DELETE FROM main.witness WHERE id IN (SELECT n.witness_id FROM main.verdict n JOIN temp.incoming i ON i.pair_id = n.pair_id
  AND i.version_id = n.version_id AND ifnull(i.run_id, 0) = ifnull(n.run_id, 0));
DELETE FROM main.verdict WHERE id IN (SELECT n.id FROM main.verdict n JOIN temp.incoming i ON i.pair_id = n.pair_id
  AND i.version_id = n.version_id AND ifnull(i.run_id, 0) = ifnull(n.run_id, 0));
CREATE TEMP TABLE m_witness AS SELECT w.id AS old, row_number() OVER (ORDER BY w.id) + (SELECT ifnull(max(id), 0) FROM main.witness) AS new
  FROM other.witness w WHERE w.id IN (SELECT old_witness FROM temp.incoming);
INSERT INTO main.witness SELECT m.new, p.new, r.new, t.new, o.status, o.detail, o.outcome, o.def_step, o.use_step, o.steps, s.new,
    o.follower_breaks
  FROM other.witness o JOIN temp.m_witness m ON m.old = o.id JOIN temp.m_pair p ON p.old = o.pair_id JOIN temp.m_run r ON r.old = o.run_id
  LEFT JOIN temp.m_test t ON t.old = o.test_id LEFT JOIN temp.m_site s ON s.old = o.follower_site_id;
INSERT INTO main.witness_step SELECT m.new, o.ordinal, t.new, s.new, o.kind, o.detail, o.skipped
  FROM other.witness_step o JOIN temp.m_witness m ON m.old = o.witness_id JOIN temp.m_thread t ON t.old = o.thread_id
  LEFT JOIN temp.m_site s ON s.old = o.site_id;
INSERT INTO main.verdict(pair_id, version_id, run_id, state, bound, layer, reason, tried, total, def_thread_id, use_thread_id, relation,
                         witness_id, millis)
  SELECT i.pair_id, i.version_id, i.run_id, o.state, o.bound, o.layer, o.reason, o.tried, o.total, a.new, b.new, o.relation, m.new, o.millis
    FROM temp.incoming i JOIN other.verdict o ON o.id = i.old LEFT JOIN temp.m_thread a ON a.old = o.def_thread_id
    LEFT JOIN temp.m_thread b ON b.old = o.use_thread_id LEFT JOIN temp.m_witness m ON m.old = o.witness_id;

INSERT INTO main.finding(version_id, run_id, test_id, kind, message, site_id, thread_id, fingerprint, found_at, execution, switches)
  SELECT v.new, r.new, t.new, o.kind, o.message, s.new, h.new, o.fingerprint, o.found_at, o.execution, o.switches FROM other.finding o
    JOIN temp.m_version v ON v.old = o.version_id LEFT JOIN temp.m_run r ON r.old = o.run_id LEFT JOIN temp.m_test t ON t.old = o.test_id
    LEFT JOIN temp.m_site s ON s.old = o.site_id LEFT JOIN temp.m_thread h ON h.old = o.thread_id WHERE true
  ON CONFLICT DO UPDATE SET test_id = ifnull(test_id, excluded.test_id);

INSERT INTO main.negation SELECT r.new, o.event, o.ask, o.state, o.bounded, o.detail, t.new FROM other.negation o
  JOIN temp.m_run r ON r.old = o.run_id LEFT JOIN temp.m_test t ON t.old = o.test_id WHERE true ON CONFLICT DO NOTHING;
INSERT INTO main.exploration
  SELECT v.new, o.goal, o.executions, o.repeated, o.minimising, o.diverged, o.seconds, o.solver_seconds, o.memory_kb, o.ended, o.updated
    FROM other.exploration o JOIN temp.m_version v ON v.old = o.version_id WHERE true
  ON CONFLICT DO UPDATE SET executions = executions + excluded.executions, repeated = repeated + excluded.repeated,
    minimising = minimising + excluded.minimising, diverged = diverged + excluded.diverged, seconds = seconds + excluded.seconds,
    solver_seconds = solver_seconds + excluded.solver_seconds, memory_kb = max(memory_kb, excluded.memory_kb),
    updated = max(updated, excluded.updated);

-- Which versions describe the code as it is now: see Writer::write_sources.
UPDATE main.version SET current = NOT EXISTS (SELECT 1 FROM main.source a JOIN main.source b ON a.path = b.path AND a.hash <> b.hash
  WHERE a.version_id = version.id AND b.version_id = (SELECT n.id FROM main.version n WHERE n.program_id = version.program_id
    ORDER BY n.last_seen DESC, n.id DESC LIMIT 1));
