#!/usr/bin/env python3
"""A program with a template of two instances, of which one folds a condition away: the ways out of each condition are those of the source,
taken if any instance or run takes them; one that nobody asks is told from one that is always true. And one of four threads, which count the
same: a way that none of them takes stays so."""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import conditions  # noqa: E402
import table  # noqa: E402

TEXT = """#include <stdlib.h>
// a comment
template <bool A> static int f(int n) {
  if (A && n > 3) return 1;
  if constexpr (A) return n == 2 ? 3 : 4;

  return n >
         0;
}
constexpr int twice(int n) {
  return n > 1 ? 2 * n : 0;
}
static_assert(twice(2) == 4);
int main(int argc, char **argv) {
  int n = atoi(argv[1]);
  return argc == 3 ? f<true>(n) : argc == 4 || n > 8 ? f<false>(n) : 0;
}
"""
# arguments of the runs so far, lines not executed, ways not taken
RUNS = [(["1", "x"], [7, 8], ["n > 3 never true", "n == 2 never true", "argc == 3 never false", "argc == 4 never asked", "n > 8 never asked"]),
        (["7", "x"], [7, 8], ["n == 2 never true", "argc == 3 never false", "argc == 4 never asked", "n > 8 never asked"]),
        (["2", "x", "y"], [], ["n == 2 never true", "argc == 4 never false", "n > 8 never asked"]),
        (["2"], [], ["n == 2 never true", "n > 8 never true"])]

# What is not taken is the difference of two counts, and no count may miss what another thread adds at that time.
THREADS = """#include <thread>
static int x;
static int *volatile place = &x;
__attribute__((noinline)) static void look() {
  if (int *to = place) *(volatile int *)to;
}
static void work() {
  for (int i = 0; i < 5000000; ++i) look();
}
int main() {
  std::thread others[3];
  for (std::thread &one : others) one = std::thread(work);
  work();
  for (std::thread &one : others) one.join();
}
"""


def build(name, text):
    os.mkdir(name)
    with open(f"{name}/program.cpp", "w") as f:
        f.write(text)
    subprocess.run(["clang++", "-std=c++17", "-O2", "-pthread", *conditions.FLAGS.split(), "-o", f"{name}/program", f"{name}/program.cpp"], check=True)


def count(name, *arguments):
    """What the runs of that program have counted."""
    subprocess.run([f"{name}/program", *arguments], env={**os.environ, "LLVM_PROFILE_FILE": conditions.pattern(name)}, check=False)
    files, places = conditions.read(name, f"{name}/program", (name,))
    return files[f"{name}/program.cpp"], conditions.untaken(places)


def faults():
    found = []
    build("instances", TEXT)
    for arguments, lines, ways in RUNS:
        one, said = count("instances", *arguments)
        counted = 10 - sum(2 if way.endswith("asked") else 1 for way in ways)
        if one.unexecuted() != lines or [text for _, _, text in said] != ways or table.shares(one)[2:] != (10, counted):
            found.append(f"after {arguments}: {one.unexecuted()} {said} {table.shares(one)}")
        if 2 in one.lines or 6 in one.lines:
            found.append(f"comments and blank lines count: {one.lines}")
    return found + faults_of_threads()


def faults_of_threads():
    build("threads", THREADS)
    _, said = count("threads")
    return [] if [text for _, _, text in said] == ["to never false"] else [f"four threads: {said}"]


def main():
    if not shutil.which("clang++") or not all(shutil.which(conditions.tool(name)) for name in ("llvm-cov", "llvm-profdata")):
        print("skipped: no clang++, llvm-cov and llvm-profdata")
        return 77
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        found = faults()
        os.chdir(here)
    print("\n".join(found) or f"{len(RUNS)} runs counted as they should be")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
