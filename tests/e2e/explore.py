#!/usr/bin/env python3
"""stem explore on whole programs: the worked examples to their last pair, the steps of the paper's Table I, failures with tests that
replay, and an exploration that is killed and goes on."""

import json
import os
import re
import signal
import subprocess
import sys
import time

from stemtest import PROGRAMS, ROOT, check, run, run_checks, schedule

OWN = ROOT / "tests/e2e/explore"
BUGGY = ROOT / "bench/explore/programs"

S1_SIGMA_PAPER = {"b1F=>b10T", "b1T=>b10T", "b1T=>b10F", "b10F=>b1T", "b1F=>b10F", "b10F=>b1F"}
S1_PAIRS = {"x W0->R2", "x W13->R2", "x W0->R4", "x W13->R4", "x W0->R10", "x W5->R10", "z W2->R13", "z W0->R13", "z W4->R13", "z W4->R11",
            "y W0->R9", "y W0->R7"}


def explore(tools, folder, program, *options, code=0, timeout=300, arguments=()):
    """What it printed, and its JSON."""
    result = folder / "explored.json"
    result.unlink(missing_ok=True)
    done = run([tools.stem, "explore", "--state", folder / "state", "--json", result, *options, program, *arguments], timeout=timeout, cwd=folder)
    check(done.returncode == code, f"exit code {done.returncode}, not {code}\n{done.stdout}{done.stderr}")
    return done.stdout, json.loads(result.read_text())


def pair_names(told):
    """x W0->R2: as the theory writes them."""
    return {f"{p['variable']} W{p['def'].get('line', 0)}->R{p['use']['line']}" for p in told["pairs"]["list"]}


def escort_names(told, state):
    def side(text):
        return "W0" if text == "initial value" else "b" + re.sub(r"^.*:(\d+) ", r"\1", text)
    return {f"{side(e['def'])}=>{side(e['use'])}" for e in told["escort"]["list"] if e["state"] == state}


def s1_to_the_end(tools, folder):
    program = tools.compile(PROGRAMS / "s1.c", folder / "s1")
    out, told = explore(tools, folder, program)
    check(told["ended"] == "complete" and not told["findings"] and not told["limits"], out)
    check(pair_names(told) == S1_PAIRS, f"pairs: {pair_names(told) ^ S1_PAIRS}")
    check(all(p["state"] in ("explicit", "implicit, confirmed") for p in told["pairs"]["list"]), "not every pair was shown by a run")
    check(escort_names(told, "infeasible") == {"b1T=>b10T", "W0=>b10T"}, f"infeasible: {escort_names(told, 'infeasible')}")
    check(not escort_names(told, "not found") and told["escort"]["total"] == 12, f"{told['escort']}")
    check({(m["variable"], m["def"].get("line", 0), m["use"]["line"], m["state"]) for m in told["pairs"]["missing"]} ==
          {("z", 0, 11, "infeasible"), ("z", 2, 11, "infeasible")}, f"{told['pairs']['missing']}")
    check([d["line"] for d in told["dead_definitions"]] == [11] and "y at s1.c:11" in out, "y at 11 is a definition nobody can use")
    again, more = explore(tools, folder, program)
    check(more["session"]["executions"] == 0 and pair_names(more) == S1_PAIRS, f"a finished exploration runs nothing again\n{again}")


def table_one(tools, folder):
    """The paper's Table I: the same input, order and rule of ending."""
    program = tools.compile(PROGRAMS / "s1.c", folder / "s1")
    start = schedule("main:7 main/1:4 main/2:6 main/3:2", program, path=folder / "pi1.stemtest")
    out, told = explore(tools, folder, program, "--explain", "--goal", "escort", "--sigma", "paper", "--test", start, "--input", "a=2", "--input", "b=2",
                        "--input", "c=3")
    steps = re.split(r"^Step \d+ ", out, flags=re.M)[1:]
    sigmas = [set(re.search(r"Sigma +\{(.*)\}", step)[1].split(", ")) for step in steps]
    check(told["escort"]["total"] == 6 and escort_names(told, "covered") | escort_names(told, "not found") == S1_SIGMA_PAPER, f"{told['escort']}")
    expected = [{"b1F=>b10T", "b1T=>b10T", "b1F=>b10F", "b10F=>b1F"}, {"b1F=>b10F", "b1T=>b10T", "b10F=>b1F"}, {"b1T=>b10T"}, {"b1T=>b10T"}]
    check(sigmas[:4] == expected, f"Sigma after each step: {sigmas}\n{out}")
    new = [set(filter(None, re.search(r"new +\{(.*)\}", step)[1].split(", "))) for step in steps[:3]]
    check(new[0] == {"x W0->R2", "x W0->R10", "z W2->R13", "y W0->R9", "x W13->R2", "z W0->R13"}, f"{new[0]}")
    check(new[1] == {"x W0->R4", "x W5->R10", "z W4->R11"}, f"{new[1]}")
    check(new[2] == {"x W13->R4", "z W4->R13"}, f"{new[2]}")
    work = [set(re.search(r"may cover +\{(.*)\}", step)[1].split(", ")) for step in steps[:3]]
    check(work == [{"b1T=>b10T", "b1F=>b10F", "b10F=>b1F"}] * 2 + [{""}], f"WS: {work}")
    check("1F, 4, 5" in steps[1] and "10T, 11" in steps[1] and "(tested)" in steps[3] and "Omega    {}" in steps[3], out)
    check(escort_names(told, "not found") == {"b1T=>b10T"}, f"{told['escort']}")


def s2_to_the_end(tools, folder):
    """All that exhaustive enumeration finds (tests/golden/s2_test.cpp): 144 pairs; the other potential pairs are infeasible."""
    program = tools.compile(OWN / "s2.c", folder / "s2")
    out, told = explore(tools, folder, program, "--time", "0", "--query-timeout", "60", "--run-timeout", "60", timeout=500)
    check(told["pairs"]["found"] == 144 and told["ended"] == "complete", out)
    check(told["pairs"]["infeasible"] == told["pairs"]["potential"] - 144 and told["pairs"]["unknown"] == 0, out)
    check(told["pairs"]["explicit"] + told["pairs"]["confirmed"] == 144, "not every pair was shown by a run")


def killed_and_continued(tools, folder):
    program = tools.compile(PROGRAMS / "s1.c", folder / "s1")
    kills, delay = 0, 0.15
    for _ in range(6):
        child = subprocess.Popen([tools.stem, "explore", "--state", folder / "state", program], cwd=folder, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        time.sleep(delay)
        delay += 0.1
        if child.poll() is None:
            os.kill(child.pid, signal.SIGKILL)
            kills += 1
        child.wait()
    check(kills > 0, "it was never killed")
    out, told = explore(tools, folder, program, "--time", "0")
    check(pair_names(told) == S1_PAIRS and told["ended"] == "complete", f"after {kills} kills: {out}")
    check(escort_names(told, "infeasible") == {"b1T=>b10T", "W0=>b10T"}, out)


def in_portions(tools, folder):
    """A budget is kept; the next exploration adds to the last."""
    program = tools.compile(PROGRAMS / "s1.c", folder / "s1")
    found = 0
    for _ in range(20):
        _, told = explore(tools, folder, program, "--runs", "2")
        check(told["session"]["executions"] <= 2, f"{told['session']}")
        check(told["pairs"]["found"] >= found, "pairs were lost")
        found = told["pairs"]["found"]
        if told["ended"] == "complete":
            break
    check(pair_names(told) == S1_PAIRS and told["ended"] == "complete", f"{told['ended']}: {found} pairs")


def failures(tools, folder):
    """Each bug within 20 executions, with a test that repeats it; nothing in the correct version."""
    for name, says in (("account", "assertion failed at account.c:35"), ("banking", "deadlock"), ("queue", "deadlock")):
        program = tools.compile(BUGGY / f"{name}.c", folder / name, ["-O1", "-DBUG"])
        place = folder / f"of-{name}"
        place.mkdir()
        out, told = explore(tools, place, program, "--runs", "20", "--time", "60", code=1)
        finding = min(told["findings"], key=lambda f: f["execution"])
        check(finding["execution"] <= 20 and says in finding["message"], f"{name}: {told['findings']}")
        check(0 <= finding["switches"] <= 6, f"{name}: {finding['switches']} switches")
        again = run([tools.stem, "replay", "--quiet", "--state", place / "state", finding["id"]], cwd=place)
        check(re.search("followed, .*(SIGABRT|assert|deadlock)", again.stderr), f"{name}: {again.stderr}")
        program = tools.compile(BUGGY / f"{name}.c", folder / f"{name}-right", ["-O1"])
        explore(tools, place, program, "--runs", "12", "--time", "20")


def hangs_and_crashes(tools, folder):
    program = tools.compile(OWN / "hang.c", folder / "hang")
    out, told = explore(tools, folder, program, "--run-timeout", "4", "--runs", "10", code=1)
    kinds = {f["kind"] for f in told["findings"]}
    check("signalled" in kinds and kinds & {"hang", "livelock"}, out)


def time_is_up(tools, folder):
    """A run that hangs is cut by the exploration's time, long before its own, and is no finding then."""
    program = tools.compile(OWN / "hang.c", folder / "hang")
    out, told = explore(tools, folder, program, "--run-timeout", "200", "--time", "10", code=1, timeout=100)
    check(told["ended"] == "time" and "the time was up" in out and told["session"]["seconds"] < 60, out)
    check({f["kind"] for f in told["findings"]} == {"signalled"}, out)


def without_inputs_and_branches(tools, folder):
    program = tools.compile(OWN / "plain.c", folder / "plain")
    out, told = explore(tools, folder, program)
    check({("x", 0, 14), ("x", 7, 14), ("y", 0, 14), ("y", 8, 14)} <=
          {(p["variable"], p["def"].get("line", 0), p["use"]["line"]) for p in told["pairs"]["list"]}, out)
    check(told["escort"]["total"] == 0 and told["pairs"]["unknown"] == 0, out)


def threads_left_behind(tools, folder):
    """main returns while a thread may still have something to do: nothing that thread was not seen to do is infeasible."""
    program = tools.compile(OWN / "left.c", folder / "left")
    out, told = explore(tools, folder, program)
    check(told["pairs"]["infeasible"] == 0 and any("before all its threads" in limit for limit in told["limits"]), out)


def loops_do_not_hold_it_up(tools, folder):
    program = tools.compile(OWN / "loops.c", folder / "loops")
    out, told = explore(tools, folder, program, "--runs", "20", "--time", "60")
    check(any(p["variable"] == "found" and p["def"].get("line") == 13 for p in told["pairs"]["list"]), f"the branch behind the loops was not taken\n{out}")


def divergence(tools, folder):
    program = tools.compile(OWN / "diverges.c", folder / "diverges")
    out, told = explore(tools, folder, program, "--runs", "6")
    check(told["diverged"] > 0 and "diverges.c:19" in told["divergences"][0] and "did not follow" in out, out)
    check(told["pairs"]["infeasible"] == 0, f"nothing is proved by a program that does not repeat itself\n{out}")


def mistakes(tools, folder):
    for words, says in ((["explore"], "needs a program"), (["explore", "./nowhere"], "no such program"), (["explore", "/bin/true"], "cannot explore"),
                        (["explore", "--goal", "all", "x"], "--goal")):
        done = run([tools.stem, *words], cwd=folder)
        check(done.returncode not in (0, 1, 3) and says in done.stderr, f"{words}: {done.returncode} {done.stderr}")


if __name__ == "__main__":
    sys.exit(run_checks([s1_to_the_end, table_one, s2_to_the_end, killed_and_continued, in_portions, failures, hangs_and_crashes, time_is_up,
                         without_inputs_and_branches, threads_left_behind, loops_do_not_hold_it_up, divergence, mistakes], sys.argv))
