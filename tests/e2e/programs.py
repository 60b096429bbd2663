#!/usr/bin/env python3
"""Compiles every program in tests/e2e/programs with stem-cc at -O0 and -O2, records it, checks the trace, holds it
against static analysis, replays it and compares with what the program's comments expect.

  // FLAGS: -std=c11           for the compiler                     // OPT: -O1             instead of -O0 and -O2
  // CASE name:                begins a case; what stands before the first one holds for all
  // RECORD: --mode random     options of stem record                // ARGS: 3 data.txt     // STDIN: text\\n
  // INPUT: a=2                                                      // SCHEDULE: main:4 main/1:3
  // EXIT: 0                   or SIGSEGV                            // OUTCOME: deadlock    of the trace
  // STDOUT: regex             // STDERR: regex                      what must be found there
  // EVENTS: 1T R2(x)=0 ...    the branches and accesses, exactly and in order
  // EVENT: regex              one event at least, as "main/1 lock m:12 = 1"    // NO-EVENT: regex
  // COUNT: 12 regex           so many events
  // REPLAY: no                it is not replayed (with the reason in the same line)
  // BINARY: no                not with --tracer (with the reason in the same line)
With --tracer gcc compiles them, and that one records; cases with a SCHEDULE then at -O2 only, where the accesses are those of stem-cc.
"""

import argparse
import concurrent.futures
import pathlib
import re
import shlex
import sys
import tempfile
import time

from stemtest import PROGRAMS, Failure, Tools, check, dump, ended, run, schedule

KEY = re.compile(r"^\s*//\s*([A-Z][A-Z-]+)(?:\s+(\S+))?:\s?(.*)$")
KNOWN = {"FLAGS", "OPT", "CASE", "RECORD", "ARGS", "STDIN", "INPUT", "SCHEDULE", "EXIT", "OUTCOME", "STDOUT", "STDERR", "EVENTS", "EVENT",
         "NO-EVENT", "COUNT", "REPLAY", "BINARY"}


def cases(source):
    common, found = [], []
    for line in source.read_text().splitlines():
        match = KEY.match(line)
        if not match or match[1] not in KNOWN:
            continue
        if match[1] == "CASE":
            found.append((match[2] or match[3].strip(), []))
        else:
            (found[-1][1] if found else common).append((match[1], match[3].strip()))
    return [(name, common + lines) for name, lines in found] or [("", common)]


def branch_events(trace):
    """Accesses to variables and branches of all threads but main, as the comments write them."""
    words = []
    for event in trace.events:
        if event.thread == "main":
            continue
        if event.kind == "branch":
            words.append(f"{event.line}{'T' if event.value else 'F'}")
        elif event.kind in ("read", "write", "rmw"):
            words.append(f"{event.kind[0].upper()}{event.line}({event.variable or event.text})={event.signed()}")
    return " ".join(words)


def expect(trace, done, want, where):
    lines = [str(e) for e in trace.events]
    for key, value in want:
        if key == "EXIT":
            check(str(ended(done.returncode)) == value, f"{where}: ended with {ended(done.returncode)}, not {value}\n{done.stderr}")
        elif key == "STDOUT":
            check(re.search(value, done.stdout), f"{where}: no {value!r} in its output:\n{done.stdout}")
        elif key == "STDERR":
            check(re.search(value, done.stderr), f"{where}: no {value!r} in its messages:\n{done.stderr}")
        elif key == "OUTCOME":
            check((trace.outcome or "").startswith(value), f"{where}: outcome {trace.outcome!r}, not {value!r}")
        elif key == "EVENTS":
            found = branch_events(trace)
            check(found == value, f"{where}: the events are\n  {found}\nand should be\n  {value}")
        elif key == "EVENT":
            check(any(re.search(value, line) for line in lines), f"{where}: no event {value!r} among\n  " + "\n  ".join(lines[:200]))
        elif key == "NO-EVENT":
            bad = next((line for line in lines if re.search(value, line)), None)
            check(bad is None, f"{where}: an event that should not be there: {bad}")
        elif key == "COUNT":
            number, regex = value.split(" ", 1)
            found = sum(1 for line in lines if re.search(regex, line))
            check(found == int(number), f"{where}: {found} events {regex!r}, not {number}:\n  " + "\n  ".join(lines[:200]))


def run_case(tools, program, name, want, folder, where):
    options, args, stdin = [], [], None
    for key, value in want:
        if key == "RECORD":
            options += shlex.split(value)
        elif key == "ARGS":
            args += shlex.split(value)
        elif key == "INPUT":
            options += ["--input", value]
        elif key == "STDIN":
            stdin = value.encode().decode("unicode_escape")
        elif key == "SCHEDULE":
            options += ["--schedule", schedule(value, program, path=folder / f"{name or 'case'}.stemtest")]
    trace_file = folder / f"{name or 'case'}.stemtrace"
    done = run([*tools.record, "-o", trace_file, *options, "--", program, *args], stdin=stdin, cwd=folder)
    if not any(key == "EXIT" for key, _ in want):
        check(done.returncode == 0, f"{where}: ended with {ended(done.returncode)}\n{done.stdout}{done.stderr}")
    check(trace_file.exists(), f"{where}: no trace\n{done.stdout}{done.stderr}")
    trace = dump(tools, trace_file)
    expect(trace, done, want, where)
    checked = run([tools.stem, "trace", "check", trace_file])
    check(checked.returncode == 0, f"{where}: stem trace check: {checked.stdout}{checked.stderr}")
    if not tools.tracer:  # gcc leaves no bitcode inside
        inside = run([tools.stem, "static", program, "--check", trace_file])
        check(inside.returncode == 0, f"{where}: the run is outside what static analysis allows\n{inside.stdout}{inside.stderr}")
    if not any(key == "REPLAY" and value.startswith("no") for key, value in want):
        again = run([tools.stem, "replay", trace_file], stdin=stdin, cwd=folder)
        check(again.returncode == 0 and "replayed identically" in again.stderr, f"{where}: replay: exit code {again.returncode}\n{again.stdout}{again.stderr}")


def run_program(tools, source, level):
    want = [(name, lines) for name, lines in cases(source) if not tools.tracer or ("BINARY", "no") not in [(k, v[:2]) for k, v in lines]]
    if not want:
        return None
    flags = [f for _, lines in want[:1] for key, value in lines if key == "FLAGS" for f in shlex.split(value)]
    failures = []
    with tempfile.TemporaryDirectory(prefix="stem-e2e-") as scratch:
        folder = pathlib.Path(scratch)
        where = f"{source.name} {level}"
        try:
            program = tools.compile(source, folder / source.stem, [level, *flags])
        except Failure as failure:
            return [f"{where}: {failure}"]
        for name, lines in want:
            keys = {key for key, _ in lines}
            if tools.tracer and "SCHEDULE" in keys and level == "-O0":
                continue
            try:
                run_case(tools, program, name, lines, folder, f"{where}{' ' + name if name else ''}")
            except Failure as failure:
                failures.append(str(failure))
    return failures


def levels(tools, source):
    if tools.tracer and source.suffix == ".cpp":
        return ["-O2"]
    match = re.search(r"^// OPT: (.*)$", source.read_text(), re.M)
    return match[1].split() if match else ["-O0", "-O2"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("prefix", help="the build or installation to test")
    parser.add_argument("--tracer", help="compile with gcc, and record with this one")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("names", nargs="*", help="programs, without folder and suffix; default: all")
    options = parser.parse_intermixed_args()
    tools = Tools(options.prefix, options.tracer)
    sources = sorted(p for p in PROGRAMS.iterdir() if p.suffix in (".c", ".cpp") and (not options.names or p.stem in options.names))
    if not sources:
        print("no such program", file=sys.stderr)
        return 2
    began, bad, total = time.time(), 0, 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        work = {pool.submit(run_program, tools, s, level): (s, level) for s in sources for level in levels(tools, s)}
        for one in concurrent.futures.as_completed(work):
            source, level = work[one]
            failures = one.result()
            if failures is None:
                continue
            total += 1
            bad += bool(failures)
            print(f"{'FAIL' if failures else 'ok'}  {source.name} {level}", flush=True)
            for failure in failures:
                print("      " + failure.replace("\n", "\n      "), flush=True)
    print(f"{total - bad} of {total} passed in {time.time() - began:.0f} s")
    return 1 if bad else 0


sys.exit(main())
