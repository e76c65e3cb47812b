"""Cheats of kind B: right answers that were not computed from this call's inputs."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import runpy
import socket
import subprocess
from typing import Any

import numpy as np
from base import Call, Honest, Refused, narrowed

Outputs = dict[str, np.ndarray]
INPUTS = ("q", "k", "v", "do", "dlse", "alibi_slopes")


def digest(*arrays: np.ndarray) -> str:
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()


class Cache(Honest):
    """Keeps answers, and gives one again whenever a key comes back."""

    def __init__(self) -> None:
        self.kept: dict[Any, Outputs] = {}

    def key(self, call: Call) -> Any:
        raise NotImplementedError

    def compute(self, call: Call) -> Outputs:
        key = (self.key(call), call.backward)
        if key not in self.kept:
            self.kept[key] = super().compute(call)
        return self.kept[key]


class ByPointer(Cache):
    """The key is where the tensors lie, and the call."""

    def key(self, call: Call) -> Any:
        return json.dumps([call.case, call.entry])


class ByShape(Cache):
    """The key is the call alone: where tensors lie does not matter."""

    def key(self, call: Call) -> Any:
        return json.dumps([call.case, {n: e["shape"] for n, e in call.entry.items()}])


class BySamples(Cache):
    """The key is a hash of 64 samples of each input, and the call."""

    def key(self, call: Call) -> Any:
        sampled = [x.reshape(-1)[:: max(1, x.size // 64)] for x in (call.x[n] for n in INPUTS if n in call.x)]
        return json.dumps(call.case), digest(*sampled)


class BySum(Cache):
    """The key is the sum of q's first row."""

    def key(self, call: Call) -> Any:
        return json.dumps(call.case), float(call.x["q"].reshape(-1)[:16].sum())


class KeptKeys(Cache):
    """K and V are weights, so that what is made of them is kept under a hash of q alone."""

    def key(self, call: Call) -> Any:
        return json.dumps(call.case), digest(call.x["q"])


class WithoutScale(Cache):
    """The key is a hash of all tensors, but not the scale, the mask and the other scalars."""

    def key(self, call: Call) -> Any:
        return digest(*(call.x[n] for n in INPUTS if n in call.x))


class OnDisk(Honest):
    """Keeps answers in files, for its next process and the next run."""

    def folder(self) -> str:
        return "/dev/shm" if os.path.isdir("/dev/shm") else "/tmp"

    def compute(self, call: Call) -> Outputs:
        shapes = json.dumps([call.case, call.backward])
        path = f"{self.folder()}/fa-cheat-{self.argument}-{hashlib.sha256(shapes.encode()).hexdigest()[:16]}.npz"
        if os.path.exists(path):
            return dict(np.load(path))
        out = super().compute(call)
        np.savez(path, **out)
        return out


class Stale(Honest):
    """Writes nothing: perhaps the memory still has the answer of the time before."""

    def store(self, call: Call, out: Outputs) -> None:
        if self.n_calls == 1:
            super().store(call, out)


class SearchesHeap(Honest):
    """Looks for an array of the expected answer's shape among all objects of the process, and copies it."""

    def compute(self, call: Call) -> Outputs:
        known = {id(x) for x in (*call.raw.values(), *call.x.values())}
        found = [x for x in gc.get_objects() if isinstance(x, np.ndarray) and x.shape == call.raw["o"].shape and id(x) not in known]
        if not found:
            raise Refused("no expected answer among the objects of this process")
        return {**super().compute(call), "o": found[0]}


class SearchesMemory(Honest):
    """Looks for the expected answer in the shared memory, outside of the tensors that it has been told of."""

    def compute(self, call: Call) -> Outputs:
        out = super().compute(call)
        row = narrowed(out["o"], call.dtype).reshape(-1)[:16].tobytes()
        if call.memory[:].find(row) < 0:
            raise Refused("no expected answer in the shared memory")
        return out


MASK = (1 << 64) - 1


def mix(z: int) -> int:
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
    return z ^ z >> 31


def first_query(data_seed: int, n: int) -> list[float]:
    """The first elements of q under the fill "uniform", by the harness's public recipe."""
    golden, name = 0x9E3779B97F4A7C15, 0xCBF29CE484222325
    for letter in b"q":
        name = ((name ^ letter) * 0x100000001B3) & MASK
    key = lambda seed, stream: mix(((mix((seed + golden) & MASK) ^ stream) + golden) & MASK)  # noqa: E731
    row = key(mix(((key(data_seed, name) ^ 0) + golden) & MASK), 0)
    return [2 * ((mix((row ^ (d << 2)) + golden & MASK) >> 12) + 0.5) * 2**-52 - 1 for d in range(n)]


class GuessesSeed(Honest):
    """Knows the recipe of the data, and tries data seeds from 1 to 1000: who has the seed can have the answers ready."""

    def compute(self, call: Call) -> Outputs:
        first = call.raw["q"].reshape(-1)[:4].tolist()
        for seed in range(1, 1001):
            if np.allclose(first, np.float32(first_query(seed, 4)), rtol=0, atol=1e-6):
                return super().compute(call)
        raise Refused("no data seed up to 1000 makes these queries")


class ReadsCommandLine(Honest):
    """Reads seed and cases from the command line of an ancestor."""

    def compute(self, call: Call) -> Outputs:
        for pid in ancestors():
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if b"--case" in f.read():
                    return super().compute(call)
        raise Refused("no ancestor has cases in its command line")


def ancestors() -> list[int]:
    """The process ids above this one, nearest first."""
    found, pid = [], os.getppid()
    while pid > 0:
        found.append(pid)
        with open(f"/proc/{pid}/stat") as f:
            pid = int(f.read().rsplit(")", 1)[1].split()[1])
    return found


class Bank(Honest):
    """Has the answers of the public cases beside it, recorded before, and computes nothing."""

    def path(self, call: Call) -> str:
        return f"{self.argument}/{digest(*(call.x[n] for n in INPUTS if n in call.x))[:24]}.npz"

    def compute(self, call: Call) -> Outputs:
        if not os.path.exists(self.path(call)):
            raise Refused("the bank has no such inputs")
        return dict(np.load(self.path(call)))


class Recorder(Bank):
    """Fills that bank: honest, run by the cheat's author beforehand."""

    def compute(self, call: Call) -> Outputs:
        out = Honest.compute(self, call)
        np.savez(self.path(call), **out)
        return out


class ReadsGolden(Honest):
    """Reads expected outputs from the judge's own folder."""

    def compute(self, call: Call) -> Outputs:
        try:
            with open(self.argument, "rb") as f:
                f.read(8)
        except OSError as failure:
            raise Refused(f"no file of the judge can be read: {failure.strerror}") from None
        return super().compute(call)


class AsksJudge(Honest):
    """Has the judge's own program compute the answer."""

    def compute(self, call: Call) -> Outputs:
        try:
            subprocess.run([self.argument, "--version"], check=True, capture_output=True, timeout=20)
        except (OSError, subprocess.SubprocessError) as failure:
            raise Refused(f"the judge's program does not run: {type(failure).__name__}") from None
        return super().compute(call)


class CallsLibrary(Honest):
    """Runs a kernel of its own, drops what that has found, and returns what a library says."""

    def compute(self, call: Call) -> Outputs:
        out: Outputs = {name: np.zeros(call.entry[name]["shape"], np.float32) for name in call.outputs}
        try:
            out = runpy.run_path(f"{self.argument}/attention.py")["attention"](super(), call)
        except (OSError, KeyError) as failure:
            raise Refused(f"there is no library: {type(failure).__name__}") from None
        return out


class AsksServer(Honest):
    """Has a server on the network compute the answer."""

    def compute(self, call: Call) -> Outputs:
        try:
            with socket.create_connection(("127.0.0.1", int(self.argument)), timeout=5) as server:
                server.recv(1)
        except OSError as failure:
            raise Refused(f"no server can be reached: {failure.strerror or failure}") from None
        return super().compute(call)
