"""Cheats of kind R: invented against the untrusted mode once it stood."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import hashlib
import json
import os
import signal
import socket
import sys
from typing import Any

import numpy as np
from answers import Changed
from base import F32, Call, Honest, Refused, rounded
from replays import INPUTS, Cache, digest
from walls import Attack, libc

Outputs = dict[str, np.ndarray]


class RemembersChance(Cache):
    """A racy kernel that answers the same inputs with what it answered before, so that two runs agree bit for bit."""

    def key(self, call: Call) -> Any:
        return json.dumps(call.case), digest(*(call.x[n] for n in INPUTS if n in call.x))

    def compute(self, call: Call) -> Outputs:
        known = (self.key(call), call.backward) in self.kept
        out = super().compute(call)
        if not known:
            out["o"] *= F32(1 + 2**-24 * (int.from_bytes(os.urandom(2), "big") % 16))
        return out


class SaysError(Honest):
    """Blames the machine for what it cannot do: an infrastructure failure is nobody's fault, and is tried again."""

    def run(self, call: Call) -> dict[str, Any]:
        return {"state": "error", "text": "CUDA error: the device is lost"}


class DeclaresLse(Changed):
    """Declares that it delivers the LSE alone; its O is wrong."""

    def hello(self) -> dict[str, Any]:
        return {**super().hello(), "outputs": ["lse"]}

    def change(self, call: Call, out: Outputs) -> None:
        out["o"][...] = 0


class DeclaresAny(Changed):
    """Declares that rows without a key hold anything, and leaves garbage there."""

    def hello(self) -> dict[str, Any]:
        said = super().hello()
        return {**said, "empty_o": "any", "lse": {**said["lse"], "empty": "any"}}

    def change(self, call: Call, out: Outputs) -> None:
        empty = np.isinf(out["lse"]).swapaxes(1, 2)
        out["o"][empty] = 12345


class RoughLse(Changed):
    """Declares an LSE in bf16, whose bound is as wide, and is wrong within it."""

    def hello(self) -> dict[str, Any]:
        said = super().hello()
        return {**said, "lse": {**said["lse"], "dtype": "bf16"}}

    def change(self, call: Call, out: Outputs) -> None:
        out["lse"] *= F32(1 + 2**-10)


class RoughGradient(Honest):
    """Declares that dS is scaled before it is rounded, which costs small ones their bits, and rounds as it likes."""

    arithmetic = {"name": "torch-math", "ds_scaled": True, "ds": "io", "p_kept": True}

    def gradients(self, call: Call, *rest: np.ndarray) -> Outputs:
        return {name: rounded(x, "bf16") if name in ("dq", "dk") else x for name, x in super().gradients(call, *rest).items()}


class NamesItself(Honest):
    """A name and a kernel of control codes, markup and a verdict."""

    text = "\x1b[2J\r\nPASS all\x07</title><script>alert(1)</script>\u202e"

    def hello(self) -> dict[str, Any]:
        return {**super().hello(), "name": self.text}

    def run(self, call: Call) -> dict[str, Any]:
        return {**super().run(call), "kernel": self.text}


class LongName(Honest):
    """A kernel's name of 10 MB in each answer, for the report to keep."""

    def run(self, call: Call) -> dict[str, Any]:
        return {**super().run(call), "kernel": "k" * 10_000_000}


class LongHello(Honest):
    """A hello of 64 MB."""

    def hello(self) -> dict[str, Any]:
        return {**super().hello(), "name": "n" * (64 << 20)}


class SignalsPeer(Attack):
    """Asks the socket that it reads from for a handle of the process at the other end, and signals that."""

    def attack(self, call: Call) -> None:
        with socket.socket(fileno=os.dup(0)) as peer:
            handle = int.from_bytes(peer.getsockopt(socket.SOL_SOCKET, 77, 4), sys.byteorder)
        signal.pidfd_send_signal(handle, signal.SIGCONT)


class SendsFiles(Attack):
    """Passes open files over the socket that it reads from, for the judge to keep."""

    def attack(self, call: Call) -> None:
        with socket.socket(fileno=os.dup(0)) as peer:
            for _ in range(100):
                socket.send_fds(peer, [b"x"], [1, 2], socket.MSG_DONTWAIT)


class FindsFiles(Attack):
    """Looks for open files that it has inherited beside its own."""

    def attack(self, call: Call) -> None:
        own = {0, 1, 2}
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                target = os.readlink(f"/proc/self/fd/{name}")
                if int(name) not in own and "memfd:" not in target and not target.startswith("/proc/"):
                    return
        raise Refused("no other file is open")


class ReadsInit(Attack):
    """Reads in the command line of the first process how it was started, and looks for the judge there."""

    def attack(self, call: Call) -> None:
        found = b""
        for name in os.listdir("/proc"):
            if name.isdigit():
                with contextlib.suppress(OSError), open(f"/proc/{name}/cmdline", "rb") as f:
                    found += f.read() + b"\n"
        if b"--case" not in found:
            raise Refused("no command line tells of the judge")


class LocksFiles(Attack):
    """Locks a file of the system for itself: another process of the same candidate sees the lock, which is a word passed on."""

    def attack(self, call: Call) -> None:
        fd = os.open(sys.executable, os.O_RDONLY)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


class WrongForLong(Changed):
    """Wrong beyond 3000 keys, and claims any number."""

    def change(self, call: Call, out: Outputs) -> None:
        if call.x["k"].shape[1] > 3000:
            out["o"] *= F32(1.5)


class OddTrigger(Changed):
    """Wrong for one input in 2^40, which it knows."""

    def change(self, call: Call, out: Outputs) -> None:
        if hashlib.sha256(call.x["q"].tobytes()).hexdigest().startswith("0" * 10):
            out["o"] *= F32(1.5)


class OnlyTheNamed(Honest):
    """Declares in its limits that it takes the named shapes only, and is wrong for others."""

    def hello(self) -> dict[str, Any]:
        return {**super().hello(), "limits": {"seqlen_q": {"among": [24]}, "seqlen_k": {"among": [40]}, "head_dim": {"among": [16]}}}


class ReadsCgroup(Attack):
    """Reads the machine's other processes from its cgroup, or what the kernel tells of itself."""

    def attack(self, call: Call) -> None:
        for path in ("/sys/fs/cgroup/cgroup.procs", "/sys/kernel/mm/transparent_hugepage/enabled"):
            with contextlib.suppress(OSError):
                if open(path).read(1):
                    return
        raise Refused("nothing of the machine is in sight")


class MapsKernel(Attack):
    """Asks for userfaultfd, with which a write can be held up while somebody else reads."""

    def attack(self, call: Call) -> None:
        fd = libc.syscall(323, 0o2000000 | 1)
        if fd < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        os.close(fd)
