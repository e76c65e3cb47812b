#!/usr/bin/env python3
"""A program with a template of two instances, of which one folds a condition away: the ways out of each condition are those of the source,
taken if any instance or run takes them; one that nobody asks is told from one that is always true."""
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


def faults():
    found = []
    subprocess.run(["clang++", "-std=c++17", "-O2", *conditions.FLAGS.split(), "-o", "program", "program.cpp"], check=True)
    for arguments, lines, ways in RUNS:
        subprocess.run(["./program", *arguments], env={**os.environ, "LLVM_PROFILE_FILE": conditions.pattern(".")}, check=False)
        files, places = conditions.read(".", "program", ("program",))
        one, said = files["program.cpp"], conditions.untaken(places)
        counted = 10 - sum(2 if way.endswith("asked") else 1 for way in ways)
        if one.unexecuted() != lines or [text for _, _, text in said] != ways or table.shares(one)[2:] != (10, counted):
            found.append(f"after {arguments}: {one.unexecuted()} {said} {table.shares(one)}")
        if 2 in one.lines or 6 in one.lines:
            found.append(f"comments and blank lines count: {one.lines}")
    return found


def main():
    if not shutil.which("clang++") or not all(shutil.which(conditions.tool(name)) for name in ("llvm-cov", "llvm-profdata")):
        print("skipped: no clang++, llvm-cov and llvm-profdata")
        return 77
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with open("program.cpp", "w") as f:
            f.write(TEXT)
        found = faults()
        os.chdir(here)
    print("\n".join(found) or f"{len(RUNS)} runs counted as they should be")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
