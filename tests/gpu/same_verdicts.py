#!/usr/bin/env python3
"""Two reports say the same of every case: what became of it, by which kernel, and every ratio of error to bound.

usage: same_verdicts.py ONE.json OTHER.json   (exit 1: they do not, or judged nothing)"""
import json
import re
import sys

KEYS = ("name", "state", "kernel", "passes", "worst_ratio", "ratios", "tightness", "notes", "reason")


def verdicts(path):
    """What is compared, of every case. Reasons and notes name the backend that gives them, and a program has one text for
    the kernels of both passes."""
    cases = json.load(open(path, encoding="utf-8"))["cases"]
    return [{k: plain(c[k]) if isinstance(c.get(k), str) else c.get(k) for k in KEYS} for c in cases]


def plain(text):
    return re.sub(r"\b(plugin|exec|ref-f32|host|cuda|mutant|cubin): ", "", text).split(" + ")[0]


def main(one, other):
    a, b = verdicts(one), verdicts(other)
    different = [pair for pair in zip(a, b) if pair[0] != pair[1]]
    for x, y in different[:3]:
        print(f"{x}\n{y}\n")
    judged = sum(c["state"] in ("PASS", "FAIL") for c in a)
    print(f"{len(a)} and {len(b)} cases, {judged} judged, {len(different)} different")
    return 1 if different or len(a) != len(b) or not judged else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
