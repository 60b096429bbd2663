#!/usr/bin/env python3
"""Programs as they are: compiled by gcc, recorded by Valgrind. The running example and its pairs, one instruction torn apart, names, C++, shared
libraries, static programs, fork and exec, what passes through, divergence, what the tools say without semantics."""

import bz2
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from stemtest import Failure, Tools, check, dump, ended, run, run_checks, schedule

S1 = r"""#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
%s int x, y, z;
static void *t0(void *p) {
  int a = (int)(intptr_t)p;
#line 1
  if (a > 1)
#line 2
    z = x + 2;
  else {
#line 4
    z = x - 2;
#line 5
    x = 3;
  }
#line 100
  return 0;
}
static void *t1(void *p) {
  int b = (int)(intptr_t)p;
#line 6
  if (b > 5)
#line 7
    b = y + 1;
  else
#line 9
    b = y - 1;
#line 10
  if (x > 2)
#line 11
    y = z + 1;
  else
#line 13
    x = z - 1;
#line 200
  return (void *)(intptr_t)b;
}
static void *t2(void *p) {
  int c = (int)(intptr_t)p, d;
#line 14
  if (c < 2)
#line 15
    d = 1;
  else
#line 17
    d = 0;
#line 300
  return (void *)(intptr_t)d;
}
int main(int argc, char **argv) {
  pthread_t t[3];
  void *b, *d;
  pthread_create(&t[0], 0, t0, (void *)(intptr_t)atoi(argv[1]));
  pthread_create(&t[1], 0, t1, (void *)(intptr_t)atoi(argv[2]));
  pthread_create(&t[2], 0, t2, (void *)(intptr_t)atoi(argv[3]));
  pthread_join(t[0], 0); pthread_join(t[1], &b); pthread_join(t[2], &d);
  return (intptr_t)b == 99 && (intptr_t)d == 99;
}
"""


def gcc(tools, folder, name, text, *flags):
    source = folder / (name + (".cpp" if "std::" in text else ".c"))
    source.write_text(text)
    return tools.compile(source, folder / name, flags)


def tools_of(tools):
    return Tools(tools.bin.parent, "valgrind")


def analyze(tools, trace, *more):
    done = run([tools.stem, "analyze", trace, "--json", "--no-store", "--timeout", "60", *more], timeout=300)
    check(done.returncode == 0, f"stem analyze: exit code {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)["traces"][0]["pairs"]


def pairs(found, state, variables="xyz"):
    line = lambda a: 0 if a.get("initial") else a["line"]
    return {f"{p['variable']} {line(p['def'])} {line(p['use'])}" for p in found if p["state"].startswith(state) and p["variable"] in variables}


def record(tools, folder, program, *arguments, options=(), code=0, stdin=None):
    trace = folder / "case.stemtrace"
    trace.unlink(missing_ok=True)
    done = run([*tools.record, "-o", trace, *options, "--", program, *arguments], cwd=folder, stdin=stdin, timeout=120)
    check(done.returncode == code, f"ended with {ended(done.returncode)}, not {code}\n{done.stdout}{done.stderr}")
    checked = run([tools.stem, "trace", "check", trace])
    check(checked.returncode == 0, f"check: {checked.stdout}{checked.stderr}")
    return trace, done


def identical(tools, folder, trace):
    again = run([tools.stem, "replay", trace], cwd=folder, timeout=120)
    check("replayed identically" in again.stderr, f"replay: {again.stdout}{again.stderr}")
    return again


def order(tools, folder, program, threads, arguments):
    """A test file that lets main create everybody, and then runs the threads one after the other."""
    probe, _ = record(tools, folder, program, *arguments)
    events = dump(tools, probe).visible()
    last = max(i for i, e in enumerate(e for e in events if e.thread == "main") if [x for x in events if x.thread == "main"][i].kind == "create")
    counts = {t: sum(e.thread == t for e in events) for t in threads}
    return schedule(f"main:{last + 1} " + " ".join(f"{t}:{counts[t]}" for t in threads), program, path=folder / "order.stemtest")


def running_example(tools, folder):
    """The explicit pairs of pi 1, and both its implicit pairs, confirmed. gcc -O2 reads z between the comparison of x and its jump: that
    read has no part in the branch."""
    tools = tools_of(tools)
    explicit = {"x 0 2", "x 0 10", "z 2 13", "y 0 9"}
    both = {"x 13 2", "z 0 13"}
    for flags, implicit in [(("-O0",), both), (("-O2",), both)]:
        program = gcc(tools, folder, "s1", S1 % "volatile", *flags)
        arguments = ("2", "2", "3")
        test = order(tools, folder, program, ["main/1", "main/2", "main/3"], arguments)
        trace, _ = record(tools, folder, program, *arguments, options=("--schedule", test))
        found = analyze(tools, trace)
        seen = {p for p in pairs(found, "explicit")}
        lines = {re.sub(r"^(y 0) 7$|^(z .*) 11$", lambda m: "y 0 9" if m[1] else m[2] + " 13", p) for p in seen}  # -O2 reads y once for 7 and 9, z for 11 and 13
        check(lines == explicit, f"S1 {flags}: explicit {sorted(seen)}")
        check({p.replace("z 0 11", "z 0 13") for p in pairs(found, "implicit")} == implicit, f"S1 {flags}: implicit {sorted(pairs(found, 'implicit'))}")
        check(pairs(found, "implicit, confirmed") == pairs(found, "implicit"), f"S1 {flags}: {[(p['state'], p.get('detail')) for p in found]}")
        identical(tools, folder, trace)


STACK = """#include <pthread.h>
#include <stdio.h>
char *word, *last;
static void *look(void *p) { last = word + 2; return p; }
int main(int argc, char **argv) {
  pthread_t t;
  word = argv[argc - 1];
  pthread_create(&t, 0, look, argv[0]); pthread_join(t, 0);
  printf("%p %s %s\\n", word, argv[0], last);
  return 0;
}
"""


def above_the_stack(tools, folder):
    """What lies above main's stack lies there again, whatever folders and process ids the runs have; with another environment it lies
    elsewhere, and is still the same run. The program is called by the name that it had."""
    tools = tools_of(tools)
    gcc(tools, folder, "stack", STACK)
    trace, first = record(tools, folder, "./stack", "hello")
    check(first.stdout.endswith(" ./stack llo\n"), f"prints {first.stdout!r}")
    check(identical(tools, folder, trace).stdout == first.stdout, "the replay has another stack")
    for more in ("x" * 7, "x" * 5000):
        again = run([tools.stem, "replay", trace], cwd="/", env={"STEM_TEST_ENVIRONMENT": more}, timeout=120)
        check("replayed identically" in again.stderr and again.stdout.endswith(" ./stack llo\n"), f"replay: {again.stdout}{again.stderr}")


RMW = """#include <pthread.h>
volatile int n, seen;
static void *count(void *p) {
  __asm__ volatile("addl $1, %0; jnz 1f; ud2; 1:" : "+m"(n) : : "cc");
  return p;
}
static void *set(void *p) {
  n = 5;
  seen = n;
  return p;
}
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, count, 0); pthread_create(&b, 0, set, 0);
  pthread_join(a, 0); pthread_join(b, 0);
  return seen == 77;
}
"""


def one_instruction(tools, folder):
    """The branch holds what the addition read; that 5 is written between its read and its write is predicted, and done."""
    tools = tools_of(tools)
    program = gcc(tools, folder, "rmw", RMW, "-O2")
    trace, _ = record(tools, folder, program)
    found = analyze(tools, trace)
    states = {pair: p["state"] for p in found for pair in pairs([p], "", ["n"])}
    for pair in ("n 0 4", "n 4 9", "n 8 4", "n 8 9"):
        check(states.get(pair) in ("explicit", "implicit, confirmed"), f"{pair}: {states}")


NAMES = """#include <pthread.h>
#include <stdlib.h>
struct point { int x, y; };
struct queue { pthread_mutex_t m; int head; struct point at[4]; };
static struct queue q = {PTHREAD_MUTEX_INITIALIZER, 0, {{0, 0}}};
static inline __attribute__((always_inline)) void bump(struct queue *p) { p->head++; }
struct node { volatile int value; struct node *next; };
static struct node *volatile last;
static __attribute__((noinline)) struct node *make(void) { return malloc(sizeof(struct node)); }
static void *run(void *argument) {
  int *shared = argument;
  static int count;
  pthread_mutex_lock(&q.m);
  bump(&q);
  q.at[q.head & 3].y = 7;
  count++;
  *shared = 9;
  pthread_mutex_unlock(&q.m);
  struct node *n = make();
  n->value = 3; last = n;
  free(n);
  return 0;
}
int main(void) {
  pthread_t t[2];
  int mine = 0;
  for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, run, &mine);
  for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
  return mine != 9;
}
"""


def names(tools, folder):
    """Globals, fields, elements, statics, locals that others see, the heap by allocation site; lines and functions, inlined ones too."""
    tools = tools_of(tools)
    for compiler, level in [("gcc", "-O0"), ("gcc", "-O2"), ("clang-19", "-O0"), ("clang-19", "-O2")]:
        tools.cc = compiler
        program = gcc(tools, folder, "names", NAMES, level)
        trace, done = record(tools, folder, program)
        check(all(line.startswith("stem: ") for line in done.stderr.splitlines()), f"{compiler}: not ours: {done.stderr}")
        events = dump(tools, trace).events
        lines = [str(e) for e in events]
        for want in (r"main/1 lock q\.m:13", r"main/1 read q\.head:6", r"main/1 write q\.head:6", r"main/1 write q\.at\[\]\.y:15", r"main/1 write run::count:16",
                     r"main/1 write main::mine:17 = 9", r"main/1 write heap\((make:9<run|run:19|make:9).*\)\+0:20 = 3"):
            check(any(re.match(want, line) for line in lines), f"{compiler} {level}: no {want!r} in\n" + "\n".join(lines))
        inlined = [e for e in events if e.kind == "write" and e.variable == "q.head"]
        check(inlined and all(e.function == "bump" for e in inlined), f"{compiler} {level}: {[e.function for e in inlined]}")
        check(not any(e.line == 0 and e.kind in ("read", "write") for e in events), f"{compiler} {level}: without a line:\n" + "\n".join(lines))
        identical(tools, folder, trace)


NAMES_CXX = """#include <memory>
#include <thread>
#include <vector>
struct Item { int a, b; };
static std::vector<Item> items;
static void fill() {
  for (int i = 0; i < 3; i++)
    items.push_back({i, i});
}
int main() {
  fill();
  auto one = std::make_shared<Item>();
  std::thread t([&] { items[1].b = 5; one->a = 3; });
  t.join();
  return items[1].b + one->a == 99;
}
"""


def names_of_cxx(tools, folder):
    """What the C++ library's headers do for the program is the program's: the frame that they are inlined into, the line that allocates.
    And it takes no time to find that out."""
    tools = tools_of(tools)
    for compiler, level in [("g++", "-O0"), ("g++", "-O2"), ("clang++-19", "-O0"), ("clang++-19", "-O2")]:
        tools.cxx = compiler
        program = gcc(tools, folder, "names", NAMES_CXX, level, "-std=c++17")
        trace, _ = record(tools, folder, program)
        lines = [str(e) for e in dump(tools, trace).events]
        want = [r"main/1 write heap\(fill:8(<main)?\)\+12:13 = 5", r"main/1 write heap\(main:12(<main)?\)\+16:13 = 3"]
        if level == "-O2":  # at -O0 it is the constructor's `this` that writes there
            want += [r"main write main::t\._M_id\._M_thread"]
        for one in want:
            check(any(re.match(one, line) for line in lines), f"{compiler} {level}: no {one!r} in\n" + "\n".join(lines))
        identical(tools, folder, trace)


CXX = """#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>
namespace box { struct Counter { std::mutex m; std::condition_variable c; int value = 0; std::atomic<int> done{0}; }; Counter counter; }
static void work(int n) {
  for (int i = 0; i < n; i++) { std::lock_guard<std::mutex> g(box::counter.m); box::counter.value++; }
  box::counter.done++;
  box::counter.c.notify_one();
}
int main() {
  std::vector<std::thread> all;
  for (int i = 0; i < 3; i++) all.emplace_back(work, 4);
  { std::unique_lock<std::mutex> l(box::counter.m); box::counter.c.wait(l, [] { return box::counter.done == 3; }); }
  for (auto &t : all) t.join();
  return box::counter.value != 12;
}
"""


def cxx(tools, folder):
    tools = tools_of(tools)
    program = gcc(tools, folder, "cxx", CXX, "-O1", "-std=c++17")
    trace, _ = record(tools, folder, program)
    lines = [str(e) for e in dump(tools, trace).events]
    for want in (r"main/1 lock box::counter\.m:", r"main/2 write box::counter\.value:8", r"main/3 rmw box::counter\.done", r"main\S* (signal|broadcast) box::counter\.c"):
        check(any(re.match(want, line) for line in lines), f"no {want!r} in\n" + "\n".join(lines[:300]))
    identical(tools, folder, trace)


def shared_library(tools, folder):
    tools = tools_of(tools)
    (folder / "lib.c").write_text("#include <pthread.h>\nint total;\nvoid add(int n) {\n  total += n;\n}\n")
    tools.compile(folder / "lib.c", folder / "libtotal.so", ["-O1", "-shared", "-fPIC"])
    (folder / "main.c").write_text("""#include <pthread.h>
extern int total; void add(int);
static void *run(void *p) { add(2); return p; }
int main(void) {
  pthread_t a, b; pthread_create(&a, 0, run, 0); pthread_create(&b, 0, run, 0); pthread_join(a, 0); pthread_join(b, 0);
  return total == 77;
}
""")
    program = tools.compile([folder / "main.c", folder / "libtotal.so"], folder / "main", ["-O1", f"-Wl,-rpath,{folder}"])
    trace, _ = record(tools, folder, program)
    lines = [str(e) for e in dump(tools, trace).events]
    for thread in ("main/1", "main/2"):
        check(any(re.match(rf"{thread} write total:4 ", line) for line in lines), "\n".join(lines))
    identical(tools, folder, trace)


def refusals(tools, folder):
    """A static program, inputs, --parallel: a sentence that says what to do."""
    tools = tools_of(tools)
    text = "int main(void) { return 0; }\n"
    static = gcc(tools, folder, "static", text, "-static")
    plain = gcc(tools, folder, "plain", text)
    for command, want in [([*tools.record, static], "statically linked"), ([tools.stem, "record", static], "statically linked"),
                          ([tools.stem, "record", "--input", "n=3", plain], "stem-cc"), ([tools.stem, "record", "--parallel", plain], "stem-cc")]:
        done = run(command, cwd=folder)
        check(done.returncode == 2 and want in done.stderr, f"{command}: {done.returncode} {done.stderr}")


FORK = """#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int shared;
static void *run(void *p) { shared = 1; return p; }
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int ready, came;
static void initialise(void) { ready = 1; }
static void *come(void *p) { pthread_mutex_lock(&m); came = 1; pthread_cond_signal(&c); pthread_mutex_unlock(&m); return p; }
static void meet(void) { /* in the child as anywhere, recorded or not */
  pthread_t t;
  pthread_mutex_lock(&m);
  pthread_create(&t, 0, come, 0);
  while (!came) pthread_cond_wait(&c, &m);
  pthread_mutex_unlock(&m);
  pthread_join(t, 0);
  if (!ready) _exit(9);
}
int main(void) {
  pthread_t t; int status = 0;
  pthread_create(&t, 0, run, 0); pthread_join(t, 0);
  pid_t pid = fork();
  if (pid == 0) { shared = 3; pthread_once(&once, initialise); meet(); execl("/bin/echo", "echo", "child", (char *)0); _exit(127); }
  waitpid(pid, &status, 0);
  shared = 2;
  return WEXITSTATUS(status) == 0 ? 5 : 6;
}
"""


def fork_and_exec(tools, folder):
    tools = tools_of(tools)
    program = gcc(tools, folder, "parent", FORK, "-O1")
    trace, done = record(tools, folder, program, code=5)
    check(done.stdout == "child\n", done.stdout)
    written = [e.value for e in dump(tools, trace).events if e.kind == "write" and e.variable == "shared"]
    check(written == [1, 2], f"writes of shared: {written}")
    identical(tools, folder, trace)
    # The child, until it becomes echo: its own trace, which begins in the middle.
    child = folder / "case.stemtrace.2"
    seen = dump(tools, child)
    written = [e.value for e in seen.events if e.kind == "write" and e.variable == "shared"]
    check(written == [3] and set(seen.threads.values()) == {"main", "main/1"}, f"the child: writes {written}, threads {seen.threads}")
    check(run([tools.stem, "trace", "check", child]).returncode == 0, "the child's trace is not well-formed")
    refused = run([tools.stem, "replay", child], cwd=folder)
    check(refused.returncode == 2 and "forked child" in refused.stderr, f"{refused.returncode} {refused.stderr}")
    analyzed = run([tools.stem, "analyze", "--no-store", child], cwd=folder, timeout=120)
    check(analyzed.returncode == 0 and "0 diverged" in analyzed.stdout or "diverged" not in analyzed.stdout, analyzed.stdout + analyzed.stderr)


THREADS_FORK = """#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_barrier_t b; static int n;
static void *run(void *p) { n = 1; pthread_barrier_wait(&b); return p; }
int main(void) {
  pthread_t t; pthread_barrier_init(&b, 0, 2); pthread_create(&t, 0, run, 0);
  pid_t pid = fork();
  if (pid == 0) { n = 2; _exit(n); }
  int status = 0; waitpid(pid, &status, 0);
  pthread_barrier_wait(&b); pthread_join(t, 0);
  return WEXITSTATUS(status);
}
"""
CHILD = """#include <pthread.h>
#include <stdio.h>
volatile int shared;
static void *run(void *p) { shared++; return p; }
int main(int argc, char **argv) {
  pthread_t a, b; pthread_create(&a, 0, run, 0); pthread_create(&b, 0, run, 0); pthread_join(a, 0); pthread_join(b, 0);
  printf("child %s\\n", argv[1]);
  return 3;
}
"""
STARTER = """#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static volatile int shared;
static void *run(void *p) { shared++; return p; }
static void ended(const char *how, int status) { printf("%s %d\\n", how, WEXITSTATUS(status)); fflush(stdout); }
int main(void) {
  pthread_t t; int status = 0; pid_t pid;
  pthread_create(&t, 0, run, 0); pthread_join(t, 0);
  ended("system", system("./child system"));
  char *words[] = {"./child", "spawn", 0}, *nothing[] = {0};
  posix_spawn(&pid, "./child", 0, 0, words, environ); waitpid(pid, &status, 0); ended("spawn", status);
  words[1] = "bare"; posix_spawn(&pid, "./child", 0, 0, words, nothing); waitpid(pid, &status, 0); ended("bare", status);
  words[0] = "./static"; posix_spawn(&pid, "./static", 0, 0, words, environ); waitpid(pid, &status, 0); ended("static", status);
  words[0] = "./compiled"; words[1] = "itself"; posix_spawn(&pid, "./compiled", 0, 0, words, environ); wait(&status); ended("compiled", status);
  if (pid != getpid()) shared = pid;
  return 0;
}
"""


def processes(tools, folder):
    """What a program starts is recorded: by exec, system, posix_spawn, by make and by scripts, each process in a trace of its own. Not what
    is static or has lost our environment: that only runs. A program of stem-cc records itself."""
    compiled, tools = tools, tools_of(tools)
    gcc(tools, folder, "child", CHILD)
    gcc(tools, folder, "static", CHILD, "-static")
    compiled.compile(folder / "child.c", folder / "compiled", ["-O1"])
    program = gcc(tools, folder, "starter", STARTER)
    trace, done = record(tools, folder, program)
    said = "".join(f"child {word}\n{how} 3\n" for how, word in [("system",) * 2, ("spawn",) * 2, ("bare",) * 2, ("static", "bare"), ("compiled", "itself")])
    check(done.stdout == said, f"prints {done.stdout!r}")
    found = {}
    for one in folder.glob("case.stemtrace*"):
        head = run([tools.stem, "trace", "dump", one]).stdout
        words = " ".join(re.findall(r'^argv "(.*)"$', head, re.M))
        found[words.split("/")[-1]] = re.search(r'recorder="(\w+)"', head)[1]
        check(run([tools.stem, "trace", "check", one]).returncode == 0, f"{one} is not well-formed")
    want = {"starter": "valgrind", "child system": "valgrind", "child spawn": "valgrind", "compiled itself": "compiled"}
    check(found == want, f"traces: {found}")
    check(identical(tools, folder, trace).stdout == done.stdout, "the replay prints something else")

    (folder / "Makefile").write_text("check:\n\t-@./child make\n")
    (folder / "script").write_text("#!/bin/sh\n./child one; ./child two | cat; exit 4\n")
    (folder / "script").chmod(0o755)
    for command, code, count in [(["make", "-s", "check"], 0, 1), (["./script"], 4, 2)]:
        state = folder / ("state-" + command[0].replace("./", ""))
        done = run([*tools.record, "--state", state, "--", *command], cwd=folder, timeout=120)
        check(done.returncode == code, f"{command}: {done.returncode} {done.stdout}{done.stderr}")
        traces = list((state / "traces").glob("*.stemtrace"))
        check(len(traces) == count and all("child" in run([tools.stem, "trace", "dump", t]).stdout for t in traces), f"{command}: {traces} {done.stderr}")
        again = run([tools.stem, "replay", "--state", state, str(count)], cwd=folder, timeout=120)
        check("replayed identically" in again.stderr, again.stderr)

    done = run([*tools.record, "/bin/echo", "x"], cwd=folder)
    check(done.returncode == 2 and done.stdout == "x\n" and "compile with -g" in done.stderr, f"{done.returncode} {done.stdout}{done.stderr}")
    done = run([*tools.record, "./compiled", "x"], cwd=folder)
    check(done.returncode == 2 and "records itself" in done.stderr, f"{done.returncode} {done.stderr}")
    threads = gcc(tools, folder, "threads", THREADS_FORK)
    trace, done = record(tools, folder, threads, code=2)
    check("fork in a process that has threads" in done.stderr, done.stderr)
    identical(tools, folder, trace)


PASS = r"""#include <pthread.h>
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
  const char *what = argv[1];
  if (!strcmp(what, "echo")) { char line[100]; while (fgets(line, sizeof line, stdin)) fputs(line, stdout); fputs("err\n", stderr); return 0; }
  if (!strcmp(what, "code")) return atoi(argv[2]);
  if (!strcmp(what, "die")) raise(atoi(argv[2]));
  if (!strcmp(what, "handle")) { signal(SIGTERM, handler); puts("ready"); fflush(stdout); while (!got) usleep(1000); printf("got %d\n", got); return 4; }
  for (;;) { puts("ready"); fflush(stdout); n = n + 1; usleep(1000); }
}
"""


def passes_through(tools, folder):
    tools = tools_of(tools)
    program = gcc(tools, folder, "p", PASS, "-O1")
    trace, done = record(tools, folder, program, "echo", stdin="one\ntwo\n")
    check(done.stdout == "one\ntwo\n" and "err\n" in done.stderr, f"{done.stdout!r} {done.stderr!r}")
    again = identical(tools, folder, trace)  # without the input: it is in the trace
    check("one\ntwo\n" in again.stdout, again.stdout)
    for code in (0, 3, 255):
        record(tools, folder, program, "code", str(code), code=code)
    for number in (signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL):
        record(tools, folder, program, "die", str(int(number)), code=-number)
    child = subprocess.Popen([*tools.record, "./p", "handle"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    check(child.stdout.readline() == "ready\n", "no start")
    child.send_signal(signal.SIGTERM)
    out, err = child.communicate(timeout=60)
    check(out == f"got {int(signal.SIGTERM)}\n" and child.returncode == 4, f"{child.returncode} {out!r} {err!r}")
    # Killed from outside: everything up to there is in the trace.
    child = subprocess.Popen([*tools.record, "--state", "killed", "./p", "loop"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(10):
        child.stdout.readline()
    victims = [int(p) for p in run(["pgrep", "-P", str(child.pid)]).stdout.split()]
    valgrind = [p for p in victims if "stem-amd64" in open(f"/proc/{p}/comm").read()]
    check(valgrind, f"no program among {victims}")
    os.kill(valgrind[0], signal.SIGKILL)
    out, err = child.communicate(timeout=60)
    check(child.returncode == -signal.SIGKILL, f"{child.returncode} {err}")
    trace = folder / "killed/traces/1.stemtrace"
    check(sum(e.kind == "write" and e.variable == "n" for e in dump(tools, trace).events) >= 10, "an empty trace")
    checked = run([tools.stem, "trace", "check", trace])
    check(checked.returncode == 0, checked.stdout + checked.stderr)


GROUPS = r"""#include <pthread.h>
#include <stdlib.h>
#include <string.h>
struct item { struct item *next; double weight; short kind; char tag; };
static struct item *list;
static int table[64], total, turns = 6;
static double sums[64];
static float small[16] = {1.5f, 2.5f};
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void note(int *to, int by) { *to += by; }
static int depth(int n) { int here[4] = {n, n + 1, n + 2, n + 3}; if (n) note(&here[n & 3], depth(n - 1)); return here[0] + here[3]; }
static void *run(void *p) {
  long me = (long)p;
  for (int turn = 0; turn < turns; ++turn) {
    for (int i = 0; i < 64; ++i) { table[i] += i ^ turn; sums[i] -= sums[(i + 7) & 63] * 0.5 + me; }
    for (int i = 1; i < 16; ++i) small[i] = small[i - 1] * 1.25f + (float)turn;
    pthread_mutex_lock(&m);
    struct item *n = malloc(sizeof *n);
    n->weight = sums[turn]; n->kind = (short)turn; n->tag = 'a'; n->next = list; list = n;
    pthread_mutex_unlock(&m);
    for (struct item *i = list; i; i = i->next) if (i->kind > 2 && i->tag == 'a') total += i->kind;
    memcpy(&table[32], &table[0], 40);
    total += depth(turn & 3);
  }
  return 0;
}
int main(void) {
  pthread_t t[2];
  for (long i = 0; i < 2; ++i) pthread_create(&t[i], 0, run, (void *)i);
  for (int i = 0; i < 2; ++i) pthread_join(t[i], 0);
  return 0;
}
"""

FAULTS = r"""#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
static volatile int before, between, after, zero;
static int *volatile where;
static sigjmp_buf back;
static void handler(int s) { siglongjmp(back, s); }
int main(int argc, char **argv) {
  const char *what = argv[1];
  where = mmap(0, 4096, strcmp(what, "write") ? PROT_NONE : PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (!strcmp(what, "handled")) {
    signal(SIGSEGV, handler);
    if (!sigsetjmp(back, 1)) { before = 1; between = *where; after = 1; }
    before = 2;
    return 5;
  }
  before = 7;
  between = before + 1;
  if (!strcmp(what, "read")) { before = 18; between = before; after = *where; before = 9; }
  if (!strcmp(what, "write")) { before = 18; between = before; *where = between; before = 9; }
  if (!strcmp(what, "divide")) { before = 18; between = before; after = between / zero; before = 9; }
  return after;
}
"""


def groups(tools, folder):
    """What is recorded without calls is what is recorded with them, in every detail, however the threads take turns; so it is where an
    instruction faults in the middle of a block."""
    tools = tools_of(tools)

    def recorded(program, *arguments, way, options=(), code=0):
        trace = folder / "way.stemtrace"
        trace.unlink(missing_ok=True)
        done = run([*tools.record, "-o", trace, *options, "--", program, *arguments], cwd=folder, env={"STEM_GROUPS": way}, timeout=120)
        check(done.returncode == code, f"STEM_GROUPS={way} {arguments}: ended with {ended(done.returncode)}, not {ended(code)}\n{done.stderr}")
        checked = run([tools.stem, "trace", "check", trace])
        check(checked.returncode == 0, f"check: {checked.stdout}{checked.stderr}")
        text = run([tools.stem, "trace", "dump", trace]).stdout
        return "".join(line for line in text.splitlines(True) if not line.startswith("nondet"))

    for flags in ("-O0", "-O1", "-O2"):
        program = gcc(tools, folder, "g", GROUPS, flags)
        for options in ((), ("--switch", "20", "--seed", "3"), ("--mode", "random", "--seed", "2"), ("--mode", "pct")):
            calls, groups = (recorded(program, way=way, options=options) for way in "01")
            check(calls == groups, f"{flags} {options}: not the same events")
        trace, _ = record(tools, folder, program)
        identical(tools, folder, trace)
    program = gcc(tools, folder, "f", FAULTS, "-O0")
    for what, number, value in (("read", signal.SIGSEGV, 18), ("write", signal.SIGSEGV, 18), ("divide", signal.SIGFPE, 18), ("handled", 0, 1)):
        calls, groups = (recorded(program, what, way=way, code=-number if number else 5) for way in "01")
        check(calls == groups, f"{what}: not the same events:\n{calls}\n{groups}")
        check(re.search(rf" write .*value={value} .*variable=.* b\w+$", groups, re.M), f"{what}: what came before the fault is not there\n{groups}")


def packaged(tools, folder):
    """A multithreaded program of Debian's as it comes, looked up in PATH; its library stays the system's. Names need its -dbgsym."""
    if not shutil.which("pbzip2"):
        print("      pbzip2 is not installed: not tried")
        return
    tools = tools_of(tools)
    content = b"".join(b"line %d of a file that is long enough for three blocks\n" % (i * i) for i in range(6000))
    (folder / "in").write_bytes(content)
    os.utime(folder / "in", (1000000000, 1000000000))  # it copies them
    trace, _ = record(tools, folder, "pbzip2", "-k", "-q", "-p3", "-1", "-b1", "in")
    check(bz2.decompress((folder / "in.bz2").read_bytes()) == content, "what it wrote is not what it read")
    stats = run([tools.stem, "trace", "stats", trace]).stdout
    check(re.search(r"^threads +7,", stats, re.M) and re.search(r"^  wait +[1-9]", stats, re.M), stats)
    visible = int(re.search(r"of which (\d+)", stats)[1])
    check(visible < 200000, f"{visible} events: libbz2 is not ours")
    (folder / "in.bz2").unlink()
    os.utime(folder / "in", (1000000000, 1000000000))
    identical(tools, folder, trace)
    found = analyze(tools, trace)
    check(sum(p["state"] == "explicit" for p in found) > 50, f"{len(found)} pairs")


def divergence(tools, folder):
    """A schedule that the program cannot follow is left, with where and why; the run goes on."""
    tools = tools_of(tools)
    program = gcc(tools, folder, "rmw", RMW, "-O2")
    test = schedule("main:1 main/7:3", program, path=folder / "no.stemtest")
    trace, done = record(tools, folder, program, options=("--schedule", test))
    check("left the schedule" in done.stderr and "does not exist yet" in done.stderr, done.stderr)
    check(not any(re.search(r"0x[0-9a-f]{4}", line) for line in done.stderr.splitlines()), f"an address: {done.stderr}")


def without_semantics(tools, folder):
    """The recorder is chosen by what the program is; analyze and report say what cannot be had."""
    tools = tools_of(tools)
    program = gcc(tools, folder, "rmw", RMW, "-O2")
    done = run([tools.stem, "record", program], cwd=folder, timeout=120)
    check(done.returncode == 0, done.stderr)
    shown = run([tools.stem, "trace", "dump", ".stem/traces/1.stemtrace"], cwd=folder)
    check('"valgrind"' in shown.stdout, shown.stdout[:300])
    analyzed = run([tools.stem, "analyze"], cwd=folder, timeout=120)
    check(analyzed.returncode == 0 and "cannot be solved for" in analyzed.stdout, analyzed.stdout + analyzed.stderr)
    report = run([tools.stem, "report"], cwd=folder)
    check("inputs cannot be solved for" in report.stdout, report.stdout)
    pair = run([tools.stem, "replay", "1"], cwd=folder, timeout=120)
    check("replayed identically" in pair.stderr, pair.stderr)
    doctor = run([tools.stem, "doctor"], cwd=folder)
    check(re.search(r"Valgrind recorder.*3\.19", doctor.stdout), doctor.stdout)


sys.exit(run_checks([running_example, above_the_stack, one_instruction, names, names_of_cxx, cxx, shared_library, refusals, fork_and_exec, processes, passes_through, groups, packaged, divergence,
                     without_semantics], sys.argv))
