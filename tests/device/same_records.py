#!/usr/bin/env python3
"""Two reports of one run say the same, to the last bit, of every case that the judge on a GPU has passed in both (one in a thousand the
CPU audits, and then the figures are its).

usage: same_records.py ONE.json OTHER.json   (exit 1: they do not, or more than one case in twenty is not compared)"""
import json
import sys

TIMES = ("seconds", "seconds_subject")


def cases(path):
    with open(path, encoding="utf-8") as f:
        return {c["name"]: {k: v for k, v in c.items() if k not in TIMES} for c in json.load(f)["cases"]}


def main(one, other):
    a, b = cases(one), cases(other)
    both = [n for n in a if n in b and a[n].get("judge") == b[n].get("judge") == "gpu"]
    different = [n for n in both if a[n] != b[n]]
    for name in different[:3]:
        print(f"{a[name]}\n{b[name]}\n")
    print(f"{len(both)} of {len(a)} and {len(b)} cases judged by the GPU both times, {len(different)} different")
    return 1 if different or not both or len(both) < 0.95 * max(len(a), len(b)) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
