#!/usr/bin/env python3
"""About 60 mutants of one group of kernels, on the cases that are for it, and as many of a part of the judge, on its test: what
every change can afford. Where tests try their lists in shares (tests/support/share.h), one of the two, by turns.

usage: sample_of_day.py BUILD [--seed N]

The seed is the day's, and is printed; it chooses the groups and their mutants; of the kernels one unit is compiled with them. Fails if fewer
than FLOOR percent of those that the group's cases reach, and that are not in equivalent.txt, are killed: some survive the
group's own cases and this budget (detection.md has those that survive all), and a hole in the judge lets far more live."""
import datetime
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import run  # noqa: E402

FLOOR, SAMPLE = "60", "60"
# Sources, the unit that is compiled with them, backend, case files, and a test program.
GROUPS = [
    ("gpu/kernels/flash/forward", "flash/forward.cu", "host", ("causal", "window", "gqa", "headdim", "edge")),
    ("gpu/kernels/flash/backward", "flash/backward.cu", "host", ("causal", "window", "gqa", "memeff")),
    ("gpu/kernels/cache/", "cache/", "host", ("kvcache",)),
    ("gpu/kernels/memeff/forward", "memeff/forward.cu", "host", ("memeff",)),
    ("gpu/kernels/memeff/backward", "memeff/backward.cu", "host", ("memeff", "flex")),
    ("gpu/kernels/flex/", "flex/", "host", ("flex",)),
    ("gpu/kernels/mods/", "memeff/backward.cu", "host", ("flex",), "flex_exact"),
    ("gpu/kernels/hopper/", "hopper/forward.cu", "host:hopper", ("hopper", "causal")),
    ("gpu/kernels/hopper_backward/pair", "hopper_backward/pair.cu", "host:hopper", ("hopper",)),
]

# What is mutated, sources, and the test that records what they compute.
JUDGE = [
    ("formulas", "ref/bounds/", "ref_formula"),
    ("formulas", "ref/math/element", "ref_element"),
    ("ref", "ref/mods/lane", "ref_lanes"),
    ("ref", "ref/attention/astray", "ref_twists"),
    ("ref", "ref/compare/stat", "compare_drawn"),
]


def main(words):
    build = words[0]
    seed = int(words[2]) if words[1:2] == ["--seed"] else datetime.date.today().toordinal()
    in_shares = int(os.environ.get("FA_TEST_SHARE", "1")) > 1
    parts = [(kernels, judge)[seed % 2]] if in_shares else [kernels, judge]
    return max(part(build, seed) for part in parts)


def judge(build, seed):
    what, only, program = JUDGE[seed % len(JUDGE)]
    print(f"seed {seed}: {only}, by {program}", flush=True)
    return run.main(["--what", what, "--build", build, "--only", only, "--sample", SAMPLE, "--seed", str(seed), "--jobs", "2", "--floor", FLOOR,
                     "--journal", os.path.join(build, "mutate", "sample_judge.jsonl"), "--folder", "sample_judge", "--programs", program])


def kernels(build, seed):
    only, unit, backend, files, *programs = GROUPS[seed % len(GROUPS)]
    print(f"seed {seed}: {only}, again by sample_of_day.py {build} --seed {seed}", flush=True)
    return run.main(["--what", "kernels", "--build", build, "--only", only, "--sample", SAMPLE, "--seed", str(seed), "--jobs", "2",
                     "--backends", backend, "--dearest", "0.2", "--budget", "2", "--floor", FLOOR,
                     "--journal", os.path.join(build, "mutate", "sample.jsonl"), "--folder", "sample",
                     "--units", unit, "--programs", *programs,
                     "--cases", *(f"cases/{f}.json" for f in files)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
