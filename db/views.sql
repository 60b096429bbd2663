-- The views people read. Dropped and made again whenever a database is opened by a version that knows more columns, so a
-- migration never needs to touch them. Columns are stable: add at the end, never rename or remove.

-- Evidence of a pair, of any kind, ranked: what is about the current version of the program comes first.
CREATE VIEW evidence AS
  SELECT o.pair_id, o.run_id, r.version_id, 'explicit' AS state, NULL AS bound, 1 + 100 * (1 - v.current) AS rank,
         o.def_thread_id, o.use_thread_id, o.relation, o.count, NULL AS layer, NULL AS reason, NULL AS witness_id
    FROM observation o JOIN run r ON r.id = o.run_id JOIN version v ON v.id = r.version_id
  UNION ALL
  SELECT d.pair_id, d.run_id, d.version_id, d.state, d.bound,
         s.rank + 100 * (1 - v.current),
         d.def_thread_id, d.use_thread_id, d.relation, 0, d.layer, d.reason, d.witness_id
    FROM verdict d JOIN state s ON s.name = d.state JOIN version v ON v.id = d.version_id
  UNION ALL
  SELECT p.pair_id, NULL, p.version_id, 'potential', NULL, 7 + 100 * (1 - v.current), NULL, NULL, 'unknown', 0, 'static', NULL, NULL
    FROM potential p JOIN version v ON v.id = p.version_id;

-- Where each site is: in the current version that saw it last, else in the last version that had it.
CREATE VIEW place AS
  SELECT s.id AS site_id, s.program_id, s.key, a.file, a.line, a.column, a.function, a.text, a.version_id
    FROM site s LEFT JOIN site_at a ON a.site_id = s.id AND a.version_id =
      (SELECT b.version_id FROM site_at b JOIN version v ON v.id = b.version_id WHERE b.site_id = s.id
        ORDER BY v.current DESC, v.id DESC LIMIT 1);

-- One row a pair. `current` is 0 when only versions whose sources have changed since know it.
CREATE VIEW defuse AS
  SELECT p.id AS pair_id, 'p' || p.id AS name, g.path AS program, v.name AS variable,
         p.def_kind, d.file AS def_file, d.line AS def_line, d.function AS def_function, d.text AS def_text,
         u.file AS use_file, u.line AS use_line, u.function AS use_function, u.text AS use_text,
         EXISTS (SELECT 1 FROM observation o WHERE o.pair_id = p.id AND o.def_thread_id <> o.use_thread_id)
           OR EXISTS (SELECT 1 FROM verdict w WHERE w.pair_id = p.id AND w.def_thread_id <> w.use_thread_id) AS cross_thread,
         s.name AS state,
         CASE WHEN s.name = 'infeasible' THEN
           (SELECT w.bound FROM verdict w JOIN version x ON x.id = w.version_id WHERE w.pair_id = p.id AND w.bound IS NOT NULL
             ORDER BY x.current DESC, w.bound = 'program' DESC, w.bound = 'trace' DESC LIMIT 1) END AS bound,
         CASE s.name
           WHEN 'explicit' THEN (SELECT 'seen ' || sum(o.count) || CASE sum(o.count) WHEN 1 THEN ' time in ' ELSE ' times in ' END
               || count(DISTINCT o.run_id) || CASE count(DISTINCT o.run_id) WHEN 1 THEN ' run' ELSE ' runs' END
               FROM observation o WHERE o.pair_id = p.id)
           WHEN 'potential' THEN 'allowed by static analysis'
           ELSE (SELECT CASE w.state
                   WHEN 'implicit confirmed' THEN 'predicted from run r' || w.run_id || ', replayed'
                   WHEN 'implicit' THEN 'predicted from run r' || w.run_id
                   WHEN 'diverged' THEN 'predicted from run r' || w.run_id || ', replay diverged' || ifnull(': ' || n.detail, '')
                   WHEN 'unknown' THEN 'not decided' || ifnull(': ' || w.reason, '')
                   ELSE 'impossible within this ' || w.bound END || ifnull(' (' || w.layer || ')', '')
                 FROM verdict w JOIN version x ON x.id = w.version_id LEFT JOIN witness n ON n.id = w.witness_id
                 WHERE w.pair_id = p.id AND w.state = s.name
                 ORDER BY x.current DESC, w.bound = 'program' DESC, w.bound = 'trace' DESC, w.run_id LIMIT 1)
         END AS evidence,
         (SELECT max(r.rank) FROM evidence e JOIN relation r ON r.name = e.relation WHERE e.pair_id = p.id) AS relation_rank,
         (SELECT r.name FROM evidence e JOIN relation r ON r.name = e.relation WHERE e.pair_id = p.id ORDER BY r.rank DESC LIMIT 1)
           AS relation,
         (SELECT w.witness_id FROM verdict w JOIN version x ON x.id = w.version_id
           WHERE w.pair_id = p.id AND w.state = s.name AND w.witness_id IS NOT NULL
           ORDER BY x.current DESC, w.run_id LIMIT 1) AS witness_id,
         s.class AS class, k.rank < 100 AS current, p.fingerprint, p.def_site_id, p.use_site_id, p.variable_id
    FROM (SELECT q.id AS pair_id, (SELECT min(rank) FROM evidence e WHERE e.pair_id = q.id) AS rank FROM pair q) k
    JOIN pair p ON p.id = k.pair_id
    JOIN state s ON s.rank = k.rank % 100
    JOIN variable v ON v.id = p.variable_id
    JOIN program g ON g.id = v.program_id
    JOIN place u ON u.site_id = p.use_site_id
    LEFT JOIN place d ON d.site_id = p.def_site_id;

-- Everything that coverage counts and no recorded run has shown, the most telling first.
CREATE VIEW uncovered AS
  SELECT pair_id, name, program, variable, def_kind, def_file, def_line, def_function, use_file, use_line, use_function,
         cross_thread, state, bound, evidence, relation, witness_id
    FROM defuse
   WHERE current AND state <> 'explicit' AND NOT (state = 'infeasible' AND bound = 'program')
   ORDER BY (SELECT rank FROM state WHERE name = defuse.state), cross_thread DESC, use_file, use_line, def_file, def_line;

-- Coverage states its denominator: `total` is every pair known for the current version but those that are infeasible for
-- the whole program. covered + predicted + infeasible_in_bound + unknown = total; infeasible is beside it.
CREATE VIEW coverage AS
  SELECT program,
         sum(class = 'covered') AS covered,
         sum(class = 'predicted') AS predicted,
         sum(state = 'implicit confirmed') AS confirmed,
         sum(state = 'infeasible' AND bound <> 'program') AS infeasible_in_bound,
         sum(class = 'unknown') AS unknown,
         sum(state = 'infeasible' AND bound = 'program') AS infeasible,
         count(*) - sum(state = 'infeasible' AND bound = 'program') AS total,
         round(100.0 * sum(class = 'covered') / nullif(count(*) - sum(state = 'infeasible' AND bound = 'program'), 0), 1) AS percent
    FROM defuse WHERE current GROUP BY program;

CREATE VIEW runs AS
  SELECT r.id AS run_id, 'r' || r.id AS name, g.path AS program, v.build_id, v.git_commit, v.current, r.recorder, r.mode, r.seed,
         r.argv, (SELECT group_concat(i.name || '=' || lower(hex(i.bytes)), ' ') FROM run_input i WHERE i.run_id = r.id) AS inputs,
         r.outcome, r.exit_code, r.events,
         (SELECT count(DISTINCT o.pair_id) FROM observation o WHERE o.run_id = r.id) AS pairs,
         (SELECT count(*) FROM verdict d WHERE d.run_id = r.id AND d.state IN ('implicit confirmed', 'implicit', 'diverged')) AS implicit,
         r.recorded_at, r.analysed_at, r.trace_path, r.semantics
    FROM run r JOIN version v ON v.id = r.version_id JOIN program g ON g.id = v.program_id;

-- Every definition that ran or that static analysis knows, and whether anything uses it.
--   used      seen, or predicted, to reach a read
--   undecided a pair of it is unknown, potential, or infeasible only within a bound
--   unused    no read in any trace or prediction takes it
--   dead      and static analysis shows that none can
CREATE VIEW definitions AS
  SELECT g.path AS program, n.name AS variable, a.file, a.line, a.function, a.text, t.executed,
         CASE WHEN EXISTS (SELECT 1 FROM pair p JOIN evidence e ON e.pair_id = p.id WHERE p.def_site_id = t.site_id
                             AND p.variable_id = t.variable_id AND e.rank IN (1, 2, 3, 4)) THEN 'used'
              WHEN t.static_done AND NOT EXISTS (SELECT 1 FROM pair p JOIN potential q ON q.pair_id = p.id
                             JOIN version v ON v.id = q.version_id AND v.current
                             WHERE p.def_site_id = t.site_id AND p.variable_id = t.variable_id) THEN 'dead'
              WHEN EXISTS (SELECT 1 FROM pair p JOIN evidence e ON e.pair_id = p.id WHERE p.def_site_id = t.site_id
                             AND p.variable_id = t.variable_id AND e.rank IN (5, 7)) THEN 'undecided'
              ELSE 'unused' END AS fate,
         t.site_id, t.variable_id
    FROM (SELECT site_id, variable_id, sum(n) AS executed, min(static_done) AS static_done FROM (
            SELECT x.site_id, x.variable_id, x.count AS n, v.static_done
              FROM access x JOIN run r ON r.id = x.run_id JOIN version v ON v.id = r.version_id
             WHERE x.kind IN ('write', 'rmw') AND v.current
            UNION ALL
            SELECT d.site_id, d.variable_id, 0, v.static_done FROM definition d JOIN version v ON v.id = d.version_id WHERE v.current)
          GROUP BY site_id, variable_id) t
    JOIN variable n ON n.id = t.variable_id JOIN program g ON g.id = n.program_id JOIN place a ON a.site_id = t.site_id;

-- A run that ended well: what the invariants are learned from.
CREATE VIEW passing_run AS
  SELECT r.id AS run_id, r.version_id FROM run r JOIN version v ON v.id = r.version_id
   WHERE v.current AND r.outcome = 'exited' AND r.exit_code = 0;

-- Violations of the DefUse invariants. Learned from observations in passing runs; broken by an observation in a run that
-- failed (source 'run') or by a prediction (source 'prediction').
--   Local/Remote    the read always took definitions of its own thread (or always of others), and takes one of the other kind
--   Follower        two consecutive reads of a variable in a thread always took the same definition, and here they do not
--   Definition set  the read takes a definition that it never took
CREATE VIEW invariants AS
  WITH learned AS MATERIALIZED (
    SELECT p.use_site_id, p.variable_id,
           min(o.def_thread_id IS NOT NULL AND o.def_thread_id <> o.use_thread_id) AS least,
           max(o.def_thread_id IS NOT NULL AND o.def_thread_id <> o.use_thread_id) AS most
      FROM observation o JOIN passing_run r ON r.run_id = o.run_id JOIN pair p ON p.id = o.pair_id
     WHERE p.def_kind <> 'external' GROUP BY p.use_site_id, p.variable_id),
  told AS MATERIALIZED (
    SELECT o.pair_id, o.run_id, 'run' AS source, NULL AS witness_id,
           o.def_thread_id IS NOT NULL AND o.def_thread_id <> o.use_thread_id AS remote
      FROM observation o JOIN run r ON r.id = o.run_id JOIN version v ON v.id = r.version_id
     WHERE v.current AND o.run_id NOT IN (SELECT run_id FROM passing_run)
    UNION ALL
    SELECT d.pair_id, d.run_id, 'prediction', d.witness_id, d.def_thread_id IS NOT NULL AND d.def_thread_id <> d.use_thread_id
      FROM verdict d JOIN version v ON v.id = d.version_id
     WHERE v.current AND d.state IN ('implicit confirmed', 'implicit', 'diverged')),
  trained AS MATERIALIZED (
    SELECT DISTINCT o.pair_id FROM observation o JOIN passing_run r ON r.run_id = o.run_id),
  follows AS MATERIALIZED (
    SELECT f.variable_id, f.first_site_id, f.second_site_id FROM follower f JOIN passing_run r ON r.run_id = f.run_id
     GROUP BY 1, 2, 3 HAVING sum(f.different) = 0),
  broken AS (
    SELECT 'Local/Remote' AS invariant, t.pair_id, p.variable_id, p.def_site_id, p.use_site_id, t.run_id, t.source, t.witness_id,
           CASE WHEN l.most THEN 'always took definitions of other threads' ELSE 'always took definitions of its own thread' END AS learned
      FROM told t JOIN pair p ON p.id = t.pair_id JOIN learned l ON l.use_site_id = p.use_site_id AND l.variable_id = p.variable_id
     WHERE l.least = l.most AND t.remote <> l.most AND p.def_kind <> 'external'
    UNION ALL
    SELECT 'Definition set', t.pair_id, p.variable_id, p.def_site_id, p.use_site_id, t.run_id, t.source, t.witness_id,
           'never took this definition'
      FROM told t JOIN pair p ON p.id = t.pair_id JOIN learned l ON l.use_site_id = p.use_site_id AND l.variable_id = p.variable_id
     WHERE t.pair_id NOT IN (SELECT pair_id FROM trained) AND p.def_kind <> 'external'
    UNION ALL
    SELECT 'Follower', w.pair_id, p.variable_id, p.def_site_id, p.use_site_id, w.run_id, 'prediction', w.id,
           'always took the definition that the read before it took'
      FROM witness w JOIN pair p ON p.id = w.pair_id JOIN run r ON r.id = w.run_id JOIN version v ON v.id = r.version_id
      JOIN follows f ON f.variable_id = p.variable_id AND f.first_site_id = w.follower_site_id AND f.second_site_id = p.use_site_id
     WHERE w.follower_breaks AND v.current
    UNION ALL
    SELECT 'Follower', NULL, f.variable_id, NULL, f.second_site_id, f.run_id, 'run', NULL,
           'always took the definition that the read before it took'
      FROM follower f JOIN run r ON r.id = f.run_id JOIN version v ON v.id = r.version_id
      JOIN follows g ON g.variable_id = f.variable_id AND g.first_site_id = f.first_site_id AND g.second_site_id = f.second_site_id
     WHERE f.different > 0 AND v.current AND f.run_id NOT IN (SELECT run_id FROM passing_run))
  SELECT b.invariant, g.path AS program, n.name AS variable, u.file AS use_file, u.line AS use_line, u.function AS use_function,
         b.learned, d.file AS def_file, d.line AS def_line, d.function AS def_function, b.source, 'r' || b.run_id AS run,
         CASE WHEN b.pair_id IS NOT NULL THEN 'p' || b.pair_id END AS pair, b.pair_id, b.witness_id
    FROM broken b JOIN variable n ON n.id = b.variable_id JOIN program g ON g.id = n.program_id
    JOIN place u ON u.site_id = b.use_site_id LEFT JOIN place d ON d.site_id = b.def_site_id;

CREATE VIEW findings AS
  SELECT f.id AS finding_id, 'f' || f.id AS name, g.path AS program, f.kind, f.message, p.file, p.line, p.function,
         t.path AS thread, CASE WHEN f.run_id IS NOT NULL THEN 'r' || f.run_id END AS run, f.test_id, f.found_at, v.current, f.fingerprint,
         f.execution, f.switches
    FROM finding f JOIN version v ON v.id = f.version_id JOIN program g ON g.id = v.program_id
    LEFT JOIN place p ON p.site_id = f.site_id LEFT JOIN thread t ON t.id = f.thread_id;

CREATE VIEW escorts AS
  SELECT g.path AS program, d.file AS def_file, d.line AS def_line, CASE WHEN e.def_site_id IS NULL THEN 'initial'
           WHEN e.def_outcome = 1 THEN 'true' WHEN e.def_outcome = 0 THEN 'false' WHEN e.def_outcome = -9223372036854775808 THEN 'default'
           ELSE 'case ' || e.def_outcome END AS def_outcome,
         u.file AS use_file, u.line AS use_line, CASE WHEN e.use_outcome = 1 THEN 'true' WHEN e.use_outcome = 0 THEN 'false'
           WHEN e.use_outcome = -9223372036854775808 THEN 'default' ELSE 'case ' || e.use_outcome END AS use_outcome,
         e.state, e.detail, CASE WHEN e.pair_id IS NOT NULL THEN 'p' || e.pair_id END AS pair, v.current
    FROM escort e JOIN version v ON v.id = e.version_id JOIN program g ON g.id = v.program_id
    LEFT JOIN place d ON d.site_id = e.def_site_id JOIN place u ON u.site_id = e.use_site_id;

-- How far `stem explore` has come.
CREATE VIEW explorations AS
  SELECT g.path AS program, v.build_id, x.goal, x.executions, x.repeated, x.diverged, x.minimising,
         (SELECT count(*) FROM escort e WHERE e.version_id = x.version_id AND e.state = 'covered') AS escorts_covered,
         (SELECT count(*) FROM escort e WHERE e.version_id = x.version_id) AS escorts,
         (SELECT count(*) FROM escort e WHERE e.version_id = x.version_id AND e.state = 'infeasible') AS escorts_infeasible,
         x.seconds, x.solver_seconds, x.memory_kb, ifnull(x.ended, 'running or killed') AS ended, x.updated, v.current
    FROM exploration x JOIN version v ON v.id = x.version_id JOIN program g ON g.id = v.program_id;
