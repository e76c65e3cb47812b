#!/usr/bin/env python3
"""Asks the mutants that pack.py packed, on a machine with many processors. From the top of the source tree that they are of:

    ask.py FOLDER --out JOURNALS --jobs 64 --budget 5 20 100 --seconds 300

links the programs, runs every test on the program as it is (one that fails there is left out), and asks all subjects' mutants at
once until the time is over. JOURNALS gets a journal for each subject, which run.py's --table reads."""
import argparse
import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import journal  # noqa: E402
import killing  # noqa: E402
import mutants  # noqa: E402
import programs_suite  # noqa: E402

GRACE = 20.0  # seconds for what is running when the time is over


class Over(Exception):
    pass


class Try(programs_suite.Try):
    """One that is asked no more when the time is over."""
    end = 0.0

    def ask(self, mutant, judged):
        if time.time() > Try.end:
            raise Over
        return super().ask(mutant, judged)


class Suite(programs_suite.Suite):
    """The tests of a plan, linked in the folder."""

    def __init__(self, folder, plan, a):
        self.jobs, self.dearest = a.jobs, a.slowest
        self.tries = [Try(name, [os.path.join(folder, "bin", plan["what"], w[1:]) if w.startswith("@") else w for w in words])
                      for name, words in plan["tests"]]


@dataclass
class Everything:
    """Suites and journals of several subjects as if they were one's. subject_of: {path of a source: subject}."""
    suites: dict
    books: dict
    subject_of: dict
    mutants: list
    left_out: list

    def of(self, mutant):
        return self.suites[self.subject_of[mutant.path]].of(mutant)

    @staticmethod
    def order(tries):
        return programs_suite.Suite.order(tries)

    def add(self, row):
        self.books[self.subject_of[row.path]].add(row)


def link(folder, plan, jobs):
    out = os.path.join(folder, "bin", plan["what"])
    os.makedirs(out, exist_ok=True)
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda one: subprocess.run([*one[1], "-o", os.path.join(out, one[0])], cwd=folder, check=True),
                      plan["links"].items()))


def reach(suites, jobs):
    """Of all suites at once, the tests that took longest where they were packed first."""
    waiting = [(s, t) for s in suites for t in s.tries]
    failed = set()
    with ThreadPoolExecutor(jobs) as pool:
        for (s, t), said in zip(waiting, pool.map(lambda one: one[0].reach_of(one[1]), waiting)):
            if said:
                failed.add(t)
                print(f"left out, as the program as it is fails: {t.name}: {said}", flush=True)
    for s in suites:
        s.tries = sorted((t for t in s.tries if t.reached and t not in failed), key=lambda t: t.seconds)
        print(f"{len(s.tries)} tests, {sum(t.seconds for t in s.tries):.0f} s; the slowest: "
              + ", ".join(f"{t.name} {t.seconds:.1f} s" for t in s.tries[-6:]), flush=True)


def everything(folder, plans, a):
    def mutants_of(plan, which):
        return [mutants.Mutant(**m) for m in plan[which]]
    return Everything({p["what"]: Suite(folder, p, a) for p in plans},
                      {p["what"]: journal.Journal(os.path.join(a.out, f"{p['what']}.jsonl"), False) for p in plans},
                      {m["path"]: p["what"] for p in plans for which in ("mutants", "left_out") for m in p[which]},
                      [m for p in plans for m in mutants_of(p, "mutants")][:a.first],
                      [m for p in plans for m in mutants_of(p, "left_out")])


def say(text):
    print(f"{time.strftime('%X')} {text}", flush=True)


def main(words):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("--out", required=True)
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--budget", type=float, nargs="+", default=[5, 20, 100])
    p.add_argument("--seconds", type=float, default=300.0, help="of the clock, for all")
    p.add_argument("--slowest", type=float, default=60.0, help="tests that take longer, in seconds, are left out")
    p.add_argument("--first", type=int, help="so many of the mutants alone")
    a = p.parse_args(words)
    Try.end = time.time() + a.seconds
    folder = os.path.abspath(a.folder)
    with open(os.path.join(folder, "plan.json")) as f:
        plans = json.load(f)
    for plan in plans:
        link(folder, plan, a.jobs)
    say("linked")
    every = everything(folder, plans, a)
    reach(every.suites.values(), a.jobs)
    say(f"{len(every.mutants)} mutants")
    threading.Thread(target=lambda: (time.sleep(max(0.0, Try.end + GRACE - time.time())), os._exit(0)), daemon=True).start()
    try:
        killing.judge_all(every, every, every, a.budget, lambda text: None, a.jobs)
    except Over:
        pass
    say("all asked" if time.time() < Try.end else "time is over")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
