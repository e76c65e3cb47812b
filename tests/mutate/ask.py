#!/usr/bin/env python3
"""Asks the mutants that pack.py packed, on a machine with many processors. From the top of the source tree that they are of:

    ask.py FOLDER --out JOURNALS --jobs 64 --budget 5 20 100 --seconds 300

links the programs, runs every test and every case on the program as it is (a test that fails there is left out), and asks all
subjects' mutants at once until the time is over. JOURNALS gets a journal for each subject, which run.py's --table reads.

    ask.py FOLDER --out JOURNALS --killed BEFORE --judge both --gpus 2

asks those that a case killed, by the journals in BEFORE, of that case again, by the judge on a GPU and by the CPU's, and prints what
the former says. Exit: 1 if it passed a mutant that the CPU's fails."""
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
import both_suites  # noqa: E402
import cases_suite  # noqa: E402
import equivalents  # noqa: E402
import journal  # noqa: E402
import killers  # noqa: E402
import killing  # noqa: E402
import mutants  # noqa: E402
import programs  # noqa: E402
import programs_suite  # noqa: E402
import rivals  # noqa: E402

GRACE = 20.0  # seconds for what is running when the time is over


class Over(Exception):
    pass


class Packed:
    """What compiling.Batch is, of one subject of a parcel."""

    def __init__(self, parcel, plan):
        self.parcel, self.what, self.links = parcel, plan["what"], plan["links"]
        self.folder = os.path.join(parcel, "bin", plan["what"])
        self.mutants, self.left_out = ([mutants.Mutant(**m) for m in plan[which]] for which in ("mutants", "left_out"))
        self.tests = [programs.Program(name, tuple(words)) for name, words in plan["tests"]]
        os.makedirs(self.folder, exist_ok=True)

    def link(self, program, _objects=(), always=()):
        out = os.path.join(self.folder, program)
        subprocess.run([*self.links[program], *always, f"-Wl,-rpath,{self.parcel}/files", "-o", out], cwd=self.parcel, check=True)
        return out

    def suite(self, a):
        tests = programs_suite.Suite(self, (), self.tests, a.slowest, a.jobs)
        if "mutate_serve" not in self.links:
            return tests
        return both_suites.Suite(cases_suite.Suite(self.link("mutate_serve"), dearest=a.dearest, jobs=a.jobs), tests)


@dataclass
class Everything:
    """Suites and journals of several subjects as if they were one's. subject_of: {path of a source: subject}; end: when the time
    is over."""
    suites: dict
    books: dict
    subject_of: dict
    mutants: list
    left_out: list
    end: float

    def of(self, mutant):
        return self.suites[self.subject_of[mutant.path]].of(mutant)

    def order(self, tries):
        for one in both_suites.Suite.order(tries):
            if time.time() > self.end:
                raise Over
            yield one

    def add(self, row):
        self.books[self.subject_of[row.path]].add(row)


def reach(suites, jobs):
    """Cases suite by suite, then the test programs of all at once."""
    for s in suites:
        if isinstance(s, both_suites.Suite):
            s.cases.reach(say)
    suites = [s.programs if isinstance(s, both_suites.Suite) else s for s in suites]
    waiting = [(s, t) for s in suites for t in s.tries]
    failed = set()
    with ThreadPoolExecutor(jobs) as pool:
        for (s, t), said in zip(waiting, pool.map(lambda one: one[0].reach_of(one[1]), waiting)):
            if said:
                failed.add(t)
                print(f"left out, as the program as it is fails: {t.name}: {said}", flush=True)
    for s in suites:
        s.tries = programs_suite.in_turn(t for t in s.tries if t.reached and t not in failed)
        slowest = sorted(s.tries, key=lambda t: t.seconds)[-6:]
        print(f"{len(s.tries)} tests, {sum(t.seconds for t in s.tries):.0f} s; the slowest: "
              + ", ".join(f"{t.name} {t.seconds:.1f} s" for t in slowest), flush=True)


def everything(subjects, suites, a, end):
    return Everything(suites,
                      {s.what: journal.Journal(os.path.join(a.out, f"{s.what}.jsonl"), False) for s in subjects},
                      {m.path: s.what for s in subjects for m in s.mutants + s.left_out},
                      [m for s in subjects for m in s.mutants][:a.first], [m for s in subjects for m in s.left_out], end)


def ask_rivals(subjects, a):
    with open(a.rivals) as f:
        keys = {line.split()[0] for line in f if line.strip()}
    for s in subjects:
        if "rival_rules" in s.links:
            rivals.write(os.path.join(a.out, f"{s.what}.jsonl.rivals.json"), rivals.ask(s, (), keys, a.jobs))
    say("rivals asked")


def ask_killed(subjects, a, end):
    """Exit status."""
    found = []
    for s in (s for s in subjects if "mutate_serve" in s.links):
        rows = journal.Journal(os.path.join(a.killed, f"{s.what}.jsonl"), True).rows.values()
        suite = cases_suite.Suite(s.link("mutate_serve"), backends=killers.backends_of(rows), dearest=a.dearest, jobs=a.jobs,
                                  judge_by=a.judge, gpus=a.gpus)
        book = journal.Journal(os.path.join(a.out, f"{s.what}.jsonl"), False)
        control, said = killers.ask(killing.mixed(s.mutants)[:a.first], rows, suite, book, a.jobs, say, end)
        suite.close()
        say(f"{s.what}, judged by {a.judge}:\n\n{killers.text_of(killers.words_of(control), said, killers.not_asked(rows))}")
        found += said
    return 0 if killers.is_clean(found) else 1


def say(text):
    print(f"{time.strftime('%X')} {text}", flush=True)


def arguments(words):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("--out", required=True)
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--budget", type=float, nargs="+", default=[5, 20, 100])
    p.add_argument("--seconds", type=float, default=300.0, help="of the clock, for all")
    p.add_argument("--dearest", type=float, default=cases_suite.LONGEST, help="cases that take longer, in seconds, are left out")
    p.add_argument("--slowest", type=float, default=60.0, help="tests that take longer, in seconds, are left out")
    p.add_argument("--first", type=int, help="so many of the mutants alone")
    p.add_argument("--rivals", metavar="FILE", help="first ask other projects' rules about the mutants with these keys")
    p.add_argument("--killed", metavar="JOURNALS", help="asks again those that a case killed there, of that case alone")
    p.add_argument("--judge", default="both", choices=("host", "both"), help="who judges those")
    p.add_argument("--gpus", type=int, default=0, help="so many share the judging; 0: the first has all")
    return p.parse_args(words)


def main(words):
    a = arguments(words)
    end = time.time() + a.seconds
    folder = os.path.abspath(a.folder)
    with open(os.path.join(folder, "plan.json")) as f:
        subjects = [Packed(folder, plan) for plan in json.load(f)]
    os.makedirs(a.out, exist_ok=True)
    if a.killed:
        return ask_killed(subjects, a, end)
    if a.rivals:
        ask_rivals(subjects, a)
    suites = {s.what: s.suite(a) for s in subjects}
    say("linked")
    reach(suites.values(), a.jobs)
    every = everything(subjects, suites, a, end)
    say(f"{len(every.mutants)} mutants")
    threading.Thread(target=lambda: (time.sleep(max(0.0, end + GRACE - time.time())), os._exit(0)), daemon=True).start()
    try:
        killing.judge_all(every, every, every, a.budget, lambda text: None, a.jobs, equivalents.load())
    except Over:
        pass
    say("all asked" if time.time() < end else "time is over")
    for s in suites.values():
        s.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
