#!/usr/bin/env python3
"""Whatever a user gets wrong: a clear message, exit code 2, and nothing of what was there is lost."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from stemtest import PROGRAMS, check, run, run_checks, schedule


def refused(done, *expected):
    check(done.returncode == 2, f"exit code {done.returncode}, not 2\n{done.stdout}{done.stderr}")
    for text in expected:
        check(re.search(text, done.stderr), f"no {text!r} in: {done.stderr}")
    check("terminate called" not in done.stderr and "bug in STEM" not in done.stderr, done.stderr)


def recorded(tools, folder, name="lost_update.c"):
    program = tools.compile(PROGRAMS / name, folder / "prog", ["-O1"])
    done = run([tools.stem, "record", program], cwd=folder)
    check(done.returncode == 0, done.stderr)
    return program, folder / ".stem/traces/1.stemtrace"


def binary_without_stem(tools, folder):
    source = folder / "plain.c"
    source.write_text("int main(void) { return 0; }\n")
    subprocess.run(["cc", source, "-o", folder / "plain"], check=True)
    refused(run([tools.stem, "record", folder / "plain"], cwd=folder), "no STEM inside", "stem-cc")
    refused(run([tools.stem, "record", "true"], cwd=folder), "no STEM inside", "stem-cc")


def missing_program(tools, folder):
    refused(run([tools.stem, "record", "./nowhere"], cwd=folder), r"cannot run \./nowhere", "no such file")
    refused(run([tools.stem, "record", "no-such-command-here"], cwd=folder), "no such command")
    refused(run([tools.stem, "record"], cwd=folder), "needs a program")
    (folder / "text").write_text("not a program")
    refused(run([tools.stem, "record", "./text"], cwd=folder), "not executable")
    refused(run([tools.stem, "record", "."], cwd=folder), "cannot run")
    refused(run([tools.stem, "record", "--sede", "3", "./x"], cwd=folder), "--sede")


def truncated_trace(tools, folder):
    _, trace = recorded(tools, folder)
    whole = trace.read_bytes()
    for size in (0, 1, 7, 8, 20, len(whole) // 2, len(whole) - 1):
        cut = folder / "cut.stemtrace"
        cut.write_bytes(whole[:size])
        for command in (["trace", "dump"], ["trace", "check"], ["trace", "stats"], ["replay"]):
            done = run([tools.stem, *command, cut], cwd=folder)
            check(done.returncode in (0, 1, 2), f"{command} of {size} bytes: exit code {done.returncode}\n{done.stderr}")
            check("bug in STEM" not in done.stderr, f"{command} of {size} bytes: {done.stderr}")
            if command == ["trace", "check"]:
                check(done.returncode == 2, f"check of {size} bytes of {len(whole)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
                check(re.search("trunc|cut|ends early|not a trace|incomplete|not complete|empty", done.stdout + done.stderr, re.I), done.stdout + done.stderr)
        check(cut.read_bytes() == whole[:size], "the damaged file was changed")


def another_version(tools, folder):
    _, trace = recorded(tools, folder)
    data = bytearray(trace.read_bytes())
    # The version follows the magic number: whatever is there, another one must be refused by name.
    for at in range(8, 12):
        changed = bytearray(data)
        changed[at] ^= 0x40
        (folder / "other.stemtrace").write_bytes(changed)
        refused(run([tools.stem, "trace", "dump", "other.stemtrace"], cwd=folder), "other.stemtrace")
    changed = bytearray(data)
    changed[8:12] = (9999).to_bytes(4, "little")
    (folder / "other.stemtrace").write_bytes(changed)
    refused(run([tools.stem, "trace", "check", "other.stemtrace"], cwd=folder), "version")
    (folder / "other.stemtrace").write_text("something else entirely, long enough to hold a header of any kind\n" * 4)
    refused(run([tools.stem, "replay", "other.stemtrace"], cwd=folder), "other.stemtrace")


def schedule_for_another_program(tools, folder):
    program, trace = recorded(tools, folder)
    other = tools.compile(PROGRAMS / "deadlock.c", folder / "other", ["-O1"])
    written = run([tools.stem, "replay", "--write-test", "t.stemtest", "1"], cwd=folder)
    check(written.returncode == 0, written.stderr)
    test = json.loads((folder / "t.stemtest").read_text())
    check(test["program"]["build_id"] and test["schedule"], f"no build id or schedule in the test: {test}")
    refused(run([tools.stem, "record", "--schedule", "t.stemtest", other], cwd=folder), "another program or another build", "--any-build")
    # Tried anyway, it is a divergence: told, with the program run to its end.
    done = run([tools.stem, "record", "--any-build", "--schedule", "t.stemtest", other], cwd=folder)
    check("left the schedule" in done.stderr, f"no divergence told: {done.stderr}")
    # The recorded program was rebuilt into something else: its trace is refused for replay.
    shutil.copy(other, program)
    refused(run([tools.stem, "replay", "1"], cwd=folder), "another build")
    program.unlink()
    refused(run([tools.stem, "replay", "1"], cwd=folder), "no such file")


def bad_test_files(tools, folder):
    program, _ = recorded(tools, folder)
    for text, expected in [("{", "not a test file"), ('{"stem_test": 7}', "version 7"),
                           ('{"stem_test":1,"program":{"path":"./prog"},"schedule":[{"count":2}]}', r"schedule\[0\].thread"),
                           ('{"stem_test":1,"program":{"path":"./prog"},"inputs":[{"name":"a","bytes":"xyz"}]}', r"inputs\[0\].bytes")]:
        (folder / "bad.stemtest").write_text(text)
        refused(run([tools.stem, "replay", "bad.stemtest"], cwd=folder), "bad.stemtest", expected)
        refused(run([tools.stem, "record", "--test", "bad.stemtest"], cwd=folder), "bad.stemtest", expected)
    refused(run([tools.stem, "replay", "nowhere.stemtest"], cwd=folder), "nowhere.stemtest")
    refused(run([tools.stem, "replay", "77"], cwd=folder), "77")
    refused(run([tools.stem, "record", "--input", "novalue", program], cwd=folder), "NAME=VALUE")
    # A thread that never comes to be: a divergence that says so, not a hang.
    schedule("main:3 main/9:1", program, path=folder / "t.stemtest")
    done = run([tools.stem, "record", "--schedule", "t.stemtest", program], cwd=folder)
    check("main/9" in done.stderr and "left the schedule" in done.stderr, f"no divergence: {done.stderr}")


def full_disk(tools, folder):
    source = folder / "many.c"
    source.write_text("""#include <pthread.h>
#include <stdio.h>
volatile double n;
void *run(void *p) { double x = .3; for (int i = 0; i < 1000000; ++i) { x = 3.99 * x * (1 - x); n = x; } return p; }
int main(void) { pthread_t t; pthread_create(&t, 0, run, 0); pthread_join(t, 0); puts("finished"); return 7; }
""")
    program = tools.compile(source, folder / "many", ["-O1"])
    small = folder / "small"
    small.mkdir()
    if os.geteuid() == 0 and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small], capture_output=True).returncode == 0:
        try:
            done = run([tools.stem, "record", "--state", small / "state", program], cwd=folder)
            full_disk_told(tools, done, small / "state")
        finally:
            subprocess.run(["umount", small], check=True)
    # A limit on file sizes does it everywhere; one that cannot be lifted for the recorder's own memory is told.
    done = run(["bash", "-c", f"ulimit -f 500; exec {tools.stem} record --state hard {program}"], cwd=folder)
    check(done.returncode != 0 and "ulimit -f" in done.stderr, f"{done.returncode} {done.stderr}")
    done = run(["bash", "-c", f"ulimit -S -f 500; exec {tools.stem} record --state limited {program}"], cwd=folder)
    full_disk_told(tools, done, folder / "limited")


def full_disk_told(tools, done, state):
    check("finished" in done.stdout, f"the program itself did not finish: {done.stdout}{done.stderr}")
    refused(done, "disk is full|not complete|could not write")
    traces = list((state / "traces").glob("*.stemtrace"))
    check(len(traces) == 1, f"the readable part of the trace is gone: {traces}")
    stats = run([tools.stem, "trace", "stats", traces[0]])
    check("bug in STEM" not in stats.stderr and stats.returncode in (0, 2), stats.stderr)


def state_is_kept(tools, folder):
    """Old runs survive failing ones and several recorders at once."""
    program, trace = recorded(tools, folder)
    before = trace.read_bytes()
    many = [subprocess.Popen([tools.stem, "record", program], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(6)]
    for one in many:
        check(one.wait(timeout=60) == 0, "a parallel stem record failed")
    run([tools.stem, "record", "./nowhere"], cwd=folder)
    ids = [json.loads(line)["id"] for line in (folder / ".stem/runs.jsonl").read_text().splitlines()]
    check(sorted(ids) == list(range(1, 8)), f"run ids {ids}")
    check(all((folder / f".stem/traces/{i}.stemtrace").exists() for i in ids), "a trace is missing")
    check(trace.read_bytes() == before, "an old trace was changed")
    check(not [p for p in (folder / ".stem/traces").iterdir() if p.suffix != ".stemtrace"], "something was left in .stem/traces")


sys.exit(run_checks([binary_without_stem, missing_program, truncated_trace, another_version, schedule_for_another_program, bad_test_files,
                     full_disk, state_is_kept], sys.argv))
