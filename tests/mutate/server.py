"""Asks mutate_serve: a process for a backend, which forks for every question."""
import subprocess
from dataclasses import dataclass


@dataclass
class Answer:
    """state: PASS, SAME, FAIL, ...; seconds: of the processor; image: of the program as it is, to be given back with
    every question about a mutant; reached: numbers of mutants, of the program as it is."""
    state: str
    seconds: float
    image: str
    kernels: str
    reason: str
    reached: frozenset


class Server:
    """judge: who judges, as fa-verify's option --judge has it."""

    def __init__(self, program, backend, files, nice=0, judge="cpu"):
        self.backend, self.names = backend, []
        self.process = subprocess.Popen(["nice", "-n", str(nice), program, backend, judge, *files], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if line == "ready\n":
                return
            self.names.append(line.removeprefix("case ").rstrip("\n"))
        raise RuntimeError(f"{program} {backend}: no cases")

    def ask(self, mutant, case, seconds, image="-"):
        self.process.stdin.write(f"{mutant} {case} {seconds} {image}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"mutate_serve {self.backend} ended")
        state, took, image, kernels, reason, reached = line.rstrip("\n").split("\t")
        return Answer(state, float(took), image, kernels, reason, frozenset(int(n) for n in reached.split()))

    def close(self):
        self.process.stdin.close()
        self.process.wait()
