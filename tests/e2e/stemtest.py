"""What the end-to-end tests share: running the tools, reading dumps, counting failures."""

import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAMS = ROOT / "tests/e2e/programs"


class Tools:
    """The tools of one build or installation. With a tracer for programs as they are: gcc compiles, and that tracer records."""

    def __init__(self, prefix, tracer=None):
        self.bin = pathlib.Path(prefix).resolve() / "bin"
        self.stem = str(self.bin / "stem")
        self.tracer = tracer
        self.cc = "gcc" if tracer else str(self.bin / "stem-cc")
        self.cxx = "g++" if tracer else str(self.bin / "stem-c++")
        self.record = [self.stem, "record", *(["--tracer", tracer] if tracer else [])]

    def compile(self, sources, output, flags=()):
        sources = [str(s) for s in (sources if isinstance(sources, (list, tuple)) else [sources])]
        compiler = self.cxx if any(s.endswith(".cpp") for s in sources) else self.cc
        command = [compiler, "-g", *flags, *sources, "-o", str(output), "-pthread"]
        done = run(command, timeout=120)
        if done.returncode != 0:
            raise Failure(f"compiling failed: {' '.join(command)}\n{done.stderr}")
        return output


class Failure(Exception):
    pass


def run(command, timeout=60, cwd=None, env=None, stdin=None, **more):
    environment = dict(os.environ)
    environment.pop("STEM_STATE", None)
    environment.update(env or {})
    try:
        return subprocess.run([str(c) for c in command], cwd=cwd, env=environment, timeout=timeout, text=True, errors="replace",
                              capture_output=True, **({"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}), **more)
    except subprocess.TimeoutExpired as late:
        def text(b):
            return b.decode(errors="replace") if isinstance(b, bytes) else (b or "")
        raise Failure(f"still running after {timeout} s: {' '.join(map(str, command))}\n{text(late.stdout)[-2000:]}{text(late.stderr)[-2000:]}")


def check(condition, message):
    if not condition:
        raise Failure(message)


def ended(returncode):
    """0, 3, "SIGSEGV"."""
    return signal.Signals(-returncode).name if returncode < 0 else returncode


class Event:
    """One event of a dump, with its names resolved."""
    __slots__ = ("index", "thread", "kind", "line", "text", "function", "variable", "value", "value2", "size", "flags", "expr", "raw")

    def signed(self):
        bits = 8 * self.size if self.size else 64
        return self.value - (1 << bits) if self.value >> (bits - 1) & 1 else self.value

    def __str__(self):
        """main/1 read x:12 = 3"""
        what = self.variable or self.text
        return f"{self.thread} {self.kind}{' ' + what if what else ''}:{self.line} = {self.signed()}"


WORD = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)')


def unquote(text):
    if not text.startswith('"'):
        return text
    return re.sub(r"\\(x[0-9a-f]{2}|.)", lambda m: chr(int(m[1][1:], 16)) if len(m[1]) == 3 else {"n": "\n", "t": "\t"}.get(m[1], m[1]), text[1:-1])


class Dump:
    """The text form of a trace, read."""

    def __init__(self, text):
        self.sites, self.threads, self.variables, self.events, self.inputs = {}, {}, {}, [], []
        self.outcome = None
        for line in text.splitlines():
            if line.startswith("site "):
                fields = dict(WORD.findall(line))
                self.sites[line.split()[1]] = {k: unquote(v) for k, v in fields.items()}
            elif line.startswith("thread "):
                self.threads[line.split()[1]] = unquote(dict(WORD.findall(line))["path"])
            elif line.startswith("variable "):
                _, name, rest = line.split(" ", 2)
                self.variables[name] = unquote(rest)
            elif line.startswith("input "):
                fields = dict(WORD.findall(line))
                self.inputs.append((unquote(fields["name"]), fields.get("bytes", "")))
            elif line.startswith("outcome "):
                self.outcome = re.sub('"', "", line[len("outcome "):]).strip()
            elif line.startswith("@"):
                self.events.append(self._event(line))

    def _event(self, line):
        body = line.split(" ; ", 1)[0]
        words = body.split()
        event = Event()
        event.raw = line
        event.index = int(words[0][1:])
        event.thread = self.threads.get(words[1], words[1])
        event.kind = words[2]
        site = next((self.sites[w] for w in words[3:] if re.fullmatch(r"s\d+", w) and w in self.sites), {})
        fields = dict(WORD.findall(body))
        event.line = int(site.get("line", 0))
        event.text = site.get("text", "")
        event.function = site.get("function", "")
        event.variable = self.variables.get(fields.get("variable", ""), "")
        event.value = int(fields.get("value", 0))
        event.value2 = int(fields.get("value2", 0))
        event.size = int(fields.get("size", 0))
        event.flags = fields.get("flags", "")
        event.expr = fields.get("expr", "")
        return event

    def visible(self):
        hidden = {"external", "alloc", "free", "branch", "pin", "assert", "input", "nondet", "signal-out", "fork", "fault", "exit"}
        return [e for e in self.events if e.kind not in hidden]


def dump(tools, trace, most=None):
    """The whole trace, or its first events: those of a program that runs until it is stopped are many."""
    done = run([tools.stem, "trace", "dump", *(["--to", most] if most else []), trace], timeout=120)
    check(done.returncode == 0, f"stem trace dump {trace}: exit code {done.returncode}\n{done.stderr}")
    return Dump(done.stdout)


def schedule(text, program, inputs=(), path=None):
    """Writes a test file: "main:4 main/1:3 main/2:1>main/3" (the last operation of that step wakes main/3)."""
    steps = []
    for word in text.split():
        thread, rest = word.split(":")
        count, _, wakes = rest.partition(">")
        step = {"thread": thread, "count": int(count)}
        if wakes:
            step["wakes"] = wakes
        steps.append(step)
    test = {"stem_test": 1, "program": {"path": str(program)}, "inputs": list(inputs), "schedule": steps}
    pathlib.Path(path).write_text(json.dumps(test))
    return path


def run_checks(checks, argv):
    """Runs functions named on the command line (default: all) as `name(tools, folder)`; prints what failed; exit code."""
    tools = Tools(argv[1])
    wanted = argv[2:]
    failed = 0
    for function in checks:
        name = function.__name__
        if wanted and name not in wanted:
            continue
        with tempfile.TemporaryDirectory(prefix="stem-e2e-") as folder:
            try:
                function(tools, pathlib.Path(folder))
                print(f"ok    {name}", flush=True)
            except Failure as failure:
                failed += 1
                print(f"FAIL  {name}: {failure}", flush=True)
    return 1 if failed else 0
