#!/usr/bin/env python3
"""How sharp the bounds are: of each output, quantiles of the largest ratio of error to bound in a case.

usage: tests/bench/ratios.py FA-VERIFY random|run ARGUMENTS...   (runs it with -v; a bound is idle where the median is far below 0.15)

An output whose bounds are all 0, as that of a call that sees no key, was compared exactly: it has no ratio, and is not counted. Gradients judged end to end have bounds of their own, and a row."""
import collections
import re
import subprocess
import sys

LINE = re.compile(r"\s+(\w+)\s+(\(end to end\) )?worst ratio ([\d.e+-]+|inf), tightness ([\d.e+-]+)")


def main(verify, *arguments):
    ratios = collections.defaultdict(list)
    done = subprocess.Popen([verify, *arguments, "-v", "--no-progress"], stdout=subprocess.PIPE, text=True)
    last = ""
    for line in done.stdout:
        found = LINE.match(line)
        if found and float(found[4]) > 0:
            ratios[f"{found[1]} {found[2] or ''}".strip()].append(float(found[3]))
        last = line.rstrip()
    print("| output | cases | median | a tenth below | a tenth above | most |\n|---|---|---|---|---|---|")
    for name, of in ratios.items():
        of.sort()
        n = len(of)
        print(f"| {name} | {n} | {of[n // 2]:.3g} | {of[n // 10]:.3g} | {of[n - 1 - n // 10]:.3g} | {of[-1]:.3g} |")
    print(last)
    return done.wait()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
