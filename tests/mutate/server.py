"""Asks mutate_serve: one process for a backend, which forks for every question."""
import subprocess
from dataclasses import dataclass


@dataclass
class Answer:
    """state: PASS, FAIL, RACE, ...; reached: numbers of mutants, of the program as it is."""
    state: str
    seconds: float
    kernels: str
    reason: str
    reached: set


class Server:
    def __init__(self, program, backend, files, nice=0):
        self.backend, self.names = backend, []
        self.process = subprocess.Popen(["nice", "-n", str(nice), program, backend, *files], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if line == "ready\n":
                return
            self.names.append(line.removeprefix("case ").rstrip("\n"))
        raise RuntimeError(f"{program} {backend}: no cases")

    def ask(self, mutant, case, seconds):
        self.process.stdin.write(f"{mutant} {case} {seconds}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"mutate_serve {self.backend} ended")
        state, took, kernels, reason, reached = line.rstrip("\n").split("\t")
        return Answer(state, float(took), kernels, reason, {int(n) for n in reached.split()})

    def close(self):
        self.process.stdin.close()
        self.process.wait()
