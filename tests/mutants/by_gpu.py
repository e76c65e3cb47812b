#!/usr/bin/env python3
"""What the GPU's judge says of the planted mutants: each is asked of the case that killed it, by both judges.

usage: tests/mutants/by_gpu.py MUTATE_SERVE [--judge both] [--recorded FILE.json] [--only REGEX] [--gpus 1] [--jobs 16] [--seconds 600]
                               [--patience 300]

MUTATE_SERVE: of the build (tests/mutate/serve.c). --recorded: results of kill.py (--results): {mutant: [case, state, ...]}; what no FAIL
killed has nothing to be judged by and is counted apart, and a mutant that is not there is asked of all cases, the most promising
first, up to one that does not pass, or for --patience seconds: then it counts as not asked. Mutants and the kernels without a bug are
built where they are not there. Prints a table by class, as tests/mutate/ask.py --killed does by file. Exit: 1 if the GPU's judge passed what
the CPU's fails, or one was not asked."""
import argparse
import json
import os
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "mutate")]
import build  # noqa: E402
import kill  # noqa: E402
import journal  # noqa: E402
import killers  # noqa: E402
import server  # noqa: E402

LONGEST = 120.0  # seconds of the processor for a case


def header_of(name):
    return build.header(f"{build.FOLDER}/{name}.patch")


class Asking:
    """recorded: of kill.py."""

    def __init__(self, a, recorded):
        self.folder, self.recorded, self.patience = kill.folder_of(a.serve), recorded, a.patience
        self.pool = server.Pool(os.path.abspath(a.serve), kill.FILES, a.jobs, a.judge, a.gpus)

    def make(self, name, jobs=1):
        out = os.path.join(self.folder, f"{name}.so")
        patch = {"unchanged": "-", "unchanged_hopper": "-hopper"}.get(name, f"{build.FOLDER}/{name}.patch")
        if not os.path.exists(out):
            build.build(patch, out, "c++", "cc", jobs)

    def numbers(self, name, cases=None):
        """Of the cases of these names; None: of all. The most promising files first."""
        rank = {os.path.basename(path)[:-len(".json")]: i for i, path in enumerate(kill.files_for(name))}
        found = [(rank[file], n) for n, (file, _, case) in enumerate(text.partition("/") for text in self.pool.names)
                 if cases is None or case in cases]
        return [n for _, n in sorted(found)]

    def tries(self, name):
        """Numbers of cases; some come twice."""
        if name in self.recorded:
            yield from self.numbers(name, [self.recorded[name][0]])
        yield from self.numbers(name, header_of(name).get("Try", "").split())
        yield from self.numbers(name)

    def ask(self, name):
        """A row, whose path is the mutant's class."""
        self.make(name)
        head, end = header_of(name), time.time() + self.patience
        for n in self.tries(name):
            said = self.pool.ask(f"mutant:{kill.subject_of(name)}", "-0", n, LONGEST)
            if said.state not in ("PASS", "SKIP"):
                break
            if time.time() > end:
                raise TimeoutError(f"{name}: no case has killed it in {self.patience:.0f} s")
        return journal.Row(name, head["Class"], 0, "", head["Class"], head["What"], said.state, self.pool.names[n], said.reason, judge=said.judge)

    def control(self, names):
        """Counter of what the GPU's judge says of the kernels without a bug, on the recorded cases of these mutants."""
        controls = {n: f"mutant:{kill.subject_of(kill.control_of(kill.device_of(n)))}" for n in names}
        places = sorted({(controls[n], self.numbers(n, [self.recorded[n][0]])[0]) for n in names if n in self.recorded})
        with ThreadPoolExecutor(self.pool.most) as pool:
            said = pool.map(lambda at: self.pool.ask(at[0], "-0", at[1], LONGEST), places)
            return killers.words_of(dict(zip(places, said)))


def chosen(recorded, only):
    """(those that are asked, the others counted by how they were killed)"""
    asked, apart = [], Counter()
    for name in kill.names(only):
        state = recorded[name][1] if name in recorded else "WASTE" if kill.is_waste(name) else "FAIL"
        if state == "FAIL":
            asked.append(name)
        else:
            apart[state] += 1
    return asked, apart


def cheapest_first(asking, names):
    """What is to be built, and most of all for Hopper, comes last."""
    there = {n[:-len(".so")] for n in os.listdir(asking.folder)}
    return sorted(names, key=lambda n: (n not in there, kill.device_of(n)))


def arguments(words):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("serve", metavar="MUTATE_SERVE")
    p.add_argument("--judge", default="both", choices=("host", "both"))
    p.add_argument("--recorded", metavar="FILE.json")
    p.add_argument("--only", default="", metavar="REGEX")
    p.add_argument("--gpus", type=int, default=1)
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--seconds", type=float, default=1e6, help="of the clock; what is not asked by then is named")
    p.add_argument("--patience", type=float, default=300.0, help="seconds of the clock for a mutant")
    return p.parse_args(words)


def show(row):
    print(f"{row.key}: {killers.word(row)} | {row.by} | {row.outcome} | {row.reason} | {row.judge}", flush=True)


def main(words):
    a = arguments(words)
    end, recorded = time.time() + a.seconds, {}
    if a.recorded:
        with open(a.recorded) as f:
            recorded = {name: said for name, said in json.load(f).items() if isinstance(said, list)}
    asking = Asking(a, recorded)
    os.makedirs(asking.folder, exist_ok=True)
    names, apart = chosen(recorded, a.only)
    for name in kill.controls_of(names):  # most objects are theirs
        asking.make(name, a.jobs)
    print(f"{len(names)} mutants", flush=True)
    control, rows = asking.control(names), []
    for row in killers.asked([lambda n=n: asking.ask(n) for n in cheapest_first(asking, names)], a.jobs, end, print):
        show(row)
        rows.append(row)
    print(f"\n{killers.text_of(control, rows, apart, 'Class')}")
    print(f"Not asked: {' '.join(sorted(set(names) - {r.key for r in rows})) or 'none'}.", flush=True)
    asking.pool.close()
    return 0 if len(rows) == len(names) and killers.is_clean(rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
