#!/usr/bin/env python3
"""Ordinary builds with stem-cc in the compiler's place: make, CMake, several files, static and shared libraries, C and C++;
commands that start instrumented programs; an installation elsewhere."""

import os
import pathlib
import re
import subprocess
import sys

from stemtest import PROGRAMS, Failure, Tools, check, dump, run, run_checks

LIBRARY = """#include <pthread.h>
#include "counter.h"
int counter;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
void add(int n) { pthread_mutex_lock(&m); counter += n; pthread_mutex_unlock(&m); }
"""
HEADER = """#ifdef __cplusplus
extern "C" {
#endif
extern int counter;
void add(int n);
#ifdef __cplusplus
}
#endif
"""
MAIN = """#include <pthread.h>
#include <stdio.h>
#include "counter.h"
static void *run(void *p) { add(2); return p; }
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, run, 0); pthread_create(&b, 0, run, 0);
  pthread_join(a, 0); pthread_join(b, 0);
  printf("%d\\n", counter);
  return counter != 4;
}
"""
MAIN_CXX = """#include <cstdio>
#include <thread>
#include "counter.h"
int main() {
  std::thread a([] { add(2); }), b([] { add(2); });
  a.join(); b.join();
  std::printf("%d\\n", counter);
  return counter != 4;
}
"""
MAKEFILE = """CFLAGS = -g -O1 -pthread -fPIC
LDFLAGS = -pthread
all: with_static with_shared
with_static: main.o libcounter.a
\t$(CC) $(LDFLAGS) main.o -L. -l:libcounter.a -o $@
with_shared: main.o libcounter.so
\t$(CC) $(LDFLAGS) main.o -L. -l:libcounter.so -Wl,-rpath,'$$ORIGIN' -o $@
libcounter.a: counter.o
\t$(AR) rcs $@ $^
libcounter.so: counter.o
\t$(CC) $(LDFLAGS) -shared counter.o -o $@
check: all
\t./with_static
\t./with_shared
"""
CMAKE = """cmake_minimum_required(VERSION 3.16)
project(demo C CXX)
set(CMAKE_BUILD_TYPE RelWithDebInfo)
find_package(Threads REQUIRED)
add_library(counter_static STATIC counter.c)
add_library(counter_shared SHARED counter.c)
add_executable(c_static main.c)
target_link_libraries(c_static counter_static Threads::Threads)
add_executable(cxx_shared main.cpp)
target_link_libraries(cxx_shared counter_shared Threads::Threads)
enable_testing()
add_test(NAME c_static COMMAND c_static)
add_test(NAME cxx_shared COMMAND cxx_shared)
"""


def project(folder):
    for name, text in [("counter.c", LIBRARY), ("counter.h", HEADER), ("main.c", MAIN), ("main.cpp", MAIN_CXX), ("Makefile", MAKEFILE), ("CMakeLists.txt", CMAKE)]:
        (folder / name).write_text(text)


def works(tools, program, folder):
    """Records, sees the counter's accesses in the library's own lines, replays."""
    trace = folder / f"{pathlib.Path(program).name}.stemtrace"
    done = run([tools.stem, "record", "-o", trace, program], cwd=folder)
    check(done.returncode == 0 and done.stdout == "4\n", f"{program}: {done.returncode} {done.stdout}{done.stderr}")
    lines = [str(e) for e in dump(tools, trace).events]
    for thread in ("main/1", "main/2"):
        check(any(re.match(rf"{thread} write counter:5 ", line) for line in lines), f"{program}: no write of the counter by {thread}:\n" + "\n".join(lines))
    checked = run([tools.stem, "trace", "check", trace])
    check(checked.returncode == 0, f"{program}: check: {checked.stdout}{checked.stderr}")
    again = run([tools.stem, "replay", trace], cwd=folder)
    check(again.returncode == 0 and "replayed identically" in again.stderr, f"{program}: replay: {again.stderr}")


def make(tools, folder):
    project(folder)
    built = run(["make", f"CC={tools.cc}"], cwd=folder, timeout=120)
    check(built.returncode == 0, built.stdout + built.stderr)
    works(tools, "./with_static", folder)
    works(tools, "./with_shared", folder)
    # A command that starts instrumented programs: one trace each.
    done = run([tools.stem, "record", "make", f"CC={tools.cc}", "check"], cwd=folder, timeout=120)
    check(done.returncode == 0, done.stdout + done.stderr)
    check(len(list((folder / ".stem/traces").glob("*.stemtrace"))) == 2, f"not two traces: {done.stderr}")
    check(done.stdout.count("4\n") == 2, done.stdout)


def cmake(tools, folder):
    project(folder)
    configured = run(["cmake", "-G", "Ninja", "-S", ".", "-B", "b", f"-DCMAKE_C_COMPILER={tools.cc}", f"-DCMAKE_CXX_COMPILER={tools.cxx}"], cwd=folder, timeout=120)
    check(configured.returncode == 0, configured.stdout + configured.stderr)
    built = run(["cmake", "--build", "b"], cwd=folder, timeout=180)
    check(built.returncode == 0, built.stdout + built.stderr)
    works(tools, "b/c_static", folder)
    works(tools, "b/cxx_shared", folder)
    done = run([tools.stem, "record", "ctest", "--test-dir", "b"], cwd=folder, timeout=120)
    check(done.returncode == 0 and "100% tests passed" in done.stdout, done.stdout + done.stderr)
    check(len(list((folder / ".stem/traces").glob("*.stemtrace"))) == 2, f"not two traces: {done.stderr}")


def installed(tools, folder):
    """cmake --install to another place, with the build tree out of sight as far as it can be."""
    prefix = folder / "prefix with space"
    build = tools.bin.parent
    if not (build / "CMakeCache.txt").exists():
        return
    done = run(["cmake", "--install", build, "--prefix", prefix], timeout=120)
    check(done.returncode == 0, done.stdout + done.stderr)
    elsewhere = Tools(prefix)
    project(folder)
    built = run(["make", f"CC='{elsewhere.cc}'", "with_static"], cwd=folder, timeout=120)
    check(built.returncode == 0, built.stdout + built.stderr)
    works(elsewhere, "./with_static", folder)
    doctor = run([elsewhere.stem, "doctor"], cwd=folder)
    check(doctor.returncode == 0 and str(prefix) in doctor.stdout and str(build) not in doctor.stdout, doctor.stdout + doctor.stderr)
    program = elsewhere.compile(PROGRAMS / "cxx_threads.cpp", folder / "cxx", ["-O1", "-std=c++17"])
    done = run([elsewhere.stem, "record", program], cwd=folder)
    check(done.returncode == 0, done.stderr)
    if (build / "lib/stem/valgrind/valgrind").exists():  # programs as they are, too
        program = Tools(prefix, "valgrind").compile(PROGRAMS / "cxx_threads.cpp", folder / "plain", ["-O1", "-std=c++17"])
        done = run([elsewhere.stem, "record", "-o", folder / "plain.stemtrace", program], cwd=folder)
        check(done.returncode == 0, done.stderr)
        done = run([elsewhere.stem, "replay", folder / "plain.stemtrace"], cwd=folder)
        check("replayed identically" in done.stderr, done.stderr)


def fork_and_exec(tools, folder):
    """fork then exec is followed, with traces of the parent, of the child until exec, and of what it became; fork alone in a process without threads records both; with threads it is refused, clearly."""
    child = tools.compile(PROGRAMS / "lost_update.c", folder / "child", ["-O1"])
    (folder / "parent.c").write_text(f"""#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static int shared;
static void *run(void *p) {{ shared = 1; return p; }}
int main(int argc, char **argv) {{
  pthread_t t; int status = 0;
  if (argc > 1 && argv[1][0] == 'f') {{ /* fork without exec */
    pid_t pid = fork();
    if (pid == 0) {{ pthread_create(&t, 0, run, 0); pthread_join(t, 0); exit(3); }}
    waitpid(pid, &status, 0);
    return WEXITSTATUS(status);
  }}
  pthread_create(&t, 0, run, 0); pthread_join(t, 0);
  pid_t pid = fork();
  if (pid == 0) {{ execl("{child}", "child", (char *)0); _exit(127); }}
  waitpid(pid, &status, 0);
  return wait(0) == -1 ? WEXITSTATUS(status) : 99; /* no child but our own */
}}
""")
    parent = tools.compile(folder / "parent.c", folder / "parent", ["-O1"])
    done = run([tools.stem, "record", parent], cwd=folder)
    check(done.returncode == 0, f"{done.returncode} {done.stdout}{done.stderr}")
    check(len(list((folder / ".stem/traces").glob("*.stemtrace"))) == 3, f"not three traces: {done.stderr}")
    check("became another one by exec" in done.stderr, f"nothing is said of the exec: {done.stderr}")
    done = run([tools.stem, "record", "--state", "forked", parent, "f"], cwd=folder)
    check(done.returncode == 3, f"{done.returncode} {done.stdout}{done.stderr}")
    check(len(list((folder / "forked/traces").glob("*.stemtrace"))) == 2, f"not two traces: {done.stderr}")

    (folder / "threads.c").write_text("""#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_barrier_t b; static int n;
static void *run(void *p) { n = 1; pthread_barrier_wait(&b); return p; }
int main(void) {
  pthread_t t; pthread_barrier_init(&b, 0, 2); pthread_create(&t, 0, run, 0);
  pid_t pid = fork();
  if (pid == 0) { n = 2; _exit(n); }
  int status = 0; if (pid > 0) waitpid(pid, &status, 0);
  pthread_barrier_wait(&b); pthread_join(t, 0);
  return 0;
}
""")
    threads = tools.compile(folder / "threads.c", folder / "threads", ["-O1"])
    done = run([tools.stem, "record", "--state", "refused", threads], cwd=folder)
    check("fork" in done.stderr, f"nothing is said of the fork: {done.returncode} {done.stderr}")


def own_names(tools, folder):
    """A program keeps what it calls like a library function, or like something inside the recorder."""
    (folder / "main.c").write_text("""#include <pthread.h>
#include <stdio.h>
int send = 3; /* a variable, even */
static int x;
int index(int a, int b);
char *strdup(const char *s);
int lib_read(int n);
static void *run(void *p) { x = lib_read(index(send, 4)); return p; }
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, run, 0);
  pthread_join(t, 0);
  printf("%d %s\\n", x, strdup("theirs"));
  return 0;
}
""")
    (folder / "own.c").write_text("""int index(int a, int b) { return 10 * a + b; }
char *strdup(const char *s) { return s ? "ours" : 0; }
int lib_read(int n) { return n + 1; }
""")
    program = tools.compile([folder / "main.c", folder / "own.c"], folder / "own", ["-w", "-fno-builtin", "-O1"])
    trace = folder / "own.stemtrace"
    done = run([tools.stem, "record", "-o", trace, program])
    check(done.returncode == 0 and done.stdout == "35 ours\n", f"{done.returncode} {done.stdout}{done.stderr}")
    again = run([tools.stem, "replay", trace])
    check("replayed identically" in again.stderr, again.stderr)


sys.exit(run_checks([make, cmake, installed, fork_and_exec, own_names], sys.argv))
