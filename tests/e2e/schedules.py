#!/usr/bin/env python3
"""Replays 200 random schedules of several programs and compares event for event.

Each program is recorded under random and PCT schedules with many seeds; each trace must be well-formed and its replay
identical. How many different schedules there were is checked too: a scheduler that always chose the same would pass
otherwise."""

import concurrent.futures
import hashlib
import pathlib
import sys
import tempfile

from stemtest import PROGRAMS, Failure, Tools, check, dump, run

# program, number of schedules, how many of them must differ at least
PLAN = [("s1.c", 40, 10), ("lost_update.c", 30, 4), ("mutex.c", 25, 20), ("condvar.c", 30, 8), ("barrier.c", 25, 20),
        ("semaphore.c", 25, 10), ("heap.c", 5, 1), ("cxx_threads.cpp", 20, 15)]


def one(tools, program, seed, folder):
    mode = "pct" if seed % 3 == 0 else "random"
    trace = folder / f"{program.name}-{seed}.stemtrace"
    done = run([tools.stem, "record", "-o", trace, "--mode", mode, "--seed", seed, program], timeout=60, cwd=folder)
    check(done.returncode == 0, f"record --mode {mode} --seed {seed}: exit code {done.returncode}\n{done.stderr}")
    checked = run([tools.stem, "trace", "check", trace])
    check(checked.returncode == 0, f"seed {seed}: check: {checked.stdout}{checked.stderr}")
    again = run([tools.stem, "replay", trace], timeout=60, cwd=folder)
    check(again.returncode == 0 and "replayed identically" in again.stderr, f"seed {seed}: replay: exit code {again.returncode}\n{again.stderr}")
    check(again.stdout == done.stdout, f"seed {seed}: the replay printed {again.stdout!r}, the run {done.stdout!r}")
    order = " ".join(f"{e.thread}:{e.kind}" for e in dump(tools, trace).visible())
    trace.unlink()
    return hashlib.sha1(order.encode()).hexdigest()


def main():
    tools = Tools(sys.argv[1])
    wanted = sys.argv[2:]
    bad = total = 0
    with tempfile.TemporaryDirectory(prefix="stem-e2e-") as scratch:
        folder = pathlib.Path(scratch)
        for source, count, least in PLAN:
            if wanted and source not in wanted:
                continue
            flags = ["-O1"] + (["-std=c++17"] if source.endswith("cpp") else [])
            program = tools.compile(PROGRAMS / source, folder / pathlib.Path(source).stem, flags)
            orders = set()
            failures = []
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                for future in [pool.submit(one, tools, program, seed, folder) for seed in range(1, count + 1)]:
                    try:
                        orders.add(future.result())
                    except Failure as failure:
                        failures.append(str(failure))
            total += count
            if len(orders) < least:
                failures.append(f"only {len(orders)} different schedules, {least} expected")
            bad += len(failures)
            print(f"{'FAIL' if failures else 'ok'}  {source}: {count} schedules, {len(orders)} different", flush=True)
            for failure in failures[:5]:
                print("      " + failure.replace("\n", "\n      "), flush=True)
    print(f"{total} schedules replayed")
    return 1 if bad or total == 0 else 0


sys.exit(main())
