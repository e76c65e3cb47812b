#!/usr/bin/env python3
"""Holds goldens of the program against a transcription of docs/reference/semantics.md: compare.py PROGRAM [OPTION...]

    --profile P     random cases of this profile; repeatable (default: those with the newer features)
    --count N       how many of each profile (20)
    --seed S        which (1)
    --cases FILE    the cases of this file too, by name or path; repeatable
    --feature NAME  of all these only cases with this row of the table
    --largest N     leaves out cases with more pairs of rows and keys over all heads (8,000,000)
    --perturb RULE  changes one rule of the transcription, which must be noticed; `list` prints them

Prints a line for each disagreement, and a table by feature. Exit code 1: something disagrees; 77: there is no numpy."""

from __future__ import annotations

import argparse
import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # matrices are small
try:
    import numpy  # noqa: F401
except ImportError:
    print(f"skipped: {sys.executable} has no numpy (FA_PYTHON names one that has)")
    sys.exit(77)

from agreement import hold
from features import NEW, OLD, features_of, is_new
from goldens import as_json, drawn, is_for_goldens, named, pairs_of, written
from rules import RULES, breaking
from sequences import Case

PROFILES = ["sinks", "masks", "merge", "flex", "kvcache", "mla", "mixed"]


class Tally:
    """Counts by feature; "" is all, "new" those with a newer feature."""

    def __init__(self) -> None:
        self.rows = {name: [0, 0, 0.0] for name in ("", "new", *NEW, *OLD)}
        self.elements = 0

    def add(self, names: list[str], worst: float, agrees: bool) -> None:
        for name in names:
            row = self.rows[name]
            row[0] += 1
            row[1] += agrees
            row[2] = max(row[2], worst)

    @property
    def disagree(self) -> int:
        return int(self.rows[""][0] - self.rows[""][1])

    def print(self) -> None:
        print(f"{'feature':38} goldens  agree  worst  disagree")
        titles = {"": "all", "new": "all with a newer feature"}
        for name, (goldens, agree, worst) in self.rows.items():
            print(f"{titles.get(name, name):38} {goldens:7d} {agree:6d}  {worst:5.2g}  {goldens - agree:8d}")
        print(f"{self.elements} elements; worst: the largest error in units of what float64's roundings may come to")


def compare(program: str, cases: list[Case], rule: str | None = None, say: bool = True) -> Tally:
    """All goldens of the cases."""
    tally = Tally()
    with breaking(rule):
        for golden in written(program, cases):
            outcome = hold(golden)
            tally.elements += outcome.elements
            groups = ["", "new"] if is_new(golden.case) else [""]
            tally.add(groups + features_of(golden.case), outcome.worst, not outcome.wrong)
            if outcome.wrong and say:
                print(f"DISAGREES {golden.name}: {'; '.join(outcome.wrong)}\n    {as_json(golden.case)}")
    return tally


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--profile", action="append", default=[])
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", action="append", default=[])
    parser.add_argument("--feature", choices=[*NEW, *OLD])
    parser.add_argument("--largest", type=int, default=8_000_000)
    parser.add_argument("--perturb", choices=[*RULES, "list"])
    return parser.parse_args()


def selected(o: argparse.Namespace) -> list[Case]:
    cases = named(o.program, o.cases) if o.cases else []
    for profile in o.profile or ([] if o.cases else PROFILES):
        cases += drawn(o.program, profile, o.count, o.seed)
    if o.feature:
        cases = [case for case in cases if o.feature in features_of(case)]
    chosen = [case for case in cases if is_for_goldens(case) and pairs_of(case) <= o.largest]
    if len(chosen) < len(cases):
        print(f"left out: {len(cases) - len(chosen)} of {len(cases)} cases, which are larger, of 8 bits, or have no outputs of the reference")
    return chosen


def main() -> int:
    o = options()
    if o.perturb == "list":
        print("\n".join(f"{name:28} {text}" for name, text in RULES.items()))
        return 0
    tally = compare(o.program, selected(o), o.perturb)
    tally.print()
    return 1 if tally.disagree else 0


if __name__ == "__main__":
    sys.exit(main())
