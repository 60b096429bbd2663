#!/usr/bin/env python3
"""Every implicit pair of every end-to-end program is confirmed by replay.

Each program of tests/e2e/programs is compiled, recorded under several schedules, and analysed; every witness is replayed on
the program, and what a replay does not show is a failure. Prints how many pairs were predicted and how many confirmed. The
running example must have exactly its golden pairs on its three recorded runs, PREFIX and FULL.
"""

import argparse
import concurrent.futures
import json
import pathlib
import re
import sys
import tempfile
import time

from stemtest import PROGRAMS, Failure, Tools, check, run

KEY = re.compile(r"^\s*//\s*([A-Z][A-Z-]+)(?:\s+(\S+))?:\s?(.*)$")
SCHEDULES = [("default", []), ("random 1", ["--mode", "random", "--seed", "1"])]

GOLDEN = {  # inputs and schedule as in programs/s1.c; implicit pairs by line
    "pi1": ({"x 13 2", "z 0 13"}, {"x 13 2", "z 0 13"}),
    "pi2": ({"x 0 10"}, set()),
    "pi3": ({"x 13 4", "z 0 13", "x 5 10"}, {"x 13 4", "z 0 13"}),
}


def cases(source):
    """[(name, [(key, value)])]: what the comments of a program say, as in programs.py."""
    common, found = [], []
    for line in source.read_text().splitlines():
        match = KEY.match(line)
        if match and match[1] == "CASE":
            found.append((match[2] or match[3].strip(), []))
        elif match:
            (found[-1][1] if found else common).append((match[1], match[3].strip()))
    return [(name, common + lines) for name, lines in found] or [("", common)]


def analyze(tools, trace, *more):
    done = run([tools.stem, "analyze", trace, "--json", "--strict", "--no-store", "--events", "100000", "--timeout", "60", *more], timeout=300)
    check(done.returncode == 0, f"stem analyze {trace}: exit code {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)["traces"][0]


def name(pair):
    line = lambda a: 0 if a.get("initial") else a["line"]
    return f"{pair['variable']} {line(pair['def'])} {line(pair['use'])}"


def options_of(lines):
    return {key: [value for k, value in lines if k == key] for key, value in lines}


def record(tools, program, folder, name, options, lines):
    """The trace of one run, or nothing if the program does not leave one that can be analysed."""
    trace = folder / f"{program.stem}-{name.replace(' ', '')}.stemtrace"
    wanted = options_of(lines)
    inputs = [w for i in wanted.get("INPUT", []) for w in ("--input", i)]
    given = [w for r in wanted.get("RECORD", []) for w in r.split()]
    arguments = [w for a in wanted.get("ARGS", []) for w in a.split()]
    stdin = "".join(wanted.get("STDIN", [])).encode().decode("unicode_escape") or None
    run([tools.stem, "record", "--timeout", "20", "--output", trace, *inputs, *given, *options, program, *arguments], timeout=60, stdin=stdin, cwd=folder)
    return trace if trace.exists() else None


def predict(tools, source, folder):
    """(predicted, confirmed, unknown, problems)"""
    text = source.read_text()
    flags = [f for m in re.findall(r"^//\s*FLAGS:(.*)$", text, re.M) for f in m.split()]
    program = tools.compile(source, folder / source.stem, ["-O2", *flags])
    predicted = confirmed = unknown = 0
    problems = []
    lines = cases(source)[0][1]
    for schedule, options in SCHEDULES:
        trace = record(tools, program, folder, schedule, options, lines)
        if trace is None:
            continue
        result = analyze(tools, trace)
        for pair in result["pairs"]:
            implicit = pair["state"].startswith("implicit")
            predicted += implicit
            confirmed += pair["state"] == "implicit, confirmed"
            unknown += pair["state"] == "unknown"
            if implicit and pair["state"] != "implicit, confirmed":
                problems.append(f"{source.name}, {schedule}: {name(pair)}: {pair['state']}: {pair.get('detail', '')}")
    return predicted, confirmed, unknown, problems


def golden(tools, folder):
    source = PROGRAMS / "s1.c"
    program = tools.compile(source, folder / "golden", ["-O2"])
    for case, lines in cases(source):
        if case not in GOLDEN:
            continue
        wanted = options_of(lines)
        steps = [s.rsplit(":", 1) for s in wanted["SCHEDULE"][0].split()]
        test = folder / f"{case}.stemtest"
        test.write_text(json.dumps({"stem_test": 1, "program": {"path": str(program)},
                                    "schedule": [{"thread": t, "count": int(n)} for t, n in steps]}))
        trace = folder / f"{case}.stemtrace"
        inputs = [w for i in wanted["INPUT"] for w in ("--input", i)]
        done = run([tools.stem, "record", *inputs, "--output", trace, "--test", test])
        check(trace.exists(), f"{case}: no trace\n{done.stderr}")
        for meaning, want in zip(("prefix", "full"), GOLDEN[case]):
            result = analyze(tools, trace, "--feasible", meaning)
            found = {name(p) for p in result["pairs"] if p["state"].startswith("implicit")}
            check(found == want, f"S1 {case}, {meaning}: implicit {sorted(found)}, expected {sorted(want)}")
            left = [p for p in result["pairs"] if p["state"].startswith("implicit") and p["state"] != "implicit, confirmed"]
            check(not left, f"S1 {case}, {meaning}: not confirmed: {[(name(p), p.get('detail')) for p in left]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("prefix")
    parser.add_argument("--only", default="", help="programs whose name contains this")
    options = parser.parse_args()
    tools = Tools(options.prefix)
    sources = [s for s in sorted(PROGRAMS.iterdir()) if s.suffix in (".c", ".cpp") and options.only in s.name]
    failures = []
    totals = [0, 0, 0]
    start = time.time()
    with tempfile.TemporaryDirectory(prefix="stem-predict-") as scratch:
        folder = pathlib.Path(scratch)
        try:
            golden(tools, folder)
        except Failure as failure:
            failures.append(str(failure))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            jobs = {s: pool.submit(predict, tools, s, folder) for s in sources}
            for source, job in jobs.items():
                try:
                    predicted, confirmed, unknown, problems = job.result()
                    print(f"{source.name:24} predicted {predicted:4}  confirmed {confirmed:4}  unknown {unknown:4}")
                    totals = [a + b for a, b in zip(totals, (predicted, confirmed, unknown))]
                    failures += problems
                except Failure as failure:
                    failures.append(f"{source.name}: {failure}")
    print(f"predicted {totals[0]}, confirmed {totals[1]}, unknown {totals[2]}; {time.time() - start:.0f} s")
    for failure in failures:
        print(f"FAILED {failure}", file=sys.stderr)
    return 1 if failures or not totals[0] else 0


sys.exit(main())
