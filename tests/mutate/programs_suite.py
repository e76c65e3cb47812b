"""Test programs as what kills mutants: each is linked again with the mutated objects, and run with the mutant's number
in its environment."""
import os
import re
import signal
import subprocess
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

SIZE = 65536  # FA_MUTANTS_MAX
# A mutant that takes all the memory there is, or prints for ever, must not take others with it. Tests reserve 128 GiB of addresses,
# so that no limit of those helps.
FENCE = "echo 1000 >/proc/self/oom_score_adj; ulimit -c 0; \"$@\" 2>&1 </dev/null | tail -c 400; exit ${PIPESTATUS[0]}"


@dataclass
class Answer:
    state: str
    seconds: float
    reason: str


class Try:
    def __init__(self, name, words):
        self.name, self.words, self.seconds, self.reached = name, words, 0.0, set()

    def run(self, seconds, **environment):
        """None, or (state, reason). What the test starts ends with it."""
        one = subprocess.Popen(["bash", "-c", FENCE, "fence", *self.words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               text=True, errors="replace", start_new_session=True, env=dict(os.environ, **environment))
        try:
            said = one.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            return "HANG", ""
        finally:
            end_group(one)
        return state_of(one.returncode, said)

    def ask(self, mutant, _judged):
        """A script waits for processes by the clock: on a busy machine it may fail once without a reason, hardly twice."""
        began, said = time.time(), None
        for _ in range(2 if self.words[0] == "bash" else 1):
            said = self.run(max(5.0, 12 * self.seconds), FA_MUTANT=str(mutant.number))
            if not said:
                break
        state, reason = said or ("PASS", "")
        return Answer(state, time.time() - began, reason)

    @staticmethod
    def kills(said):
        return said.state != "PASS"

    def label(self):
        return self.name


def end_group(one):
    try:
        os.killpg(one.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    one.wait()


def state_of(code, said):
    if code in (0, 77):
        return None
    return ("CRASH" if code < 0 or code >= 128 else "FAIL"), " ".join(said.split())[-200:]


class Suite:
    """programs: of programs.chosen(). dearest: tests that take longer, in seconds, are left out. jobs: so many at once."""

    def __init__(self, batch, objects, programs, dearest=600.0, jobs=1):
        self.jobs, self.dearest = jobs, dearest
        always = [switch(batch)]
        targets = sorted({t for p in programs for t in p.targets()})
        with ThreadPoolExecutor(jobs) as pool:
            linked = dict(zip(targets, pool.map(lambda target: batch.link(target, objects, always), targets)))
        self.tries = [Try(p.name, [linked[w[1:]] if w.startswith("@") else w for w in p.words]) for p in programs]

    def reach(self, log=lambda text: None):
        with ThreadPoolExecutor(self.jobs) as pool:
            for t, said in zip(self.tries, pool.map(self.reach_of, self.tries)):
                if said and said[0] != "HANG":
                    raise RuntimeError(f"the program as it is: {t.name}: {said}")
                log(f"{t.name}: {len(t.reached)} mutants reached, {t.seconds:.2f} s{', left out' if said else ''}")
        self.tries = in_turn(t for t in self.tries if t.reached)

    def reach_of(self, t):
        """What stopped the test, or None."""
        with tempfile.NamedTemporaryFile() as f:
            f.write(bytes(SIZE))
            f.flush()
            began = time.time()
            said = t.run(self.dearest, FA_MUTANT_REACHED=f.name)
            t.seconds = time.time() - began
            f.seek(0)
            t.reached = set() if said else {n for n, one in enumerate(f.read()) if one}
        return said

    def of(self, mutant):
        return [t for t in self.tries if mutant.number in t.reached]

    @staticmethod
    def order(tries):
        """A program says all it can at once."""
        return ((t, False) for t in tries)

    def close(self):
        pass


def in_turn(tries):
    """The quickest first; of one kind, such as case files, the n-th as if it took n times as long: they find much of the same."""
    seen, ordered = Counter(), []
    for t in sorted(tries, key=lambda t: t.seconds):
        kind = re.split("[/ ]", t.name)[0]
        seen[kind] += 1
        ordered.append((t.seconds * seen[kind], t))
    return [t for _, t in sorted(ordered, key=lambda one: one[0])]


def switch(batch):
    """The object of switch.c, which only mutate_serve has of its own."""
    out = os.path.join(batch.folder, "switch.o")
    subprocess.run(["cc", "-O1", "-D_GNU_SOURCE", "-I.", "-c", "tests/mutate/switch.c", "-o", out], check=True)
    return out
