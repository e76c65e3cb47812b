#!/usr/bin/env python3
"""Holds what the kernels did for named cases against what they did when tests/kernels/work.tsv was written.

usage: tests/kernels/work.py REPORT.json... [--write]

The reports are of `fa-verify run --backend host...`, which counts products, bytes and barriers (docs/reference/report.md, "work").
Outputs do not tell whether a kernel visits tiles that the mask hides, or loads one twice; these counts do, and they depend on
neither machine nor schedule (but for dropout, whose seed every other schedule reads from memory, and for caches of more than 32
sequences, among which a block looks for its next tile from where the last one was). More of anything is an error.
Less is one too, because the file would hide what comes later: write it anew, and say in the commit what became cheaper.
--write: takes these reports' counts into the file and keeps its other lines.
Exit: 0, 1 if a case's work is not what the file says, 2 if it cannot run."""
import argparse
import json
import os
import sys

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "work.tsv")
COUNTS = ["products", "loaded", "stored", "barriers"]
HEAD = "# backend\tcase file and name\t" + "\t".join(COUNTS) + "\n"
MOST_TOLD = 20


def read_table(path):
    """{(backend, case): [count, ...]}"""
    table = {}
    if not os.path.exists(path):
        return table
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if not line.startswith("#"):
                backend, case, *counts = line.rstrip("\n").split("\t")
                table[backend, case] = [int(n) for n in counts]
    return table


def write_table(path, table):
    with open(path, "w", encoding="utf-8") as out:
        out.write(HEAD)
        for (backend, case), counts in sorted(table.items()):
            out.write("\t".join([backend, case, *map(str, counts)]) + "\n")


def read_report(path):
    """The same of the cases that somebody counted."""
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    return {(case["backend"], f"{where(case)}/{case['name']}"): [case["work"][key] for key in COUNTS]
            for case in report["cases"] if "work" in case}


def where(case):
    """"causal" of "cases/causal.json:12"."""
    return os.path.basename(case.get("place", "").split(":")[0]).removesuffix(".json")


def difference(name, was, now):
    """What is not as it was, or "". """
    parts = [f"{key} {was[i]} -> {now[i]} ({now[i] / was[i] - 1:+.1%})" if was[i] else f"{key} 0 -> {now[i]}"
             for i, key in enumerate(COUNTS) if was[i] != now[i]]
    return f"{' '.join(name)}: {', '.join(parts)}" if parts else ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("reports", nargs="+")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    seen = {}
    for path in args.reports:
        seen.update(read_report(path))
    if not seen:
        print("no case of these reports has its work counted: it is with the backend host", file=sys.stderr)
        return 2
    table = read_table(TABLE)
    if args.write:
        write_table(TABLE, {**table, **seen})
        return 0
    wrong = [f"{' '.join(name)}: not in the table; --write takes it in" for name in seen if name not in table]
    wrong += [text for name, now in seen.items() if name in table and (text := difference(name, table[name], now))]
    for text in wrong[:MOST_TOLD]:
        print(text)
    print(f"work of {len(seen)} cases: {len(wrong)} not as recorded")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
