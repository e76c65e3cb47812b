#!/usr/bin/env python3
"""About 60 mutants of one group of kernels, on the cases that are for it: what every change can afford.

usage: sample_of_day.py BUILD [--seed N]

The seed is the day's, and is printed; it chooses the group and its mutants. Fails if fewer than FLOOR percent of those
that are not in equivalent.txt are killed: a few survive the group's own cases alone (detection.md has those that survive
all), and a hole in the cases or the judge lets far more live."""
import datetime
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import run  # noqa: E402

FLOOR, SAMPLE = "75", "60"
# Sources, backend, case files.
GROUPS = [
    ("gpu/kernels/flash/forward", "host", ("causal", "window", "gqa", "headdim", "edge")),
    ("gpu/kernels/flash/backward", "host", ("causal", "window", "gqa", "headdim", "crossattn")),
    ("gpu/kernels/cache/", "host", ("kvcache",)),
    ("gpu/kernels/memeff/forward", "host", ("memeff",)),
    ("gpu/kernels/memeff/backward", "host", ("memeff",)),
    ("gpu/kernels/flex/", "host", ("flex",)),
    ("gpu/kernels/mods/", "host", ("flex",)),
    ("gpu/kernels/hopper/", "host:hopper", ("hopper", "causal")),
    ("gpu/kernels/hopper_backward/pair", "host:hopper", ("hopper",)),
]


def main(words):
    build = words[0]
    seed = int(words[2]) if words[1:2] == ["--seed"] else datetime.date.today().toordinal()
    only, backend, files = GROUPS[seed % len(GROUPS)]
    print(f"seed {seed}: {only}, again by sample_of_day.py {build} --seed {seed}", flush=True)
    return run.main(["--what", "kernels", "--build", build, "--only", only, "--sample", SAMPLE, "--seed", str(seed), "--jobs", "2",
                     "--backends", backend, "--dearest", "0.2", "--budget", "2", "--floor", FLOOR,
                     "--journal", os.path.join(build, "mutate", "sample.jsonl"), "--folder", "sample",
                     "--cases", *(f"cases/{f}.json" for f in files)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
