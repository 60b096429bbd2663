#!/usr/bin/env python3
"""The program's own output, input, exit code, signals and terminal pass through; STEM_RECORD works without the launcher."""

import os
import pty
import re
import signal
import subprocess
import sys
import time

from stemtest import PROGRAMS, check, dump, ended, run, run_checks

SOURCE = r"""#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static volatile int n;
static volatile sig_atomic_t got;
static void handler(int s) { got = s; }
static void *run(void *p) { n = 1; return p; }
int main(int argc, char **argv) {
  pthread_t t; pthread_create(&t, 0, run, 0); pthread_join(t, 0);
  const char *what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "echo")) { char line[100]; while (fgets(line, sizeof line, stdin)) fputs(line, stdout); fputs("err\n", stderr); return 0; }
  if (!strcmp(what, "args")) { for (int i = 0; i < argc; ++i) printf("[%s]", argv[i]); return 0; }
  if (!strcmp(what, "code")) return atoi(argv[2]);
  if (!strcmp(what, "tty")) { printf("%d%d%d\n", isatty(0), isatty(1), isatty(2)); return 0; }
  if (!strcmp(what, "die")) { raise(atoi(argv[2])); return 0; }
  if (!strcmp(what, "handle")) { signal(SIGTERM, handler); puts("ready"); fflush(stdout); while (!got) usleep(1000); printf("got %d\n", got); return 4; }
  if (!strcmp(what, "sleep")) { puts("ready"); fflush(stdout); for (;;) { n = n + 1; usleep(1000); } }
  return 0;
}
"""


def built(tools, folder):
    (folder / "p.c").write_text(SOURCE)
    return tools.compile(folder / "p.c", folder / "p", ["-O1"])


def output_and_codes(tools, folder):
    p = built(tools, folder)
    done = run([tools.stem, "record", "./p", "echo"], cwd=folder, stdin="one\ntwo\n")
    check(done.stdout == "one\ntwo\n" and "err\n" in done.stderr and done.returncode == 0, f"{done.stdout!r} {done.stderr!r}")
    check(len([line for line in done.stderr.splitlines() if line.startswith("stem:")]) == 1, f"more than one line of ours: {done.stderr}")
    done = run([tools.stem, "record", "--seed", "3", "--", "./p", "args", "--seed", "4", "a b", ""], cwd=folder)
    check(done.stdout == "[./p][args][--seed][4][a b][]", done.stdout)
    done = run([tools.stem, "record", "./p", "args", "--", "-x"], cwd=folder)
    check(done.stdout == "[./p][args][--][-x]", done.stdout)
    for code in (0, 1, 2, 3, 77, 255):
        done = run([tools.stem, "record", "./p", "code", str(code)], cwd=folder)
        check(done.returncode == code, f"exit code {done.returncode}, not {code}\n{done.stderr}")
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGUSR2):
        done = run([tools.stem, "record", "./p", "die", str(int(number))], cwd=folder)
        check(done.returncode == -number, f"ended with {ended(done.returncode)}, not {number.name}\n{done.stderr}")


def signals_are_forwarded(tools, folder):
    built(tools, folder)
    child = subprocess.Popen([tools.stem, "record", "./p", "handle"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    check(child.stdout.readline() == "ready\n", "no start")
    child.send_signal(signal.SIGTERM)
    out, err = child.communicate(timeout=30)
    check(out == f"got {int(signal.SIGTERM)}\n" and child.returncode == 4, f"{child.returncode} {out!r} {err!r}")
    # A program that does not handle it dies of it, and so do we, with the trace kept.
    child = subprocess.Popen([tools.stem, "record", "--state", "second", "./p", "sleep"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    child.stdout.readline()
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    check(child.returncode == -signal.SIGINT, f"{child.returncode} {err}")
    check((folder / "second/traces/1.stemtrace").exists(), f"no trace: {err}")


def terminal(tools, folder):
    built(tools, folder)
    master, slave = pty.openpty()
    child = subprocess.Popen([tools.stem, "record", "./p", "tty"], cwd=folder, stdin=slave, stdout=slave, stderr=slave)
    code = child.wait(timeout=30)
    os.close(slave)
    text = os.read(master, 4096).decode()
    os.close(master)
    check("111" in text and code == 0, text)


def timeout(tools, folder):
    built(tools, folder)
    began = time.time()
    done = run([tools.stem, "record", "--timeout", "1", "./p", "sleep"], cwd=folder)
    check(done.returncode == 124 and time.time() - began < 20, f"{done.returncode} {done.stderr}")
    check("time was up" in done.stderr and (folder / ".stem/traces/1.stemtrace").exists(), done.stderr)
    trace = dump(tools, folder / ".stem/traces/1.stemtrace", 1000)
    check(any(e.kind == "write" for e in trace.events), "an empty trace")


def killed_from_outside(tools, folder):
    """kill -9 of the program while it runs leaves a readable trace of everything up to there."""
    built(tools, folder)
    child = subprocess.Popen([tools.stem, "record", "./p", "sleep"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    child.stdout.readline()
    time.sleep(0.3)
    pids = run(["pgrep", "-P", str(child.pid)]).stdout.split()
    names = {pid: open(f"/proc/{pid}/comm").read().strip() for pid in pids}
    victim = next(int(pid) for pid, name in names.items() if name == "p")
    os.kill(victim, signal.SIGKILL)
    out, err = child.communicate(timeout=30)
    check(child.returncode == -signal.SIGKILL, f"{child.returncode} {err}")
    trace = dump(tools, folder / ".stem/traces/1.stemtrace", 1000)
    writes = [e for e in trace.events if e.kind == "write" and e.variable == "n"]
    check(len(writes) > 20, f"only {len(writes)} writes in the trace: {err}")
    checked = run([tools.stem, "trace", "check", ".stem/traces/1.stemtrace"], cwd=folder)
    check(checked.returncode == 0, f"check: {checked.stdout}{checked.stderr}")


def without_the_launcher(tools, folder):
    p = built(tools, folder)
    done = run([p, "code", "5"], cwd=folder, env={"STEM_RECORD": str(folder / "here")})
    check(done.returncode == 5 and done.stdout == "", f"{done.returncode} {done.stdout}{done.stderr}")
    traces = []
    for _ in range(100):
        traces = list((folder / "here").glob("*.stemtrace"))
        if traces and run(["flock", "-n", traces[0], "true"]).returncode == 0:
            break
        time.sleep(0.05)
    check(len(traces) == 1, f"{len(traces)} traces")
    checked = run([tools.stem, "trace", "check", traces[0]])
    check(checked.returncode == 0, checked.stdout + checked.stderr)
    check(any(e.kind == "write" and e.variable == "n" for e in dump(tools, traces[0]).events), "no write of n")
    again = run([tools.stem, "replay", traces[0]], cwd=folder)
    check("replayed identically" in again.stderr, again.stderr)
    # And with nothing set it is just the program.
    done = run([p, "echo"], cwd=folder, stdin="x\n")
    check(done.stdout == "x\n" and done.stderr == "err\n", done.stdout + done.stderr)


def random_modes_and_seeds(tools, folder):
    """The same seed gives the same run; seeds differ; --runs counts them up."""
    program = tools.compile(PROGRAMS / "lost_update.c", folder / "lost", ["-O1"])
    done = run([tools.stem, "record", "--mode", "random", "--runs", "12", program], cwd=folder)
    check(done.returncode == 0, done.stderr)
    orders = [[f"{e.thread} {e.kind} {e.variable}" for e in dump(tools, folder / f".stem/traces/{i}.stemtrace").visible()] for i in range(1, 13)]
    check(len({tuple(o) for o in orders}) > 2, "twelve seeds, hardly any difference")
    done = run([tools.stem, "record", "--mode", "random", "--seed", "5", program], cwd=folder)
    compared = run([tools.stem, "trace", "diff", ".stem/traces/5.stemtrace", ".stem/traces/13.stemtrace"], cwd=folder)
    check(compared.returncode == 0, f"the same seed gave another run: {compared.stdout}{compared.stderr}")
    compared = run([tools.stem, "trace", "diff", ".stem/traces/5.stemtrace", next(f".stem/traces/{i + 1}.stemtrace" for i, o in enumerate(orders) if o != orders[4])], cwd=folder)
    check(compared.returncode == 1, f"two schedules compare as one: {compared.stdout}{compared.stderr}")


def debugger(tools, folder):
    """stem replay --gdb stops just before the operation in question, in the source line."""
    program = tools.compile(PROGRAMS / "lost_update.c", folder / "lost", ["-O0"])
    done = run([tools.stem, "record", program], cwd=folder)
    check(done.returncode == 0, done.stderr)
    reads = [e for e in dump(tools, folder / ".stem/traces/1.stemtrace").events if e.kind == "read" and e.variable == "n" and e.thread == "main/2"]
    stopped = run([tools.stem, "replay", "--gdb", "--gdb-batch", "bt 2", "--event", str(reads[0].index), "1"], cwd=folder, timeout=120)
    check(re.search(r"add .*lost_update\.c:20", stopped.stdout), f"not stopped there: {stopped.stdout}{stopped.stderr}")


def without_expressions(tools, folder):
    """--no-expressions: the same visible events, no expression, no branch, and reads that something depends on are held."""
    program = tools.compile(PROGRAMS / "lost_update.c", folder / "lost", ["-O1"])
    visible = []
    for more in ([], ["--no-expressions"]):
        done = run([tools.stem, "record", *more, program], cwd=folder)
        check(done.returncode == 0, done.stderr)
        trace = folder / f".stem/traces/{len(visible) + 1}.stemtrace"
        checked = run([tools.stem, "trace", "check", trace])
        check(checked.returncode == 0, f"{checked.stdout}{checked.stderr}")
        replayed = run([tools.stem, "replay", str(len(visible) + 1)], cwd=folder)
        check(replayed.returncode == 0, f"{replayed.stdout}{replayed.stderr}")
        events = dump(tools, trace).events
        visible.append([(e.thread, e.kind, e.variable) for e in events if e.kind in ("read", "write", "create", "join", "start", "end")])
        text = run([tools.stem, "trace", "dump", trace]).stdout
        has = (bool(re.search(r"^e\d+ ", text, re.M)), "flags=pinned" in text)
        check(has == ((True, False) if not more else (False, True)), f"expressions, pinned reads: {has} with {more}")
    check(visible[0] == visible[1], "without expressions it is another run")


sys.exit(run_checks([output_and_codes, signals_are_forwarded, terminal, timeout, killed_from_outside, without_the_launcher,
                     random_modes_and_seeds, debugger, without_expressions], sys.argv))
