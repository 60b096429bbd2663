#!/usr/bin/env python3
"""The running example, recorded and analysed for real: its twelve pairs in every format; and the demo's program.

usage: reports.py BUILD
"""

import json
import re
import sys
import tempfile
import pathlib

from stemtest import PROGRAMS, ROOT, Failure, Tools, check, run

# variable, line of the definition (0: initial), line of the use
TWELVE = {("x", 0, 2), ("x", 13, 2), ("x", 0, 4), ("x", 13, 4), ("x", 0, 10), ("x", 5, 10),
          ("z", 2, 13), ("z", 0, 13), ("z", 4, 13), ("z", 4, 11), ("y", 0, 9), ("y", 0, 7)}


def cases(source):
    """The inputs and schedules of s1.c, and one more with input (1,6,3)."""
    found = []
    for line in source.splitlines():
        if match := re.match(r"// CASE (\w+):", line):
            found.append({"inputs": [], "schedule": []})
        elif match := re.match(r"// INPUT: (\S+)", line):
            found[-1]["inputs"].append(match[1])
        elif match := re.match(r"// SCHEDULE: (.*)", line):
            found[-1]["schedule"] = [{"thread": t, "count": int(n)} for t, n in (step.split(":") for step in match[1].split())]
    found.append({"inputs": ["a=1", "b=6", "c=3"], "schedule": found[1]["schedule"]})
    return found


def stem(tools, folder, *arguments, code=0):
    done = run([tools.stem, *arguments], cwd=folder, timeout=120)
    check(code is None or done.returncode == code, f"stem {' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stdout[-1500:]}{done.stderr[-1500:]}")
    return done


def running_example(tools, folder):
    source = folder / "s1.c"
    source.write_text((PROGRAMS / "s1.c").read_text())
    tools.compile(source, folder / "s1", ["-O1"])
    for i, case in enumerate(cases(source.read_text())):
        test = folder / f"case{i}.stemtest"
        test.write_text(json.dumps({"stem_test": 1, "program": {"path": "./s1"}, "schedule": case["schedule"]}))
        inputs = [word for value in case["inputs"] for word in ("--input", value)]
        stem(tools, folder, "record", "--schedule", test, *inputs, "./s1")
        stem(tools, folder, "analyze", str(i + 1))

    shared = "variable IN ('x', 'y', 'z')"
    rows = json.loads(stem(tools, folder, "query", f"SELECT variable, ifnull(def_line, 0) AS d, use_line AS u, state FROM defuse WHERE {shared}", "--format", "json").stdout)
    real = {(r["variable"], r["d"], r["u"]) for r in rows if r["state"] in ("explicit", "implicit confirmed")}
    check(real == TWELVE, f"the twelve pairs: missing {TWELVE - real}, extra {real - TWELVE}")
    check(not [r for r in rows if r["state"] in ("implicit", "diverged", "unknown")], f"every prediction is confirmed: {rows}")
    fate = json.loads(stem(tools, folder, "query", "SELECT fate FROM definitions WHERE variable = 'y' AND line = 11", "--format", "json").stdout)
    check([f["fate"] for f in fate] in (["unused"], ["dead"]), f"y at 11 is used by nobody: {fate}")

    text = stem(tools, folder, "report").stdout
    check("y: never used in any trace or prediction" in text or "y: dead" in text, "the text report shows y at 11")
    data = json.loads(stem(tools, folder, "report", "--format", "json").stdout)
    check({(p["variable"], p["def"]["line"] if p["def"] else 0, p["use"]["line"]) for p in data["pairs"] if p["state"] in ("explicit", "implicit confirmed") and p["variable"] in "xyz"} == TWELVE, "json")
    log = json.loads(stem(tools, folder, "report", "--format", "sarif").stdout)
    flows = [r for r in log["runs"][0]["results"] if r["ruleId"] == "stem/unexercised-flow"]
    confirmed = [r for r in rows if r["state"] == "implicit confirmed"]
    check(len(flows) >= len(confirmed) and all("codeFlows" in r for r in flows), "sarif: a witness for every prediction")
    check("### Def-use coverage:" in stem(tools, folder, "report", "--format", "markdown").stdout, "markdown")
    check(stem(tools, folder, "report", "--format", "lcov").stdout.count("BRDA:") >= 12, "lcov")
    check("<!doctype html>" in stem(tools, folder, "report", "--format", "html").stdout, "html")

    before = stem(tools, folder, "query", "SELECT * FROM defuse", "--format", "csv").stdout
    for i in range(4):
        stem(tools, folder, "analyze", str(i + 1))
    after = stem(tools, folder, "query", "SELECT * FROM defuse", "--format", "csv").stdout
    strip = lambda text: re.sub(r",\d*,(covered|predicted|unknown|infeasible),", r",,\1,", text)  # witness ids move on
    check(strip(before) == strip(after), "importing and analysing again changes nothing")


def demo(tools, folder):
    source = folder / "pool.c"
    source.write_text((ROOT / "examples/demo/pool.c").read_text())
    tools.compile(source, folder / "pool", ["-O1"])
    stem(tools, folder, "record", "./pool")
    stem(tools, folder, "analyze")
    pairs = json.loads(stem(tools, folder, "query", "follower", "--format", "json").stdout)
    check(len(pairs) == 1 and pairs[0]["def_function"] == "reload" and pairs[0]["use_function"] == "keepalive", f"the flow nobody expected: {pairs}")
    done = stem(tools, folder, "replay", pairs[0]["pair"])
    check("the schedule was followed, killed by SIGSEGV" in done.stderr, f"the replay crashes: {done.stderr}")
    stem(tools, folder, "report", "--fail-on", "finding", code=1)


def relations(tools, folder):
    source = folder / "relations.c"
    source.write_text((ROOT / "tests/report/relations.c").read_text())
    tools.compile(source, folder / "relations", ["-O1"])
    stem(tools, folder, "record", "./relations")
    stem(tools, folder, "analyze")
    rows = json.loads(stem(tools, folder, "query", "SELECT variable, relation FROM defuse WHERE cross_thread AND class IN ('covered', 'predicted')", "--format", "json").stdout)
    found = {(r["variable"], r["relation"]) for r in rows}
    for expected in [("joined", "ordered"), ("passed", "ordered by locks in this run"), ("atomic", "atomic"), ("locked", "common lock"), ("racy", "data race")]:
        check(expected in found, f"{expected} in {found}")


def main():
    tools = Tools(sys.argv[1])
    failures = 0
    for test in (running_example, demo, relations):
        with tempfile.TemporaryDirectory() as folder:
            try:
                test(tools, pathlib.Path(folder))
                print(f"ok: {test.__name__}")
            except Failure as failure:
                failures += 1
                print(f"FAILED: {test.__name__}: {failure}")
    return 1 if failures else 0


sys.exit(main())
