#!/usr/bin/env python3
"""Tables of docs/notes/calibration.md from reports: err/bound per tensor, and how tight the bounds were.

    for p in causal varlen window dropout gqa bias memeff flex kvcache edge layout fills everything; do
      build/fa-verify random --backend ref-f32 --count 1510 --seed 2026 --profile $p -q --report $p.json
    done
    build/fa-verify random --backend ref-f32 --count 400 --seed 2026 --profile long -q --report long.json
    python3 tests/bench/calibration.py *.json
"""
import json
import re
import sys
from statistics import median


def profile_of(name):
    return re.sub(r"-[0-9]+-[0-9]+$", "", name)


def kind_of(tensor):
    """Gradients of all buffers together."""
    return re.sub(r"^dbuffer_[0-9]$", "dbuffer", tensor)


def main(paths):
    ratios, tight, totals = {}, {}, {}
    for path in paths:
        with open(path) as f:
            report = json.load(f)
        s = report["summary"]
        profiles = {profile_of(c["name"]) for c in report["cases"]}
        label = ", ".join(sorted(profiles))
        states = {}
        for c in report["cases"]:
            states[c["state"]] = states.get(c["state"], 0) + 1
            for tensor, r in c.get("ratios", {}).items():
                ratios.setdefault(kind_of(tensor), []).append(float(r))
            for tensor, t in c.get("tightness", {}).items():
                tight.setdefault(kind_of(tensor), []).append(float(t))
        totals[label] = (s["total"], s["failed"], states.get("VACUOUS", 0), s["skipped"], report["seconds"])
    print("| profile | cases | failed | of these vacuous | skipped | seconds |")
    print("|---|---|---|---|---|---|")
    for label, row in totals.items():
        print("| %s | %d | %d | %d | %d | %.0f |" % ((label,) + row))
    print("| all | %d | %d | %d | %d | %.0f |" % tuple(sum(r[k] for r in totals.values()) for k in range(5)))
    print()
    print("| output | cases | err/bound: median | 90 % | largest | bound / size of the terms: median |")
    print("|---|---|---|---|---|---|")
    for tensor, r in ratios.items():
        r.sort()
        t = tight.get(tensor, [])
        print("| %s | %d | %.3f | %.3f | %.4f | %s |"
              % (tensor, len(r), median(r), r[int(0.9 * (len(r) - 1))], r[-1], "%.2e" % median(t) if t else ""))


main(sys.argv[1:])
