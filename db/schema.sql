-- The def-use database: everything that recording and analysis learn, in one SQLite file (.stem/stem.db).
--
-- What is a row, and what makes two rows the same thing:
--   * a program is its path below the project's folder; a version of it is a build id;
--   * a site is (program, structural key): it survives edits elsewhere, only its place in the source belongs to a version;
--   * a variable and a thread are (program, name): threads are named by creation path, so they mean the same in every run;
--   * a pair is (variable, definition, use). What is known about it is evidence: observations (seen in a recorded run),
--     verdicts (inferred from a run, or about a whole version), and potential (static analysis allows it).
-- A pair's state is never stored; the views derive it from the evidence, so that it cannot disagree with it.
--
-- People read the views at the end of this file; their columns are stable: later versions add, never rename or remove.
-- Text that came from a program (names, paths) is stored byte for byte, valid UTF-8 or not; output escapes it.
-- A change here comes with a file in db/migrations/ and a higher number in db/version.h.

-- ---- what was built ---------------------------------------------------------------------------------------------

CREATE TABLE program (
  id INTEGER PRIMARY KEY,
  path TEXT NOT NULL UNIQUE               -- below the project's folder, absolute if outside it
);

CREATE TABLE version (
  id INTEGER PRIMARY KEY,
  program_id INTEGER NOT NULL REFERENCES program(id) ON DELETE CASCADE,
  build_id TEXT NOT NULL,                 -- hex
  git_commit TEXT,                        -- of the sources, where there is one
  git_dirty INTEGER NOT NULL DEFAULT 0,   -- 1: the sources had changes that were not committed
  first_seen TEXT NOT NULL,               -- UTC
  last_seen TEXT NOT NULL,                -- UTC; the newest version of a program is the one with the latest
  current INTEGER NOT NULL DEFAULT 1,     -- 1: no source file differs from the newest version of the program
  static_done INTEGER NOT NULL DEFAULT 0, -- 1: all its potential pairs are in `potential`
  UNIQUE (program_id, build_id)
);

CREATE TABLE source_text (                -- one copy of each content, so that a report needs no checkout
  hash TEXT PRIMARY KEY,
  bytes BLOB NOT NULL
) WITHOUT ROWID;

CREATE TABLE source (
  version_id INTEGER NOT NULL REFERENCES version(id) ON DELETE CASCADE,
  path TEXT NOT NULL,                     -- below the project's folder, absolute if outside it
  hash TEXT NOT NULL,                     -- of the content
  PRIMARY KEY (version_id, path)
) WITHOUT ROWID;

CREATE TABLE site (
  id INTEGER PRIMARY KEY,
  program_id INTEGER NOT NULL REFERENCES program(id) ON DELETE CASCADE,
  key TEXT NOT NULL,                      -- 16 hex digits
  UNIQUE (program_id, key)
);

CREATE TABLE site_at (                    -- where a site is in one version
  site_id INTEGER NOT NULL REFERENCES site(id) ON DELETE CASCADE,
  version_id INTEGER NOT NULL REFERENCES version(id) ON DELETE CASCADE,
  file TEXT,
  line INTEGER,                           -- NULL: unknown
  column INTEGER,
  function TEXT,
  text TEXT,                              -- the access as the programmer would write it: q->head
  PRIMARY KEY (site_id, version_id)
) WITHOUT ROWID;
CREATE INDEX site_at_version ON site_at(version_id);

CREATE TABLE variable (
  id INTEGER PRIMARY KEY,
  program_id INTEGER NOT NULL REFERENCES program(id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  UNIQUE (program_id, name)
);

CREATE TABLE thread (
  id INTEGER PRIMARY KEY,
  program_id INTEGER NOT NULL REFERENCES program(id) ON DELETE CASCADE,
  path TEXT NOT NULL,                     -- main, main/1, main/1/2
  start TEXT,                             -- the function it ran when last seen
  UNIQUE (program_id, path)
);

-- ---- what was run -------------------------------------------------------------------------------------------------

CREATE TABLE test (                       -- an input and a schedule prefix, as `stem replay` takes it
  id INTEGER PRIMARY KEY,
  program_id INTEGER NOT NULL REFERENCES program(id) ON DELETE CASCADE,
  hash TEXT NOT NULL,                     -- of json
  origin TEXT NOT NULL,                   -- witness, branch, assertion, order, finding, start, random, pct, user
  status TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'done', 'diverged')),
  priority REAL NOT NULL DEFAULT 0,       -- higher runs first
  json TEXT NOT NULL,
  created TEXT NOT NULL,
  detail TEXT,                            -- what it is meant to show
  UNIQUE (program_id, hash)
);

CREATE TABLE run (
  id INTEGER PRIMARY KEY,
  version_id INTEGER NOT NULL REFERENCES version(id) ON DELETE CASCADE,
  trace_hash TEXT NOT NULL UNIQUE,        -- of the trace's content: importing it again changes nothing
  trace_path TEXT,
  recorder TEXT NOT NULL,                 -- compiled, valgrind, pin
  semantics INTEGER NOT NULL DEFAULT 1,   -- 0: no expressions were recorded, inputs cannot be solved for
  mode TEXT NOT NULL,                     -- default, random, pct, guided, parallel
  seed INTEGER NOT NULL DEFAULT 0,
  argv TEXT NOT NULL DEFAULT '[]',        -- JSON
  cwd TEXT,
  schedule TEXT,                          -- JSON [[thread path, visible events], ...]; NULL when too long: the trace has it
  test_id INTEGER REFERENCES test(id) ON DELETE SET NULL,
  outcome TEXT NOT NULL,                  -- exited, signalled, deadlock, livelock, diverged, assert-failed, truncated
  exit_code INTEGER NOT NULL DEFAULT 0,   -- or the signal
  events INTEGER NOT NULL DEFAULT 0,
  recorded_at TEXT,                       -- UTC
  imported_at TEXT NOT NULL,              -- UTC
  analysed_at TEXT,                       -- UTC; NULL: only observed pairs are known
  paths TEXT,                             -- hash of what every thread did, one after the other: branches, accesses, what is held fixed
  visible TEXT                            -- hash of the branches and of the order of visible events: two such runs are the same
);
CREATE INDEX run_version ON run(version_id);

CREATE TABLE run_input (
  run_id INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  name TEXT NOT NULL,
  bytes BLOB NOT NULL,
  PRIMARY KEY (run_id, ordinal)
) WITHOUT ROWID;

CREATE TABLE access (                     -- what executed, whether or not anything flowed
  run_id INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
  site_id INTEGER NOT NULL REFERENCES site(id) ON DELETE CASCADE,
  variable_id INTEGER NOT NULL REFERENCES variable(id) ON DELETE CASCADE,
  kind TEXT NOT NULL CHECK (kind IN ('read', 'write', 'rmw')),
  count INTEGER NOT NULL,
  PRIMARY KEY (run_id, site_id, variable_id, kind)
) WITHOUT ROWID;
CREATE INDEX access_site ON access(site_id);

CREATE TABLE branch (
  run_id INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
  site_id INTEGER NOT NULL REFERENCES site(id) ON DELETE CASCADE,
  outcome INTEGER NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (run_id, site_id, outcome)
) WITHOUT ROWID;

CREATE TABLE follower (                   -- two consecutive reads of one variable in one thread
  run_id INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
  variable_id INTEGER NOT NULL REFERENCES variable(id) ON DELETE CASCADE,
  first_site_id INTEGER NOT NULL REFERENCES site(id) ON DELETE CASCADE,
  second_site_id INTEGER NOT NULL REFERENCES site(id) ON DELETE CASCADE,
  same INTEGER NOT NULL,                  -- how often both took the same definition
  different INTEGER NOT NULL,
  PRIMARY KEY (run_id, variable_id, first_site_id, second_site_id)
) WITHOUT ROWID;

-- ---- def-use pairs and what is known about them ---------------------------------------------------------------------

CREATE TABLE state (                      -- the states of a pair; over several traces the lowest rank wins
  name TEXT PRIMARY KEY,
  rank INTEGER NOT NULL UNIQUE,
  class TEXT NOT NULL                     -- what it counts as in coverage
) WITHOUT ROWID;
INSERT INTO state VALUES
  ('explicit', 1, 'covered'),             -- seen in a recorded run
  ('implicit confirmed', 2, 'predicted'), -- predicted, and its witness replayed on the real program
  ('implicit', 3, 'predicted'),           -- predicted; the witness was not replayed
  ('diverged', 4, 'predicted'),           -- predicted; the replay left the schedule
  ('unknown', 5, 'unknown'),              -- not decided: a budget ran out, or memory that no recorder sees
  ('infeasible', 6, 'infeasible'),        -- shown impossible, within a bound
  ('potential', 7, 'unknown');            -- allowed by static analysis; nothing else is known

CREATE TABLE pair (
  id INTEGER PRIMARY KEY,
  variable_id INTEGER NOT NULL REFERENCES variable(id) ON DELETE CASCADE,
  def_kind TEXT NOT NULL CHECK (def_kind IN ('write', 'initial', 'external')),
  def_site_id INTEGER REFERENCES site(id) ON DELETE CASCADE,  -- NULL unless def_kind is write
  use_site_id INTEGER NOT NULL REFERENCES site(id) ON DELETE CASCADE,
  fingerprint TEXT NOT NULL,              -- of program, variable and site keys: the same in every database
  CHECK ((def_kind = 'write') = (def_site_id IS NOT NULL))
);
CREATE UNIQUE INDEX pair_identity ON pair(variable_id, use_site_id, def_kind, ifnull(def_site_id, 0));
CREATE INDEX pair_use ON pair(use_site_id);
CREATE INDEX pair_def ON pair(def_site_id);
CREATE INDEX pair_fingerprint ON pair(fingerprint);

CREATE TABLE relation (                   -- what stands between the two accesses of a pair; the highest rank is told
  name TEXT PRIMARY KEY,
  rank INTEGER NOT NULL UNIQUE
) WITHOUT ROWID;
INSERT INTO relation VALUES
  ('unknown', 0),
  ('same thread', 1),
  ('ordered', 2),                         -- by create, join, condition variable, semaphore, barrier, once
  ('atomic', 3),                          -- both are atomic accesses
  ('common lock', 4),                     -- both hold the same mutex
  ('ordered by locks in this run', 5),    -- only by the order in which mutexes were taken
  ('data race', 6);                       -- nothing orders them

CREATE TABLE observation (                -- explicit: the flow happened
  id INTEGER PRIMARY KEY,
  pair_id INTEGER NOT NULL REFERENCES pair(id) ON DELETE CASCADE,
  run_id INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
  def_thread_id INTEGER REFERENCES thread(id),  -- NULL: no thread wrote it (initial, external)
  use_thread_id INTEGER NOT NULL REFERENCES thread(id),
  count INTEGER NOT NULL,
  relation TEXT NOT NULL DEFAULT 'unknown' REFERENCES relation(name),
  first_event INTEGER                     -- index in the trace of the first such read
);
CREATE UNIQUE INDEX observation_identity
  ON observation(pair_id, run_id, ifnull(def_thread_id, 0), use_thread_id);
CREATE INDEX observation_run ON observation(run_id);

CREATE TABLE witness (                    -- how a predicted pair comes about
  id INTEGER PRIMARY KEY,
  pair_id INTEGER NOT NULL REFERENCES pair(id) ON DELETE CASCADE,
  run_id INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,  -- the trace it was predicted from
  test_id INTEGER REFERENCES test(id),
  status TEXT NOT NULL CHECK (status IN ('predicted', 'confirmed', 'diverged')),
  detail TEXT,                            -- where and why the replay diverged
  outcome TEXT,                           -- how the replayed run ended, if that was a failure
  def_step INTEGER,                       -- ordinals of the two accesses in witness_step
  use_step INTEGER,
  steps INTEGER NOT NULL DEFAULT 0,       -- visible events of the whole witness; witness_step may leave some out
  follower_site_id INTEGER REFERENCES site(id),  -- the read of the variable before the use in its thread, if there is one
  follower_breaks INTEGER NOT NULL DEFAULT 0     -- 1: that read took another definition
);
CREATE INDEX witness_pair ON witness(pair_id);
CREATE INDEX witness_run ON witness(run_id);

CREATE TABLE witness_step (
  witness_id INTEGER NOT NULL REFERENCES witness(id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  thread_id INTEGER NOT NULL REFERENCES thread(id),
  site_id INTEGER REFERENCES site(id),
  kind TEXT NOT NULL,                     -- as in the text form of a trace: read, write, lock, ...
  detail TEXT,                            -- what people read: x = 3
  skipped INTEGER NOT NULL DEFAULT 0,     -- events left out before this one
  PRIMARY KEY (witness_id, ordinal)
) WITHOUT ROWID;

CREATE TABLE verdict (                    -- what analysis says of a pair that was not observed in that run
  id INTEGER PRIMARY KEY,
  pair_id INTEGER NOT NULL REFERENCES pair(id) ON DELETE CASCADE,
  version_id INTEGER NOT NULL REFERENCES version(id) ON DELETE CASCADE,
  run_id INTEGER REFERENCES run(id) ON DELETE CASCADE,  -- NULL: about the whole program
  state TEXT NOT NULL REFERENCES state(name)
    CHECK (state IN ('implicit confirmed', 'implicit', 'diverged', 'unknown', 'infeasible')),
  bound TEXT CHECK (bound IN ('window', 'trace', 'program')),  -- infeasible: within what it was shown
  layer TEXT,                             -- which technique decided it
  reason TEXT,                            -- unknown: why
  tried INTEGER,                          -- instances decided ...
  total INTEGER,                          -- ... of how many
  def_thread_id INTEGER REFERENCES thread(id),
  use_thread_id INTEGER REFERENCES thread(id),
  relation TEXT NOT NULL DEFAULT 'unknown' REFERENCES relation(name),
  witness_id INTEGER REFERENCES witness(id) ON DELETE SET NULL,
  millis REAL,                            -- time it took
  CHECK ((state = 'infeasible') = (bound IS NOT NULL))
);
CREATE UNIQUE INDEX verdict_identity ON verdict(pair_id, version_id, ifnull(run_id, 0));
CREATE INDEX verdict_run ON verdict(run_id);

CREATE TABLE potential (                  -- static analysis allows it
  pair_id INTEGER NOT NULL REFERENCES pair(id) ON DELETE CASCADE,
  version_id INTEGER NOT NULL REFERENCES version(id) ON DELETE CASCADE,
  PRIMARY KEY (pair_id, version_id)
) WITHOUT ROWID;

CREATE TABLE definition (                 -- every write site that static analysis knows (a write that no pair uses is dead)
  site_id INTEGER NOT NULL REFERENCES site(id) ON DELETE CASCADE,
  variable_id INTEGER NOT NULL REFERENCES variable(id) ON DELETE CASCADE,
  version_id INTEGER NOT NULL REFERENCES version(id) ON DELETE CASCADE,
  PRIMARY KEY (site_id, variable_id, version_id)
) WITHOUT ROWID;

CREATE TABLE escort (                     -- escort branch pairs: a potential pair lies between the two outcomes
  id INTEGER PRIMARY KEY,
  version_id INTEGER NOT NULL REFERENCES version(id) ON DELETE CASCADE,
  def_site_id INTEGER REFERENCES site(id) ON DELETE CASCADE,  -- NULL: an initial definition
  def_outcome INTEGER NOT NULL DEFAULT 0,
  use_site_id INTEGER NOT NULL REFERENCES site(id) ON DELETE CASCADE,
  use_outcome INTEGER NOT NULL,
  state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'covered', 'infeasible', 'not found')),
  pair_id INTEGER REFERENCES pair(id) ON DELETE SET NULL,  -- the pair that covered it
  detail TEXT
);
CREATE UNIQUE INDEX escort_identity ON escort(version_id, ifnull(def_site_id, 0), def_outcome, use_site_id, use_outcome);

CREATE TABLE finding (                    -- crash, failed assertion, deadlock, hang
  id INTEGER PRIMARY KEY,
  version_id INTEGER NOT NULL REFERENCES version(id) ON DELETE CASCADE,
  run_id INTEGER REFERENCES run(id) ON DELETE SET NULL,
  test_id INTEGER REFERENCES test(id),
  kind TEXT NOT NULL,                     -- as run.outcome
  message TEXT NOT NULL,
  site_id INTEGER REFERENCES site(id),
  thread_id INTEGER REFERENCES thread(id),
  fingerprint TEXT NOT NULL,              -- kind, site, message
  found_at TEXT NOT NULL,                 -- UTC
  execution INTEGER,                      -- which execution of an exploration showed it first; NULL: another command did
  switches INTEGER,                       -- of threads in its test, after minimisation
  UNIQUE (version_id, fingerprint)
);

-- ---- exploration ----------------------------------------------------------------------------------------------------

CREATE TABLE negation (                   -- can this branch (or assertion) of a run go another way?
  run_id INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
  event INTEGER NOT NULL,                 -- index in the trace
  ask INTEGER NOT NULL DEFAULT 0,         -- the how-many-eth answer about this event
  state TEXT NOT NULL CHECK (state IN ('feasible', 'infeasible', 'unknown')),
  bounded INTEGER NOT NULL DEFAULT 0,     -- infeasible: something was held fixed, so it is no proof for the program
  detail TEXT,                            -- what was held fixed, or why nobody knows
  test_id INTEGER REFERENCES test(id) ON DELETE SET NULL,  -- feasible: what leads there
  PRIMARY KEY (run_id, event, ask)
) WITHOUT ROWID;

CREATE TABLE exploration (                -- how far `stem explore` has come with a version, over all its sessions
  version_id INTEGER PRIMARY KEY REFERENCES version(id) ON DELETE CASCADE,
  goal TEXT NOT NULL,                     -- pairs, escort
  executions INTEGER NOT NULL DEFAULT 0,  -- of the program, confirming replays included
  repeated INTEGER NOT NULL DEFAULT 0,    -- of these: the same as an earlier one
  minimising INTEGER NOT NULL DEFAULT 0,  -- executions besides, to minimise findings
  diverged INTEGER NOT NULL DEFAULT 0,    -- tests that the program did not follow
  seconds REAL NOT NULL DEFAULT 0,
  solver_seconds REAL NOT NULL DEFAULT 0,
  memory_kb INTEGER NOT NULL DEFAULT 0,   -- the most that stem itself used
  ended TEXT,                             -- why the last session ended: complete, goal, runs, time, interrupted; NULL: it was killed
  updated TEXT NOT NULL                   -- UTC
);

CREATE TABLE solver_stat (
  run_id INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  value REAL NOT NULL,
  PRIMARY KEY (run_id, name)
) WITHOUT ROWID;
