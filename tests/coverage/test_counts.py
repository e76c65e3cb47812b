#!/usr/bin/env python3
"""A program of which one line and one branch are not executed: counted, merged over two runs, printed.

usage: test_counts.py CC"""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import counts  # noqa: E402
import table  # noqa: E402

TEXT = """int main(int argc, char **argv) {
  int n = argc;
  if (n > 2)
    n = 7;
  return n > 1 && argv[1][0] == 'x';
}
"""


def main(words):
    version = subprocess.run([words[0], "--version"], capture_output=True, text=True, check=True).stdout
    if "clang" in version or not shutil.which("gcov"):
        print("skipped: no gcc and gcov")
        return 77
    here, failed = os.getcwd(), 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with open("program.c", "w") as f:
            f.write(TEXT)
        subprocess.run([words[0], "--coverage", "-O0", "-c", "program.c"], check=True)
        subprocess.run([words[0], "--coverage", "program.o", "-o", "program"], check=True)
        for arguments, lines, taken in (([], [4], 2), (["a"], [4], 4), (["b", "c"], [], 5)):
            subprocess.run(["./program", *arguments], check=False)
            files = counts.read(".", ("program",), 1)
            one = files.get("program.c")
            if one is None or one.unexecuted() != lines or table.shares(one)[2:] != (6, taken):
                failed = print(f"after {arguments}: {one and (one.unexecuted(), table.shares(one))}") or 1
            if one and f"| {', '.join(map(str, lines))} |" not in table.text_of(files):
                failed = print(table.text_of(files)) or 1
        os.chdir(here)
    if table.ranges([1, 2, 3, 7, 9, 10]) != ["1-3", "7", "9-10"]:
        failed = print(table.ranges([1, 2, 3, 7, 9, 10])) or 1
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
