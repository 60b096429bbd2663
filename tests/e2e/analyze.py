#!/usr/bin/env python3
"""`stem analyze` around its verdicts: interrupts, time limits, refused traces, queries for the z3 program, JSON and statistics."""

import json
import re
import signal
import subprocess
import sys
import time

from stemtest import PROGRAMS, check, run, run_checks

GOLDEN = PROGRAMS.parent.parent / "golden"

# Racy reads that decide branches, and a read that never takes the initial value: the paper's formula is asked about each of its
# executions, and needs long for each.
RACY = """
#include <pthread.h>
int v[4], own;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *worker(void *p) {
  int me = (int)(long)p;
  for (int i = 0; i < ROUNDS; ++i) {
    if (v[i % 4] < v[(i + me) % 4]) v[(i + 1) % 4] = v[i % 4] + me;
    else v[(i + 2) % 4] = i;
    pthread_mutex_lock(&m);
    own = i + me;
    if (own == 0) v[0] = 1;
    pthread_mutex_unlock(&m);
  }
  return 0;
}
int main(void) {
  pthread_t t[3];
  for (long i = 0; i < 3; ++i) pthread_create(&t[i], 0, worker, (void *)(i + 1));
  for (int i = 0; i < 3; ++i) pthread_join(t[i], 0);
  return 0;
}
"""


# Races late in a run of some thousand events.
LONG = """
#include <pthread.h>
int early, late, sum, own;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *worker(void *p) {
  int me = (int)(long)p;
  for (int i = 0; i < 400; ++i) {
    pthread_mutex_lock(&m);
    own += me;
    pthread_mutex_unlock(&m);
    if (me == 1 && i == 380) late = 1;
    if (me == 2 && i == 384) sum = late;
    if (me == 3 && i == 380) own = early;
    if (me == 1 && i == 384) early = 1;
  }
  return 0;
}
int main(void) {
  pthread_t t[3];
  for (long i = 0; i < 3; ++i) pthread_create(&t[i], 0, worker, (void *)(i + 1));
  for (int i = 0; i < 3; ++i) pthread_join(t[i], 0);
  return 0;
}
"""


def racy(tools, folder, rounds):
    source = folder / "racy.c"
    source.write_text(RACY)
    program = tools.compile(source, folder / "racy", ["-O1", f"-DROUNDS={rounds}"])
    done = run([tools.stem, "record", "--mode", "random", "--seed", "3", program], cwd=folder)
    check(done.returncode == 0, done.stderr)


def interrupted_by(folder, command, after):
    child = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(after)
    if child.poll() is not None:
        check(False, f"{command} ended before it could be interrupted\n{child.communicate()[0]}")
    child.send_signal(signal.SIGINT)
    began = time.time()
    out, err = child.communicate(timeout=120)
    check(child.returncode == 0, f"exit code {child.returncode}\n{out}{err}")
    return out, time.time() - began


def interrupt(tools, folder):
    """What was decided is printed and stored; the solver is stopped in the middle of a question."""
    racy(tools, folder, 14)
    slow = ["--no-confirm", "--encoding", "paper", "--query-timeout", "0"]
    out, took = interrupted_by(folder, [tools.stem, "analyze", *slow], 4)
    check("interrupted: what was decided until then stands" in out, out)
    explicit, unknown = (int(re.search(rf"(\d+) {word}", out)[1]) for word in ("explicit", "unknown"))
    check(explicit > 0 and unknown > 0, out)
    check("unknown (interrupted)" in out, out)
    check(took < 60, f"{took:.0f} s from the signal to the end")
    # Of FULL, only what is shown is stored: what it leaves open or refutes says nothing about PREFIX.
    rows = run([tools.stem, "query", "--format", "json", "SELECT state, count(*) AS n FROM defuse GROUP BY state"], cwd=folder)
    stored = {row["state"]: row["n"] for row in json.loads(rows.stdout)}
    check(stored == {"explicit": explicit}, f"stored {stored}\n{out}")
    out, took = interrupted_by(folder, [tools.stem, "analyze", *slow, "--no-store", "--json"], 4)
    check(json.loads(out)["traces"][0]["interrupted"] is True, "the JSON does not say that it was interrupted")


def time_limits(tools, folder):
    racy(tools, folder, 14)
    began = time.time()
    done = run([tools.stem, "analyze", "--no-confirm", "--encoding", "paper", "--query-timeout", "0", "--timeout", "2", "--json"], timeout=120, cwd=folder)
    check(time.time() - began < 60, f"{time.time() - began:.0f} s with --timeout 2")
    pairs = json.loads(done.stdout)["traces"][0]["pairs"]
    left = [p for p in pairs if p["state"] == "unknown"]
    check(left and all(p["reason"] in ("budget spent", "not tried") for p in left), f"{[(p.get('reason'), p.get('detail')) for p in left][:5]}")
    check(all(p["layer"] == "paper" for p in pairs if p["state"] == "infeasible"), "refuted without having been asked")


def refused(tools, folder):
    text = (GOLDEN / "s1-pi1.trace").read_text()
    read = re.search(r"^.* read .*$", text, re.M)[0]
    cases = {"nonsense.trace": ("stem-trace nonsense\n", "nonsense.trace"),
             "value.trace": (text.replace(read, re.sub(r"value=\d+", "value=77", read), 1), r"no analysis has a meaning for this trace:\s+event 9")}
    for name, (content, expected) in cases.items():
        path = folder / name
        path.write_text(content)
        done = run([tools.stem, "analyze", path], cwd=folder)
        check(done.returncode == 2, f"{name}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        check(re.search(expected, done.stderr), f"{name}: {done.stderr}")


def queries(tools, folder):
    """Every question is written out, and the z3 program answers as it was answered."""
    for trace, more in (("s1-pi1", ["--encoding", "paper"]), ("s1-pi3", ["--encoding", "paper"]), ("s1-pi2", ["--branches"])):
        smt = folder / f"{trace}-smt"
        done = run([tools.stem, "analyze", GOLDEN / f"{trace}.trace", "--no-confirm", "--dump-smt", smt, *more], cwd=folder)
        check(done.returncode == 0, done.stderr)
        files = sorted(smt.glob("*.smt2"))
        check(files, f"{trace} {more}: nothing was written")
        answers = set()
        for path in files:
            said = re.match(r"; (\S+): .* answered (\w+)", path.read_text())
            check(said and said[1] == path.stem, f"{path.name} does not say what it asks")
            answer = run(["z3", path]).stdout.split()[0]
            check(answer == said[2], f"{path.name}: z3 says {answer}, STEM {said[2]}")
            answers.add(answer)
        check(more == ["--branches"] or answers == {"sat", "unsat"}, f"{trace}: {answers}")


def parts(tools, folder):
    """A trace that is longer than what is held in memory: all of it is looked at, in parts, and every witness is confirmed."""
    source = folder / "long.c"
    source.write_text(LONG)
    program = tools.compile(source, folder / "long", ["-O1"])
    done = run([tools.stem, "record", "--mode", "random", "--seed", "3", program], cwd=folder)
    check(done.returncode == 0, done.stderr)

    def analyze(*more):
        done = run([tools.stem, "analyze", "--json", "--strict", *more], timeout=600, cwd=folder)
        check(done.returncode == 0, done.stderr)
        result = json.loads(done.stdout)["traces"][0]
        line = lambda a: 0 if a.get("initial") else (a["line"], a["column"])
        return result, {(p["variable"], line(p["def"]), line(p["use"])): p for p in result["pairs"]}

    limits = ["--window", "300"]
    whole, known = analyze("--no-confirm", "--no-store", *limits)
    result, found = analyze("--events", "1000", *limits)
    events = whole["statistics"]["events"]
    check(events > 4 * 1000 and result["statistics"]["events"] == events, f"{events} events, {result['statistics']['events']} in parts")
    check(found.keys() == known.keys(), f"{sorted(set(found) ^ set(known))}")
    for key, pair in found.items():
        same = known[key]
        check((pair["state"] == "explicit") == (same["state"] == "explicit"), f"{key}: {pair['state']}, in memory {same['state']}")
        check(pair["observed"] == same["observed"] and pair["instances"] == same["instances"], f"{key}: counted {pair} {same}")
        check(not pair["state"].startswith("implicit") or pair["state"] == "implicit, confirmed", f"{key}: {pair['state']}: {pair.get('detail')}")
        check(pair["state"] != "infeasible" or pair["bound"] != "trace", f"{key}: refuted for the whole trace, which nobody looked at at once")
        check(pair["state"] != "unknown" or pair["detail"], f"{key}: unknown without a reason")
    confirmed = [key for key, pair in found.items() if pair["state"] == "implicit, confirmed"]
    check({variable for variable, _, _ in confirmed} >= {"early"}, f"confirmed: {confirmed}")
    check(any(re.search(r"loaded in \d+ parts", note) for note in result["notes"]), str(result["notes"]))
    stored = run([tools.stem, "query", "--format", "json", "SELECT count(*) AS n FROM defuse WHERE state = 'implicit confirmed'"], cwd=folder)
    check(json.loads(stored.stdout)[0]["n"] == len(confirmed), f"{stored.stdout} stored, {len(confirmed)} confirmed")
    # What must execute as a whole cannot be shown in parts.
    full, _ = analyze("--events", "1000", "--feasible", "full", "--no-confirm", "--no-store", *limits)
    check(not any(p["state"].startswith("implicit") for p in full["pairs"]), "FULL pairs shown by a part")
    check(any("whether all" in p.get("detail", "") for p in full["pairs"] if p["state"] == "unknown"), "no reason")
    done = run([tools.stem, "analyze", "--events", "1000", "--encoding", "paper"], cwd=folder)
    check(done.returncode == 2 and "raise --events" in done.stderr, done.stderr)


def figures(tools, folder):
    trace = GOLDEN / "s1-pi3.trace"
    done = run([tools.stem, "analyze", trace, "--all", "--stats"], cwd=folder)
    for text in (r"^  implicit .*:5.* -> .*:10", r"4 explicit, 3 implicit, 0 unknown, \d+ infeasible",
                 r"static candidates", r"decided by observed +4", r"s in the solver"):
        check(re.search(text, done.stdout, re.M), f"no {text!r} in\n{done.stdout}")
    done = run([tools.stem, "analyze", trace, "--json"], cwd=folder)
    result = json.loads(done.stdout)["traces"][0]
    check(result["feasible"] == "prefix" and result["encoding"] == "engine" and not result["interrupted"], str(result)[:300])
    implicit = [p for p in result["pairs"] if p["state"] == "implicit"]
    check(len(implicit) == 3 and all(p["witness"]["schedule"] for p in implicit), str(implicit)[:300])
    check(sum(result["statistics"]["decided"].values()) == result["statistics"]["candidates"], str(result["statistics"]))


sys.exit(run_checks([interrupt, time_limits, refused, queries, parts, figures], sys.argv))
