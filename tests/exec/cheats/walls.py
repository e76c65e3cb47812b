"""Cheats of kind C: against the judge, its files and its machine. Where the step that matters fails, the child says so and has no
answer; where it works, the answer is honest, so that the case passes."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import threading
import time
from typing import Any

import numpy as np
from base import Call, Honest, Refused
from replays import ancestors

Outputs = dict[str, np.ndarray]
libc = ctypes.CDLL(None, use_errno=True)


class Attack(Honest):
    """Tries something once, in its first call."""

    def attack(self, call: Call) -> None:
        raise NotImplementedError

    def compute(self, call: Call) -> Outputs:
        if self.n_calls == 1:
            try:
                self.attack(call)
            except (OSError, ValueError) as failure:
                raise Refused(f"{type(self).__name__}: {getattr(failure, 'strerror', None) or failure}") from None
        return super().compute(call)


def checked(result: int) -> int:
    """A C function's result; -1 is raised as what errno says."""
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def judges() -> list[int]:
    """The judge's processes among the ancestors, nearest first."""
    found = []
    for pid in ancestors():
        with open(f"/proc/{pid}/comm") as f:
            if f.read().startswith("fa-verify"):
                found.append(pid)
    if not found:
        raise Refused("no process of the judge is in sight")
    return found


# ---- files ----


class PlantsModule(Attack):
    """Leaves a sitecustomize.py where the judge's Python would load it."""

    def attack(self, call: Call) -> None:
        with open(f"{self.argument}/sitecustomize.py", "w") as f:
            f.write("import sys\n")


class RewritesJudge(Attack):
    """Overwrites the judge's program for the next time."""

    def attack(self, call: Call) -> None:
        with open(f"{self.argument}/program", "r+b") as f:
            f.write(b"#!/bin/true\n")


class LeavesNotes(Attack):
    """Writes down the case for its next run; a run that finds such notes has what it wants."""

    def attack(self, call: Call) -> None:
        paths = [f"{folder}/fa-cheat-notes-{self.argument}" for folder in ("/tmp", "/dev/shm")]
        if any(map(os.path.exists, paths)):
            return
        for path in paths:
            with contextlib.suppress(OSError), open(path, "w") as f:
                f.write(json.dumps(call.case))
        raise Refused("no notes of an earlier run")


class LinksExchange(Honest):
    """Puts a link to another file in the place of its outputs: the judge writes there in the next run."""

    def hello(self) -> dict[str, Any]:
        return {**super().hello(), "transport": "files"}

    def run_files(self, request: dict[str, Any]) -> dict[str, Any]:
        os.remove(request["outputs"])
        os.symlink(f"{self.argument}/program", request["outputs"])
        return {"state": "ok"}


# ---- processes ----


class ReadsJudge(Attack):
    """Reads the judge's memory."""

    def attack(self, call: Call) -> None:
        pid = judges()[-1]
        with open(f"/proc/{pid}/maps") as f:
            heap = next(line for line in f if "[heap]" in line)
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as f:
            f.seek(int(heap.split("-")[0], 16))
            f.read(8)


class TracesJudge(Attack):
    """Attaches to the judge as a debugger."""

    def attack(self, call: Call) -> None:
        pid = judges()[-1]
        seize, detach = 0x4206, 17
        checked(libc.ptrace(seize, pid, None, None))
        libc.ptrace(detach, pid, None, None)


class ReopensPipes(Attack):
    """Opens the pipe through which a worker reports, for writing."""

    def attack(self, call: Call) -> None:
        for pid in judges():
            for fd in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    if os.readlink(f"/proc/{pid}/fd/{fd}").startswith("pipe:") and int(fd) > 2:
                        os.close(os.open(f"/proc/{pid}/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK))
                        return
        raise Refused("no pipe of the judge can be opened")


class StopsJudge(Attack):
    """Sends a signal to the judge: what it may stop it may kill."""

    def attack(self, call: Call) -> None:
        os.kill(judges()[-1], signal.SIGCONT)


class KillsWorker(Honest):
    """Kills the worker that waits for its answer whenever an answer would be wrong, and gets another try."""

    def compute(self, call: Call) -> Outputs:
        out = super().compute(call)
        path = f"/tmp/fa-cheat-kills-{self.argument}"
        if not os.path.exists(path):
            workers = judges()  # the child's supervisor, its worker, the judge
            open(path, "w").close()
            if len(workers) > 2:
                os.kill(workers[1], signal.SIGKILL)
            time.sleep(5)
        return out


class LeavesDaemon(Attack):
    """Leaves a process that outlives the run."""

    def attack(self, call: Call) -> None:
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                with open("/proc/self/comm", "w") as f:
                    f.write(self.argument)
                null = os.open("/dev/null", os.O_RDWR)
                for fd in range(3):
                    os.dup2(null, fd)
                os.closerange(3, 64)
                time.sleep(8)
            os._exit(0)
        os.wait()


# ---- the kernel ----


class TracesFork(Attack):
    """Traces a process of its own, as a tool does that rewrites code from a fork."""

    def attack(self, call: Call) -> None:
        pid = os.fork()
        if pid == 0:
            time.sleep(2)
            os._exit(0)
        try:
            checked(libc.ptrace(0x4206, pid, None, None))
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


class ReadsFork(Attack):
    """Reads the memory of a process of its own by process_vm_readv."""

    def attack(self, call: Call) -> None:
        text = ctypes.create_string_buffer(b"secret12")
        vector = (ctypes.c_size_t * 2)(ctypes.addressof(text), 8)
        pid = os.fork()
        if pid == 0:
            time.sleep(2)
            os._exit(0)
        try:
            checked(libc.process_vm_readv(pid, vector, ctypes.c_ulong(1), vector, ctypes.c_ulong(1), ctypes.c_ulong(0)))
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


class NestsNamespaces(Attack):
    """Makes itself root of a user namespace of its own, from where more of the kernel can be reached."""

    def attack(self, call: Call) -> None:
        pid = os.fork()
        if pid == 0:
            os._exit(0 if libc.unshare(0x10000000) == 0 else ctypes.get_errno() or 1)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status:
            raise OSError(status, os.strerror(status) if status > 0 else "killed")


class AsksRing(Attack):
    """Opens an io_uring, whose requests no filter of system calls sees."""

    def attack(self, call: Call) -> None:
        parameters = ctypes.create_string_buffer(120)
        os.close(checked(libc.syscall(425, 1, parameters)))


# ---- the region ----


class Shrinks(Attack):
    """Cuts the shared region off, so that the judge dies of SIGBUS as it reads the answer."""

    def attack(self, call: Call) -> None:
        os.truncate(self.region, 0)


class Grows(Attack):
    """Makes the shared region larger than the memory of the machine."""

    def attack(self, call: Call) -> None:
        os.truncate(self.region, 1 << 46)


class LateAnswer(Honest):
    """Answers at once and computes afterwards, in a thread."""

    def run(self, call: Call) -> dict[str, Any]:
        threading.Timer(0.03, lambda: self.store(call, self.compute(call))).start()
        return {"state": "ok"}


class ClearsRegion(Honest):
    """Answers with zeros, and sets to 0 whatever it shares with the judge and is no tensor: a counter of errors might lie there."""

    def run(self, call: Call) -> dict[str, Any]:
        self.store(call, {name: np.zeros(call.entry[name]["shape"]) for name in call.outputs})
        shared = np.frombuffer(call.memory, np.uint8)
        keep = np.zeros(shared.size, bool)
        for name, raw in call.raw.items():
            first = call.entry[name]["offset"]
            keep[first : first + raw.nbytes] = True
        shared[~keep] = 0
        return {"state": "ok"}


# ---- resources ----


class Forks(Attack):
    """Starts 700 processes: threads count as such, and are cheaper."""

    def attack(self, call: Call) -> None:
        done = threading.Event()
        threading.stack_size(1 << 16)
        try:
            for _ in range(700):
                threading.Thread(target=done.wait, daemon=True).start()
        except RuntimeError as failure:
            raise OSError(str(failure)) from None
        finally:
            done.set()


class FillsDisk(Attack):
    """Writes a file of 3 GiB; without holes its first megabyte only, so that the test stays quick where nothing stops it."""

    def attack(self, call: Call) -> None:
        path = f"/tmp/fa-cheat-large-{self.argument}"
        try:
            with open(path, "wb") as f:
                os.posix_fallocate(f.fileno(), 0, 3 << 30)
        finally:
            os.unlink(path)


class BuildsWithJudge(Attack):
    """Has a compiler copy a file of the judge's into a program of its own."""

    def attack(self, call: Call) -> None:
        path, token = self.argument.split("|")
        command = ["cc", "-c", "-x", "assembler", "-", "-o", f"/tmp/fa-cheat-build-{token}.o"]
        built = subprocess.run(command, input=f'.incbin "{path}"\n', text=True, capture_output=True, check=False)
        if built.returncode:
            raise Refused("its build finds no file of the judge" if path in built.stderr else built.stderr)


class DumpsCore(Attack):
    """Asks for a core dump of unlimited size."""

    def attack(self, call: Call) -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


class EatsMemory(Attack):
    """Takes 1.5 GiB in a process of its own, and touches all of it: together with the machine's other users it would be too much."""

    def attack(self, call: Call) -> None:
        taken = []
        try:
            for _ in range(24):
                taken.append(np.ones(1 << 26, np.uint8))
        except MemoryError:
            raise Refused("it wanted more memory than it may address") from None
