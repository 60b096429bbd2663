#!/usr/bin/env python3
"""stem explore on whole programs: the worked examples to their last pair, the steps of the paper's Table I, failures with tests that
replay, and an exploration that is killed and goes on."""

import json
import re
import sys

from stemtest import PROGRAMS, check, run, run_checks, schedule

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


if __name__ == "__main__":
    sys.exit(run_checks([s1_to_the_end, table_one], sys.argv))
