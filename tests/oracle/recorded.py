#!/usr/bin/env python3
"""The oracle's random programs as C, compiled by stem-cc, recorded under random schedules: the recording shows what the program
does (stem-oracle --follow), its trace is sound (stem trace check), and what it shows is inside what static analysis
allows: accesses, threads, pairs, branches (stem static --check).

With --tracer valgrind: compiled by gcc, recorded as they are. What is predicted from such a recording is exactly what its pins
allow, and nothing that the program excludes (stem-oracle --rule).

    recorded.py BUILD [--tracer valgrind] [--seed 1] [--programs 30] [--runs 3] [--keep FOLDER]
"""

import argparse
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile
import time


def run(*command, expect=(0,), **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, errors="replace", timeout=300, stdin=subprocess.DEVNULL, **more)
    if expect and done.returncode not in expect:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def one(options, folder, seed):
    """What is wrong with the program of this seed, or nothing; and how many events its recordings have."""
    tools, oracle = options.build / "bin", options.build / "tests/stem-oracle"
    source, program = folder / f"oracle{seed}.c", folder / f"oracle{seed}"
    try:
        source.write_text(run(oracle, "--seed", seed, "--emit"))
        binary = options.tracer == "valgrind"
        compiler = ["gcc", "-fno-ipa-icf"] if binary else [tools / "stem-cc", "-Wno-atomic-alignment"]
        run(*compiler, "-g", f"-O{seed % 3}", source, "-o", program, "-pthread")
        for number in range(1, options.runs + 1):
            trace = folder / f"oracle{seed}-{number}.stemtrace"
            # 97: a deadlock, 98: a livelock; both are runs like any other.
            run(tools / "stem", "record", *(["--tracer", options.tracer] if binary else []), "--mode", "random", "--seed", number, "-o", trace, "--", program, cwd=folder, expect=(0, 97, 98))
            run(tools / "stem", "trace", "check", trace)
            if binary:
                said = run(oracle, "--seed", seed, "--limit", options.limit, "--rule", trace)
                found = [int(n) for n in re.findall(r"(\d+) (?:observed|by)", said)]
                options.pairs.append(found or None)
                continue
            run(oracle, "--seed", seed, "--follow", trace)
            run(tools / "stem", "static", program, "--check", trace)
    except (RuntimeError, subprocess.TimeoutExpired) as problem:
        return f"seed {seed}: {problem}"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--programs", type=int, default=30)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--tracer", choices=("compiled", "valgrind"), default="compiled")
    parser.add_argument("--limit", type=int, default=40000, help="states of one recording; a larger one is skipped")
    parser.add_argument("--keep", type=pathlib.Path, help="leave the programs and traces there")
    options = parser.parse_args()
    options.build = options.build.resolve()
    options.pairs = []
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="stem-recorded-") as scratch, concurrent.futures.ThreadPoolExecutor(2) as pool:
        folder = (options.keep or pathlib.Path(scratch)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        seeds = range(options.seed, options.seed + options.programs)
        wrong = [problem for problem in pool.map(lambda seed: one(options, folder, seed), seeds) if problem]
    print(*wrong, sep="\n")
    print(f"{options.programs} programs, {options.runs} recordings of each: {len(wrong)} wrong ({time.perf_counter() - began:.0f} s)")
    if options.tracer == "valgrind":
        compared = [p for p in options.pairs if p]
        print(f"{len(compared)} recordings compared, {len(options.pairs) - len(compared)} had too many states; pairs: "
              "{} observed, {} by the rule, {} by what the programs mean".format(*(sum(p[i] for p in compared) for i in range(3))))
        wrong = wrong or len(compared) < len(options.pairs) / 2
    return 1 if wrong else 0


sys.exit(main())
