"""Asks mutate_serve: a process that has read all cases, and forks for every question."""
import os
import queue
import subprocess
import threading
from dataclasses import dataclass


@dataclass
class Answer:
    """state: PASS, SAME, FAIL, ...; seconds: of the processor; image: of the program as it is, to be given back with
    every question about a mutant; judge: what the GPU's says, PASS or why it left the case to the CPU's; reached: numbers of mutants,
    of the program as it is."""
    state: str
    seconds: float
    image: str
    kernels: str
    reason: str
    judge: str
    reached: frozenset


class Server:
    """judge: who judges, as fa-verify's option --judge has it; gpu: the number of the one that does; None: the first."""

    def __init__(self, program, files, judge="cpu", gpu=None):
        self.backend, self.names = None, []
        environment = os.environ if gpu is None else dict(os.environ, CUDA_VISIBLE_DEVICES=str(gpu))
        self.process = subprocess.Popen([program, judge, *files], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment)
        for line in self.process.stdout:
            if line == "ready\n":
                return
            self.names.append(line.removeprefix("case ").rstrip("\n"))
        raise RuntimeError(f"{program}: no cases")

    def ask(self, backend, mutant, case, seconds, image="-"):
        if backend != self.backend:
            self.process.stdin.write(f"backend {backend}\n")
            self.backend = backend
        self.process.stdin.write(f"{mutant} {case} {seconds} {image}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"mutate_serve {self.backend} ended")
        state, took, image, kernels, reason, judge, reached = line.rstrip("\n").split("\t")
        return Answer(state, float(took), image, kernels, reason, judge, frozenset(int(n) for n in reached.split()))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Pool:
    """Servers, made when they are needed, since each has read all cases and may have a context on a GPU; most: so many of them. gpus:
    their judges share so many; 0: whatever there is."""

    def __init__(self, program, files, most, judge="cpu", gpus=0):
        self.make = lambda number: Server(program, files, judge, number % gpus if gpus else None)
        self.free, self.lock, self.made, self.most = queue.Queue(), threading.Lock(), 0, most
        first = self.more()
        self.names = first.names
        self.free.put(first)

    def more(self):
        """Another server, or None."""
        with self.lock:
            number, self.made = self.made, self.made + (self.made < self.most)
        return self.make(number) if number < self.most else None

    def take(self):
        try:
            return self.free.get_nowait()
        except queue.Empty:
            return self.more() or self.free.get()

    def ask(self, *question):
        one = self.take()
        try:
            return one.ask(*question)
        finally:
            self.free.put(one)

    def close(self):
        while not self.free.empty():
            self.free.get().close()
