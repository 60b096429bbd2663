#!/usr/bin/env python3
"""stem query, report and merge as people call them: formats, gates, exit codes, messages.

usage: cli.py STEM MAKE_REPORTS
"""

import csv
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

stem, make_reports = map(os.path.abspath, sys.argv[1:3])
checks = 0


def run(*arguments, code=0, cwd=None):
    done = subprocess.run([stem, *map(str, arguments)], capture_output=True, cwd=cwd, timeout=60)
    global checks
    checks += 1
    if done.returncode != code:
        sys.exit(f"stem {' '.join(map(str, arguments))}: exit {done.returncode}, expected {code}\n{done.stdout.decode(errors='replace')}{done.stderr.decode(errors='replace')}")
    return done.stdout.decode(), done.stderr.decode()


def expect(condition, what):
    global checks
    checks += 1
    if not condition:
        sys.exit(f"failed: {what}")


with tempfile.TemporaryDirectory() as scratch:
    folder = pathlib.Path(scratch)
    subprocess.run([make_reports, folder / "pages"], check=True)
    (folder / ".stem").mkdir()
    shutil.copy(folder / "pages/example.db", folder / ".stem/stem.db")
    (folder / "below").mkdir()
    here = {"cwd": folder}

    out, _ = run("query", "--list", **here)
    expect("pairs-of-variable" in out and "--param variable=" in out, "the list shows queries and parameters")
    out, _ = run("query", "pairs-of-variable", "--param", "variable=y", "--format", "json", **here)
    expect([row["use_line"] for row in json.loads(out)] == [16, 18], "a named query with a parameter, as JSON")
    out, _ = run("query", "pairs-of-line", "example.c", "22", cwd=folder / "below")
    expect("(5 rows)" in out, "values in order; the database is found from a folder below")
    out, _ = run("query", "SELECT variable, count(*) AS n FROM defuse GROUP BY 1", "--format", "csv", **here)
    expect(list(csv.DictReader(io.StringIO(out))) == [{"variable": "x", "n": "6"}, {"variable": "y", "n": "2"}, {"variable": "z", "n": "4"}], "SQL, as CSV")
    _, err = run("query", "DELETE FROM pair", code=2, **here)
    expect("--write" in err, "nothing is changed unless asked")
    run("query", "UPDATE run SET seed = 7", "--write", **here)
    out, _ = run("query", "SELECT DISTINCT seed FROM run", "--format", "csv", **here)
    expect(out.split() == ["seed", "7"], "--write changes")
    _, err = run("query", "pairs-of-lin", code=2, **here)
    expect("pairs-of-line" in err, "a mistyped name gets a hint")
    _, err = run("query", "diff-databases", code=2, **here)
    expect("--other" in err, "a query across databases says what it needs")
    out, _ = run("query", "diff-databases", "--other", folder / "pages/big.db", "--format", "csv", **here)
    expect(len(out.splitlines()) == 10013, "two databases compared")
    _, err = run("query", "runs", "--db", folder / "none.db", code=2, **here)
    expect("Record a run first" in err, "a missing database")

    out, _ = run("report", **here)
    expect("75.0 %" in out and "Predicted, but never exercised (3)" in out, "text is the default")
    for form in ["html", "markdown", "json", "sarif", "lcov"]:
        out, _ = run("report", "--format", form, **here)
        expect(len(out) > 200, f"{form} has content")
    run("report", "--format", "html", "-o", "page.html", **here)
    expect((folder / "page.html").read_text().startswith("<!doctype html>"), "-o writes a file")
    _, err = run("report", "--format", "pdf", code=2, **here)
    expect("markdown" in err, "an unknown format lists the known ones")

    run("report", "--fail-under", "75", **here)
    _, err = run("report", "--fail-under", "76", code=1, **here)
    expect("75.0 %" in err, "--fail-under")
    run("report", "--fail-on", "unconfirmed,finding", **here)
    _, err = run("report", "--fail-on", "new-uncovered", code=2, **here)
    expect("--since" in err, "new-uncovered needs a base")
    run("report", "--diff", folder / "pages/example.db", "--fail-on", "new-uncovered", **here)
    _, err = run("report", "--diff", folder / "pages/empty.db", "--fail-on", "new-uncovered", code=1, **here)
    expect("3 pairs" in err, "--fail-on new-uncovered")
    (folder / ".stem/ignore").write_text("variable x  reviewed\nvariable z  reviewed\n")
    run("report", "--diff", folder / "pages/empty.db", "--fail-on", "new-uncovered", **here)
    out, _ = run("report", **here)
    expect("suppressed                      3" in out and "100.0 %" in out, "suppressions are counted and leave the denominator")
    (folder / ".stem/ignore").write_text("variable x\n")
    _, err = run("report", code=2, **here)
    expect("reason is missing" in err, "a suppression without a reason")
    (folder / ".stem/ignore").unlink()
    _, err = run("report", "--since", "HEAD", code=2, **here)
    expect("git" in err, "--since outside a git repository")
    out, _ = run("report", "--db", folder / "pages/hostile.db", "--fail-on", "finding", code=1, **here)

    out, _ = run("merge", "--into", "all.db", folder / "pages/example.db", folder / "pages/big.db", **here)
    expect("4 runs, 12 pairs" in out, "merge counts")
    out, _ = run("query", "SELECT count(*) FROM defuse", "--db", "all.db", "--format", "csv", **here)
    expect(out.split()[1] == "10012", "merged")
    _, err = run("merge", "all.db", "all.db", code=2, **here)
    expect("into itself" in err, "merging into itself is refused")

print(f"{checks} checks passed")
