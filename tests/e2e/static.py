#!/usr/bin/env python3
"""`stem static`: the running example's sets are exactly those of the theory.

    static.py BUILD [CASE...]
"""

import json
import pathlib
import subprocess
import sys
import tempfile

from stemtest import PROGRAMS, Failure, Tools, check, run


def analyse(tools, program, *options):
    done = run([tools.stem, "static", program, "--json", *options], timeout=120)
    check(done.returncode == 0, f"stem static: exit code {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def branch(data, outcome):
    if "initial" in outcome:
        return "W0"
    return f"b{data['sites'][outcome['site']]['line']}{'T' if outcome['outcome'] else 'F'}"


def pairs_of(data, variable, bare=None):
    found = set()
    for pair in data["pairs"]:
        if pair["variable"] == variable and bare in (None, pair["bare"]):
            write = 0 if "initial" in pair else data["sites"][pair["def"]]["line"]
            found.add(f"W{write}->R{data['sites'][pair['use']]['line']}")
    return found


def same(what, got, expected):
    check(got == expected, f"{what}: {sorted(got)}, expected {sorted(expected)}")


def case_running_example(tools, folder):
    program = tools.compile(PROGRAMS / "s1.c", folder / "s1", ["-O1"])
    paper = {"b1F=>b10T", "b1T=>b10T", "b1T=>b10F", "b10F=>b1T", "b1F=>b10F", "b10F=>b1F"}
    initial = {"W0=>b1T", "W0=>b1F", "W0=>b6T", "W0=>b6F", "W0=>b10F", "W0=>b10T"}
    for sigma, expected in (("paper", paper), ("ours", paper | initial)):
        data = analyse(tools, program, f"--sigma={sigma}")
        same(f"sigma={sigma}", {branch(data, e["def"]) + "=>" + branch(data, e["use"]) for e in data["escorts"]}, expected)
    same("x", pairs_of(data, "x"), {"W0->R2", "W13->R2", "W0->R4", "W13->R4", "W0->R10", "W5->R10"})
    same("bare pairs of x", pairs_of(data, "x", True), {"W0->R10", "W5->R10"})
    same("z", pairs_of(data, "z"), {"W0->R11", "W2->R11", "W4->R11", "W0->R13", "W2->R13", "W4->R13"})
    same("y", pairs_of(data, "y"), {"W0->R7", "W0->R9"})
    dead = [data["sites"][site] for site in data["dead_definitions"]]
    same("dead definitions", {(site["line"], site["text"]) for site in dead}, {(11, "y")})
    same("threads", {thread["entry"] for thread in data["threads"]}, {"main", "t0", "t1", "t2"})
    # What b10F inevitably leads to, and what leads to the write there, say the same.
    inside = {data["sites"][s]["line"] for d in data["dominated"] if branch(data, d["branch"]) == "b10F" for s in d["sites"]}
    same("dominated by b10F", inside, {13})

    text = run([tools.stem, "static", program], timeout=60).stdout
    for line in ("s1.c:5 (t0) -> s1.c:10 (t1), bare", "initial value => s1.c:6 (t1) T", "s1.c:11 (t1) y"):
        check(line in text, f"no {line!r} in\n{text}")


def case_runs_are_held_against_it(tools, folder):
    """A run is inside; the same run with two variables taken for each other is not, and keeps its exit code and its place."""
    program = tools.compile(PROGRAMS / "s1.c", folder / "s1", ["-O1"])
    done = run([tools.stem, "record", "-o", folder / "run.stemtrace", "--", program], cwd=folder)
    check(done.returncode == 0 and "bug" not in done.stderr, f"record: {done.returncode} {done.stderr}")
    facts = list(folder.glob(".stem/static/*.facts"))
    good = run([tools.stem, "static", program, "--check", folder / "run.stemtrace"])
    check(good.returncode == 0 and " 0 of them outside" in good.stdout, f"--check: {good.returncode} {good.stdout}{good.stderr}")
    text = run([tools.stem, "trace", "dump", folder / "run.stemtrace"]).stdout
    wrong = text.replace('global name="x"', 'global name="?"').replace('global name="y"', 'global name="x"').replace('global name="?"', 'global name="y"')
    check(wrong != text, "the dump names no global x")
    (folder / "wrong.txt").write_text(wrong)
    made = run([tools.stem, "trace", "import", folder / "wrong.txt", "-o", folder / "wrong.stemtrace"])
    check(made.returncode == 0, made.stderr)
    bad = run([tools.stem, "static", program, "--check", folder / "wrong.stemtrace"])
    check(bad.returncode == 3 and "this does not read" in bad.stdout, f"--check of a wrong run: {bad.returncode} {bad.stdout}{bad.stderr}")
    told = run([tools.stem, "analyze", folder / "wrong.stemtrace", "--no-confirm"], cwd=folder)
    check(told.returncode == 0 and "static" in told.stderr and "report" in told.stderr, f"analyze: {told.returncode} {told.stderr}")
    check(facts or list(folder.glob(".stem/static/*.facts")), "the facts of the build were not kept")


def case_filters(tools, folder):
    program = tools.compile(PROGRAMS / "s1.c", folder / "s1", ["-O1"])
    only = run([tools.stem, "static", program, "--variable", "z"]).stdout
    check("Potential pairs (6)" in only and "\n  z\n" in only and "\n  x\n" not in only, only)
    none = run([tools.stem, "static", program, "--file", "other.c"]).stdout
    check("Potential pairs (0)" in none and "Escort branch pairs (0)" in none, none)
    check(only.startswith("Summary\n"), only)


def case_not_ours(tools, folder):
    done = run([tools.stem, "static", "/bin/true"])
    check(done.returncode == 2 and "stem-cc" in done.stderr, f"/bin/true: {done.returncode} {done.stderr}")
    done = run([tools.stem, "static", folder / "nothing"])
    check(done.returncode == 2 and "nothing" in done.stderr, f"no such file: {done.returncode} {done.stderr}")


def main():
    tools = Tools(sys.argv[1])
    cases = {name[len("case_"):]: function for name, function in globals().items() if name.startswith("case_")}
    failed = 0
    for name in sys.argv[2:] or cases:
        with tempfile.TemporaryDirectory() as folder:
            try:
                cases[name](tools, pathlib.Path(folder))
                print(f"ok   {name}")
            except (Failure, subprocess.SubprocessError) as problem:
                failed += 1
                print(f"FAIL {name}: {problem}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
