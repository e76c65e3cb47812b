"""Test programs as what kills mutants: each is linked again with the mutated objects, and run with the mutant's number
in its environment."""
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass

SIZE = 65536  # FA_MUTANTS_MAX
GOLDEN = ["golden", "check", "tests/golden/reference", "--cases", "tests/golden/reference.json"]
CASES = ["run", "--backend", "host", "--jobs", "1", "-q", "--no-progress", "--fail-fast", "--schedule-seed", "1", "--cases"]
# What -> the programs: (name, target, arguments).
REF_TESTS = ("values", "far_rows", "mixed", "delta", "dbuffer", "merge", "row_errors", "sets", "threads", "rows", "expr", "rows_bounds", "bounds",
             "dropout")
COMPARE_TESTS = ("compare", "compare_mutants", "compare_vacuous", "compare_map", "compare_where", "blas_core", "gemm")
KERNEL_TESTS = tuple((t, f"test_{t}", []) for t in ("p_debug", "flex_exact", "flex_lists", "flex_forward", "flex_backward", "kv_kernels",
                                                        "host_kernels", "host_flash", "host_backward", "hopper_backward"))
PROGRAMS = {
    "kernels": KERNEL_TESTS,
    "plan": KERNEL_TESTS,
    "ref": [*((f"ref_{t}", f"test_ref_{t}", []) for t in REF_TESTS), *((t, f"test_{t}", []) for t in COMPARE_TESTS),
            ("golden", "fa-verify", GOLDEN),
            *((f"cases/{f}", "fa-verify", [*CASES, f"cases/{f}.json"]) for f in ("gqa", "alibi", "softcap", "mixed"))],
}


@dataclass
class Answer:
    state: str
    seconds: float
    reason: str


class Try:
    def __init__(self, name, words):
        self.name, self.words, self.seconds, self.reached = name, words, 0.0, set()

    def run(self, seconds, **environment):
        """None, or (state, reason)."""
        try:
            done = subprocess.run(self.words, capture_output=True, text=True, errors="replace", check=False, timeout=seconds,
                                  env=dict(os.environ, **environment))
        except subprocess.TimeoutExpired:
            return "HANG", ""
        if done.returncode in (0, 77):
            return None
        text = " ".join((done.stdout + done.stderr).split())[-200:]
        return ("CRASH", text) if done.returncode < 0 or done.returncode >= 128 else ("FAIL", text)

    def ask(self, mutant, _judged):
        began = time.time()
        state, reason = self.run(max(5.0, 12 * self.seconds), FA_MUTANT=str(mutant.number)) or ("PASS", "")
        return Answer(state, time.time() - began, reason)

    @staticmethod
    def kills(said):
        return said.state != "PASS"

    def label(self):
        return self.name


def chosen(what, names=None):
    """Those of these names; None: all."""
    return [p for p in PROGRAMS[what] if names is None or p[0] in names]


class Suite:
    """programs: of chosen()."""

    def __init__(self, batch, objects, programs):
        linked = {target: batch.link(target, objects + [switch(batch)]) for target in {p[1] for p in programs}}
        self.tries = [Try(name, [linked[target], *more]) for name, target, more in programs]

    def reach(self, log=lambda text: None):
        for t in self.tries:
            with tempfile.NamedTemporaryFile() as f:
                f.write(bytes(SIZE))
                f.flush()
                began = time.time()
                said = t.run(600, FA_MUTANT_REACHED=f.name)
                t.seconds = time.time() - began
                if said:
                    raise RuntimeError(f"the program as it is: {t.name}: {said}")
                f.seek(0)
                t.reached = {n for n, one in enumerate(f.read()) if one}
            log(f"{t.name}: {len(t.reached)} mutants reached, {t.seconds:.2f} s")
        self.tries.sort(key=lambda t: t.seconds)

    def of(self, mutant):
        return [t for t in self.tries if mutant.number in t.reached]

    @staticmethod
    def order(tries):
        """A program says all it can at once."""
        return ((t, False) for t in tries)

    def close(self):
        pass


def switch(batch):
    """The object of switch.c, which only mutate_serve has of its own."""
    out = os.path.join(batch.folder, "switch.o")
    subprocess.run(["cc", "-O1", "-D_GNU_SOURCE", "-I.", "-c", "tests/mutate/switch.c", "-o", out], check=True)
    return out
