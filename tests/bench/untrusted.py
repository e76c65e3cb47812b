#!/usr/bin/env python3
"""What the untrusted mode costs a case: untrusted.py FA-VERIFY [--count N] [--child NAME]

One small case of f32 many times with an honest child of tests/exec/cheats: trusted, untrusted, and untrusted without one layer
at a time, in one worker. A case's cost is the slope between N and 2 N cases, so that starting costs nothing: elapsed, and on a
processor (of all processes that the run has waited for), which other load on the machine hardly changes. Traps and fresh
processes make more calls of each case, hidden cases are judged beside it: both belong to its cost. $FA_PYTHON needs numpy."""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CHEATS = Path(__file__).resolve().parents[1] / "exec" / "cheats"
PYTHON = os.environ.get("FA_PYTHON", sys.executable)
LAYERS = ("fresh", "replay", "hidden", "memory")
CASE = {"dtype": "f32", "heads_q": 2, "seqlen_q": 24, "seqlen_k": 40, "head_dim": 16, "backward": False}


def run(verify: str, child: str, count: int, extra: list[str]) -> tuple[float, float, int]:
    """Elapsed and processor seconds of a run over so many cases, and how many were judged."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as cases:
        json.dump({"fa_cases": 1, "cases": [{**CASE, "name": f"c{i}", "data_seed": str(i)} for i in range(count)]}, cases)
        cases.flush()
        line = [verify, "run", "--cases", cases.name, "--jobs", "1", "--no-probe", "--no-explain", "--no-progress", "-q", *extra]
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        done = subprocess.run([*line, "--backend", f"exec:{PYTHON} {CHEATS}/child.py {child} '' f32"], capture_output=True, text=True)
    seconds, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    found = re.search(r"^tests:(\d+) passed:(\d+) failed:0", done.stdout, re.MULTILINE)
    if not found:
        sys.exit(f"{' '.join(extra)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, int(found.group(2))


def slope(verify: str, child: str, count: int, extra: list[str]) -> tuple[float, float, float]:
    """Microseconds of a named case, elapsed and on a processor, and how many cases are judged for it."""
    first, second = run(verify, child, count, extra), run(verify, child, 2 * count, extra)
    return 1e6 * (second[0] - first[0]) / count, 1e6 * (second[1] - first[1]) / count, (second[2] - first[2]) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verify")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--child", default="Honest")
    options = parser.parse_args()
    untrusted = ["--untrusted", "--allow", str(CHEATS)]
    rows = {"trusted": [], "untrusted": untrusted, **{f"without {layer}": [*untrusted, "--without", layer] for layer in LAYERS}}
    print(f"{'a named case':20} {'elapsed us':>12} {'processor us':>13} {'judged':>7}")
    for name, extra in rows.items():
        count = options.count if extra else 10 * options.count  # a trusted case is over before it can be timed
        elapsed, processor, judged = slope(options.verify, options.child, count, extra)
        print(f"{name:20} {elapsed:12.0f} {processor:13.0f} {judged:7.2f}", flush=True)


if __name__ == "__main__":
    main()
