-- What `stem explore` keeps: signatures of runs, answers about branches, and how far it has come.
ALTER TABLE test ADD COLUMN detail TEXT;
ALTER TABLE run ADD COLUMN paths TEXT;
ALTER TABLE run ADD COLUMN visible TEXT;
ALTER TABLE finding ADD COLUMN execution INTEGER;
ALTER TABLE finding ADD COLUMN switches INTEGER;

CREATE TABLE negation (
  run_id INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
  event INTEGER NOT NULL,
  ask INTEGER NOT NULL DEFAULT 0,
  state TEXT NOT NULL CHECK (state IN ('feasible', 'infeasible', 'unknown')),
  bounded INTEGER NOT NULL DEFAULT 0,
  detail TEXT,
  test_id INTEGER REFERENCES test(id) ON DELETE SET NULL,
  PRIMARY KEY (run_id, event, ask)
) WITHOUT ROWID;

CREATE TABLE exploration (
  version_id INTEGER PRIMARY KEY REFERENCES version(id) ON DELETE CASCADE,
  goal TEXT NOT NULL,
  executions INTEGER NOT NULL DEFAULT 0,
  repeated INTEGER NOT NULL DEFAULT 0,
  minimising INTEGER NOT NULL DEFAULT 0,
  diverged INTEGER NOT NULL DEFAULT 0,
  seconds REAL NOT NULL DEFAULT 0,
  solver_seconds REAL NOT NULL DEFAULT 0,
  memory_kb INTEGER NOT NULL DEFAULT 0,
  ended TEXT,
  updated TEXT NOT NULL
);
