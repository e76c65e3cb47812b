"""The named cases as what kills mutants: all of them once on the program as it is, to see which mutants each reaches;
then for a mutant those that reach it, until one does not pass."""
import os
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import casefiles
import server

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "kernels"))
import work  # noqa: E402

EVERY = casefiles.NAMES
# Where -> case files. The last two are for the kernels that devices with little shared memory or many processors get.
FILES = {"host": EVERY, "host:hopper": EVERY, "host:shared=99": ("kernels", "hopper", "kvcache_large"), "host:processors=132": ("crossattn", "kvcache")}
LONGEST = 60.0  # seconds of the processor
# Of what no single run shows: so many cases judged whole, the first of them soon.
JUDGED, JUDGED_SOON, SOON = 25, 4, 10


class Try:
    """One case on one backend."""

    def __init__(self, suite, backend, number, name, answer):
        self.suite, self.backend, self.number, self.name = suite, backend, number, name
        self.seconds, self.reached, self.kernels, self.image = answer.seconds, answer.reached, answer.kernels, answer.image
        self.held = (backend, name) in suite.held

    def ask(self, mutant, judged):
        """Answer; judged: even if one run leaves the same in memory as the program does."""
        return self.suite.ask(self.backend, -mutant.number if judged else mutant.number, self.number, 4 + 20 * self.seconds,
                              self.image)

    def kills(self, said):
        """More or less work is an error where work.tsv has the case: the tests case_files_* say so."""
        return said.state not in ("PASS", "SAME") and (said.state != "WASTE" or self.held)

    def label(self):
        return f"{self.name} ({self.backend})"


class Suite:
    """files, backends: which cases, and where; None: FILES. dearest: cases that take longer, in seconds, are left out. jobs: so many
    may ask at once. judge_by: as --judge of fa-verify, on so many gpus."""

    def __init__(self, program, files=None, backends=None, dearest=LONGEST, jobs=1, judge_by="cpu", gpus=0):
        self.jobs, self.dearest, self.tries = jobs, dearest, []
        self.held = set(work.read_table(work.TABLE))
        asked = {backend: files or [f"cases/{name}.json" for name in FILES.get(backend, EVERY)] for backend in backends or FILES}
        self.pool = server.Pool(program, sorted({path for some in asked.values() for path in some}), jobs, judge_by, gpus)
        self.names, self.ask = self.pool.names, self.pool.ask
        self.every = [(backend, number) for backend, some in asked.items() for number in self.numbers_of(some)]

    def numbers_of(self, files):
        """Of the cases of these files."""
        stems = {os.path.basename(path).partition(".")[0] for path in files}
        return [number for number, name in enumerate(self.names) if name.partition("/")[0] in stems]

    def reach(self, log=lambda text: None):
        with ThreadPoolExecutor(self.jobs) as pool:
            answers = list(pool.map(lambda case: self.ask(case[0], 0, case[1], self.dearest), self.every))
        seen, count = set(), Counter()
        for (backend, number), said in zip(self.every, answers):
            name = self.names[number]
            if said.state == "HANG":  # too dear
                continue
            if said.state not in ("PASS", "SKIP"):
                raise RuntimeError(f"the program as it is: {name} on {backend}: {said.state} {said.reason}")
            one = Try(self, backend, number, name, said)
            same = (name, one.kernels, one.image, one.reached)
            if said.state == "PASS" and said.reached and same not in seen:
                self.tries.append(one)
                count[backend] += 1
            seen.add(same)
        log("cases that reach a mutant: " + ", ".join(f"{n} on {backend}" for backend, n in count.items()))
        self.tries.sort(key=lambda t: t.seconds)

    def of(self, mutant):
        """Cheap ones first, but not many of one kernel before others had their turn."""
        rank, found = Counter(), []
        for t in self.tries:
            if mutant.number in t.reached:
                found.append((t.seconds * (1 + rank[t.kernels]), len(found), t))
                rank[t.kernels] += 1
        return [t for _, _, t in sorted(found)]

    @staticmethod
    def order(tries):
        """(try, judged) one after another."""
        yield from ((t, False) for t in tries[:SOON])
        yield from ((t, True) for t in tries[:JUDGED_SOON])
        yield from ((t, False) for t in tries[SOON:])
        yield from ((t, True) for t in tries[JUDGED_SOON:JUDGED])

    def close(self):
        self.pool.close()
