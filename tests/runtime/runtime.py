#!/usr/bin/env python3
"""Runs programs instrumented by hand under the runtime alone, with a collector that writes text: every mode, exact replay of
random schedules, deadlock, livelock, divergence, all ways to end, fork and exec, shadows, the order of parallel recording.

usage: runtime.py BUILD/tests/runtime [NAME...]
"""

import collections
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(sys.argv[1]).resolve()
KINDS = re.findall(r'^STEM_EVENT\((\w+), "([^"]+)", (\d)\)', (ROOT / "trace/events.def").read_text(), re.M)
VISIBLE = {text for _, text, visible in KINDS if visible == "1"}
NUMBER = {text: i for i, (_, text, _) in enumerate(KINDS)}
OPS = re.findall(r'^STEM_OP\((\w+), "([^"]+)", (\d)\)', (ROOT / "trace/ops.def").read_text(), re.M)

Record = collections.namedtuple("Record", "kind addr aux value expr site thread")


class Run:
    """What the collector wrote for one process."""

    def __init__(self, path):
        self.paths, self.messages, self.records, self.meta = {}, [], [], {}
        thread, defining = 0, None
        for line in path.read_text(errors="replace").splitlines():
            match = re.match(r"(\S+) addr=(\w+) aux=(\w+) value=(\d+) expr=(\d+) site=(\d+)$", line)
            if match:
                kind = match[1]
                record = Record(kind, int(match[2], 16), int(match[3], 16), int(match[4]), int(match[5]), int(match[6]), thread)
                if kind == "SWITCH":
                    thread = record.value
                elif kind == "THREAD":
                    defining = record.value
                else:
                    self.records.append(record)
            elif line.startswith("STREAM "):
                thread = int(line.split()[1])
            elif line.startswith("path: "):
                self.paths[defining] = line[6:]
            elif line.startswith("message: "):
                self.messages.append(json.loads(line[9:]))
            elif line.startswith("meta: "):
                self.meta = json.loads(line[6:])

    @property
    def visible(self):
        return [r for r in self.records if r.kind in VISIBLE]

    def shape(self):
        """Visible events with addresses and threads named by first use: equal for equal runs, whatever the addresses."""
        names = {}
        out = []
        for r in self.visible:
            addr = names.setdefault(r.addr, len(names)) if r.addr else None
            value = self.paths.get(r.value, r.value) if r.kind in ("create", "join", "detach") else r.value
            if r.kind in ("signal", "wake"):
                value = self.paths.get(r.value - 1) if r.value else None
            elif r.kind == "wait":
                value = names.setdefault(r.value, len(names))
            elif r.kind == "write" and r.value >> 40:  # a thread's handle
                value = names.setdefault(r.value, len(names))
            out.append((self.paths[r.thread], r.kind, addr, r.aux, value, r.site & 0xfff))
        return out

    def ended(self):
        last = [i for i, r in enumerate(self.records) if r.kind == "exit"]
        return (self.records[last[0]].value, self.records[last[0] + 1].value) if last else None


def check(condition, text):
    if not condition:
        raise AssertionError(text)


def run(program, *arguments, mode="default", seed=1, plan=None, expect=None, timeout=30, env=()):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="stem-runtime-"))
    try:
        environment = dict(os.environ, STEM_RECORD=str(folder), STEM_LIBDIR=str(BIN), STEM_MODE=mode, STEM_SEED=str(seed), **dict(env))
        if plan is not None:
            (folder / "plan").write_bytes(plan)
            environment["STEM_PLAN"] = str(folder / "plan")
        done = subprocess.run([str(BIN / program), *arguments], env=environment, capture_output=True, timeout=timeout, text=True)
        until = time.time() + 10
        while True:  # a killed program's collector needs a moment
            files = sorted(folder.glob("*.txt"), key=lambda p: p.stat().st_mtime)
            if all("exit addr" in f.read_text(errors="replace") for f in files) or expect == "cut" and time.time() > until - 9:
                break
            check(time.time() < until, f"{program}: a trace without end")
            time.sleep(0.02)
        if expect not in (None, "cut"):
            check(done.returncode == expect, f"{program} {arguments} {mode}: ended with {done.returncode}, not {expect}\n{done.stdout}{done.stderr}")
        return done, [Run(f) for f in files]
    finally:
        shutil.rmtree(folder)


def item(kind, data):
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def make_plan(steps, threads, options=()):
    """steps: (thread's number among `threads`, count, site key, 1 + kind, wakes)."""
    items = [item(0, o.encode()) for o in ["mode=guided", f"libdir={BIN}", *options]]
    items += [item(1, t.encode()) for t in threads]
    items.append(item(2, b"".join(struct.pack("<QIIII", key, t, n, kind, wakes) for t, n, key, kind, wakes in steps)))
    return struct.pack("<QII", 0x4e414c504d455453, 1, len(items)) + b"".join(items)


def plan_of(recorded):
    threads = list(recorded.paths.values())
    number = {index: threads.index(path) for index, path in recorded.paths.items()}
    steps = []
    for r in recorded.visible:
        wakes = 1 + number[r.value - 1] if r.kind == "signal" and r.value else 0
        if steps and steps[-1][0] == number[r.thread] and not steps[-1][4]:
            steps[-1][1] += 1
            steps[-1][3] = 1 + NUMBER[r.kind]
            steps[-1][4] = wakes
        else:
            steps.append([number[r.thread], 1, 0, 1 + NUMBER[r.kind], wakes])
    return make_plan(steps, threads)


def first_difference(a, b):
    for i, (x, y) in enumerate(zip(a, b)):
        if x != y:
            return f"event {i}: {x} became {y}"
    return f"{len(a)} events became {len(b)}"


# --- the tests ------------------------------------------------------------------------------------------------------------------

SUMS = "24 4 24 1 48 24 24 6\n"


def test_modes():
    for mode in ("default", "random", "pct", "parallel"):
        for seed in range(1, 6):
            done, (trace,) = run("mix", mode=mode, seed=seed, expect=0)
            check(done.stdout == SUMS, f"{mode} {seed}: {done.stdout}")
            check(trace.ended() == (0, 0), f"{mode}: {trace.ended()}")
            check(sorted(trace.paths.values()) == ["main", "main/1", "main/2", "main/3", "main/4"], "paths")
            check(trace.meta["mode"] == mode and trace.meta["seed"] == seed, "meta")
            check(not trace.messages, f"{mode} {seed}: {trace.messages}")


def test_seed_decides():
    for mode in ("default", "random", "pct"):
        a = run("mix", mode=mode, seed=7)[1][0].shape()
        b = run("mix", mode=mode, seed=7)[1][0].shape()
        check(a == b, f"{mode}: one seed, two runs: {first_difference(a, b)}")
    a, b = (run("mix", mode="random", seed=s)[1][0].shape() for s in (1, 2))
    check(a != b, "two seeds, one run")


def test_replay():
    for seed in range(1, 41):
        mode = ("random", "pct", "default", "parallel")[seed % 4]
        trace = run("mix", mode=mode, seed=seed)[1][0]
        if mode == "parallel":
            trace = merged(trace)
        done, (again,) = run("mix", plan=plan_of(trace), expect=0)
        check(not again.messages, f"{mode} seed {seed}: {again.messages}")
        check(trace.shape() == again.shape(), f"{mode} seed {seed}: {first_difference(trace.shape(), again.shape())}")


def merged(trace):
    """Parallel streams in the order of their tickets."""
    ordered, ticket = [], -1
    for position, r in enumerate(trace.records):
        if r.kind == "TICKET":
            ticket = r.value
        else:
            ordered.append((ticket, position, r))
    trace.records = [r for _, _, r in sorted(ordered, key=lambda o: o[:2])]
    return trace


def test_parallel_order():
    """Every read returns what the last write before it, by ticket, left there."""
    reads = 0
    for program, arguments in (("mix", []), ("speed", ["3000", "plain"])):
        memory = {}
        for r in merged(run(program, *arguments, mode="parallel")[1][0]).records:
            if r.kind == "read":
                check(memory.get(r.addr, 0) == r.value, f"{program}: read {r.value}, last written {memory.get(r.addr, 0)}")
                reads += 1
            elif r.kind == "write":
                memory[r.addr] = r.value
            elif r.kind == "rmw":
                check(memory.get(r.addr, 0) == r.value, f"{program}: rmw")
                changing = r.addr
            elif r.kind == "VALUE2":
                memory[changing] = r.value if r.expr or r.value else r.value
    check(reads > 1000, "hardly any reads")


def test_deadlock():
    for mode in ("default", "random", "pct", "parallel"):
        done, (trace,) = run("stuck", "deadlock", mode=mode, expect=97)
        message = trace.messages[-1]
        check(message["kind"] == "deadlock", message)
        waits = {t["thread"]: t for t in message["threads"]}
        check(waits["main/1"]["op"] == "lock" and waits["main/1"]["holder"] == "main/2", message)
        check(waits["main/2"]["op"] == "lock" and waits["main/2"]["holder"] == "main/1", message)
        check(waits["main"]["op"] == "join" and "site" in waits["main"], message)
        check(trace.ended() == (97, 2), trace.ended())
    done, (trace,) = run("stuck", "wait", expect=97)
    check({t["op"] for t in trace.messages[-1]["threads"]} == {"join", "wake"}, trace.messages)
    done, (trace,) = run("stuck", "self", expect=97)
    check("main/1" in [t.get("holder") for t in trace.messages[-1]["threads"]] or "main/2" in [t.get("holder") for t in trace.messages[-1]["threads"]], trace.messages)


def test_livelock():
    for mode in ("default", "random", "pct"):
        done, (trace,) = run("stuck", "livelock", mode=mode, expect=98)
        check(trace.messages[-1]["kind"] == "livelock", trace.messages)
        check(trace.ended() == (98, 3), trace.ended())
    for mode in ("default", "random"):
        done, (trace,) = run("stuck", "compute", mode=mode, expect=0, timeout=60)
        check(done.stdout == "done\n", done.stdout)


def test_divergence():
    threads = ["main", "main/1", "main/2"]
    for steps, why in (
        ([(0, 5, 0, 0, 0), (2, 2, 0, 0, 0), (1, 1, 0, 0, 0)], None),
        ([(0, 100, 0, 0, 0)], "cannot go on"),
        ([(1, 1, 0, 0, 0)], "does not exist"),
        ([(0, 5, 0, 0, 0), (1, 2, 0, 1 + NUMBER["write"], 0)], "something else"),
        ([(0, 5, 0, 0, 0), (1, 2, 12345, 0, 0)], "something else"),
        ([(0, 5, 0, 0, 0), (1, 10**9, 0, 0, 0)], "cannot go on|has ended"),
    ):
        done, (trace,) = run("speed", "20", plan=make_plan(steps, threads), expect=0)
        if why is None:
            check(not trace.messages, trace.messages)
            order = [trace.paths[r.thread] for r in trace.visible][:8]
            check(order == ["main"] * 5 + ["main/2"] * 2 + ["main/1"], order)
        else:
            check(trace.messages and trace.messages[0]["kind"] == "divergence", trace.messages)
            check(re.search(why, trace.messages[0]["why"]), trace.messages[0])
            check("threads" in trace.messages[0] and "wanted" in trace.messages[0], trace.messages[0])


def test_ends():
    for what, code, outcome in (("exit", 3, 0), ("_exit", 4, 0), ("quick_exit", 5, 0), ("return", 6, 0), ("detached", 6, 0), ("pthread_exit", 3, 0),
                                ("abort", -6, 1), ("assert", -6, 5), ("segv", -11, 1), ("overflow", -11, 1)):
        for mode in ("default", "random", "parallel"):
            done, (trace,) = run("ends", what, mode=mode, expect=code)
            check(trace.ended() == (abs(code), outcome), f"{what} {mode}: {trace.ended()}")
            if what == "segv":
                fault = [r for r in trace.records if r.kind == "fault"][0]
                check(fault.addr == 16 and fault.value == 11, fault)
                check(mode == "parallel" or fault.site, "the site of the fault")
    for what in ("kill", "term"):
        done, (trace,) = run("ends", what, expect="cut")
        check(done.returncode == (-9 if what == "kill" else -15), done.returncode)
        check(any(r.kind == "write" and r.value == 7 for r in trace.records), "what happened before it was killed")


def test_forks():
    for what, processes in (("fork", 2), ("exec", 3), ("spawn", 2), ("system", 2), ("vfork", 2)):
        done, traces = run("forks", what, expect=0)
        check(done.stdout == "11\n", f"{what}: {done.stdout}{done.stderr}")
        check(len(traces) == processes, f"{what}: {len(traces)} traces")
    done, traces = run("forks", "threads", expect=0)
    check(done.stdout == "11\n" and len(traces) == 1, f"{done.stdout} {len(traces)}")
    check([m["kind"] for m in traces[0].messages] == ["refused"], traces[0].messages)


def test_watchdog():
    for seed in (1, 2):
        done, (trace,) = run("outside", seed=seed, mode=("default", "random")[seed % 2], expect=0)
        check(done.stdout == "42\n", done.stdout)
        check([m["kind"] for m in trace.messages] == ["blocked"], trace.messages)
    again = run("outside", plan=plan_of(trace), expect=0)[1][0]
    check(again.shape() == trace.shape(), first_difference(trace.shape(), again.shape()))


def test_shadow():
    done, (trace,) = run("shadow", expect=0)
    symbolic = [line.split()[2] for line in done.stdout.splitlines() if not line.startswith("live")]
    check(symbolic == list("111111011110"), symbolic)
    check("live 0\n" in done.stdout, done.stdout)
    values, pins, third = [0], 0, None
    mask = lambda width: (1 << width) - 1
    for r in trace.records:
        if r.kind == "read" and r.aux & 0x20:
            values.append(r.value)
        elif r.kind == "EXPR2":
            third = values[r.expr] if r.expr else r.value
        elif r.kind == "EXPR":
            width, low = r.addr & 0xff, r.addr >> 16 & 0xff
            a = values[r.expr] if r.expr else r.value
            b = values[r.site] if r.site else r.value
            name = OPS[r.aux][0]
            part = r.addr >> 8 & 0xff
            values.append({"Extract": lambda: a >> low, "Trunc": lambda: a, "Ult": lambda: int(a < b), "Ite": lambda: b if a else third,
                           "Concat": lambda: a << (width - part) | b}[name]() & mask(width))
        elif r.kind == "pin":
            check(values[r.expr] == r.value, f"pin {pins}: {values[r.expr]:x}, recorded {r.value:x}")
            pins += 1
    check(pins == 12, f"{pins} pins")


def test_unrecorded():
    done = subprocess.run([str(BIN / "mix")], capture_output=True, text=True, timeout=20)
    check(done.returncode == 0 and done.stdout == SUMS, done.stdout)
    done = subprocess.run([str(BIN / "mix")], capture_output=True, text=True, timeout=20, env=dict(os.environ, STEM_RECORD="/tmp", STEM_LIBDIR="/nowhere"))
    check(done.returncode == 3 and "stem-collect" in done.stderr, done.stderr)
    done = subprocess.run([str(BIN / "mix")], capture_output=True, text=True, timeout=20, env=dict(os.environ, STEM_PLAN="/dev/null"))
    check(done.returncode == 3 and "STEM_PLAN" in done.stderr, done.stderr)


def main():
    wanted = sys.argv[2:]
    failed = 0
    for name, test in list(globals().items()):
        if not name.startswith("test_") or wanted and name[5:] not in wanted:
            continue
        begun = time.time()
        try:
            test()
            print(f"ok     {name[5:]} ({time.time() - begun:.1f} s)")
        except (AssertionError, subprocess.TimeoutExpired) as problem:
            failed += 1
            print(f"FAILED {name[5:]}: {problem}")
        sys.stdout.flush()
    return 1 if failed else 0


sys.exit(main())
