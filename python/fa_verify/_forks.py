"""One process that imports a library once, and forks a child for each process that wants one.

The other side is gpu/child/forks.h, which says what is sent. Children are forked before a device is touched: what an import must not
leave behind, because no fork survives it, is looked for after it, and then there is no such process, and each child imports for itself."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import selectors
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

#: Files that a process has open once it has begun with a GPU.
GPU_FILES = ("/dev/nvidia", "/dev/kfd", "/dev/dri/", "/dev/dxg")
_PR_SET_PDEATHSIG = 1
#: A file of which children lock a copy of their own, one at a time; -1: this is no child.
_turns = -1


def fork_children(load: Callable[[], None]) -> bool:
    """Loads, and then forks a child for each request on stdin, in which it returns True, with the requester's stdin, stdout and stderr.

    False: in the process itself, once nobody asks any more, or because what was loaded cannot be forked; stderr says why."""
    global _turns
    with socket.socket(fileno=os.dup(0)) as requests:
        _point(os.open(os.devnull, os.O_RDONLY), 0)
        n_threads = _n_threads()
        try:
            load()
        except Exception:  # noqa: BLE001  which the children, that import for themselves then, have a word for
            return False
        sys.stdout.flush()
        ctypes.CDLL(None).fflush(None)  # what an import has printed is not to be printed again by each child
        reason = unforkable(n_threads)
        if reason:
            os.write(2, f"fa_verify: every process imports for itself: {reason}\n".encode())
            return False
        _turns = os.memfd_create("fa-verify turns")
        return _Server(requests).run()


@contextlib.contextmanager
def in_turn(patience_s: float = 10.0) -> Iterator[None]:
    """What children do one after the other: a GPU's driver opens one context at a time, and whoever waits for it burns processor time.

    A child that ends in its turn gives it up; after patience_s nobody waits any longer."""
    if _turns < 0:
        yield
        return
    fd = os.open(f"/proc/self/fd/{_turns}", os.O_RDWR)
    try:
        _lock(fd, time.monotonic() + patience_s)
        yield
    finally:
        os.close(fd)


def _lock(fd: int, deadline: float) -> None:
    while time.monotonic() < deadline:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(0.01)


def unforkable(n_threads: int) -> str:
    """Why no child can be forked after an import before which this process had so many threads; empty if one can."""
    opened = sorted({target for target in map(_target, Path("/proc/self/fd").iterdir()) if target.startswith(GPU_FILES)})
    if opened:
        return f"the import opened {opened[0]}, and a GPU's context does not survive a fork"
    if threading.active_count() > 1 or _n_threads() > n_threads:
        return "the import started threads, which a fork leaves behind"
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as refused:  # Linux before 5.3, and some sandboxes
        return f"this system has no pidfd_open ({refused.strerror})"
    return ""


def _n_threads() -> int:
    return sum(1 for _ in Path("/proc/self/task").iterdir())


def _target(link: Path) -> str:
    try:
        return os.readlink(link)
    except OSError:  # it was the folder's own
        return ""


def _point(fd: int, at: int) -> None:
    if fd != at:
        os.dup2(fd, at)
        os.close(fd)


class _Server:
    """Its children, each with the socket to whoever asked for it, and a descriptor that can be read once it has ended."""

    def __init__(self, requests: socket.socket):
        self._requests = requests
        self._children: dict[int, tuple[int, socket.socket]] = {}  # by process id
        self._ready = selectors.DefaultSelector()
        self._ready.register(requests, selectors.EVENT_READ, None)

    def run(self) -> bool:
        """As fork_children."""
        while True:
            for key, _ in self._ready.select():
                if key.data is None:
                    asked = self._receive()
                    if asked is None:
                        self._end_all()
                        return False
                    if asked and self._fork(asked):
                        return True
                elif key.data in self._children:
                    self._look_at(key.data, key.fd == self._children[key.data][0])

    def _receive(self) -> list[int] | None:
        """The descriptors of a request; None: nobody asks any more."""
        byte, fds, _, _ = socket.recv_fds(self._requests, 1, 4)
        if not byte:
            return None
        if len(fds) == 4:
            return fds
        for fd in fds:  # there were no more to be had here
            os.close(fd)
        return []

    def _fork(self, fds: list[int]) -> bool:
        """True: this is the child. Where there is no room for one more, its asker sees the end of the socket, and starts it itself."""
        asker = socket.socket(fileno=fds[3])
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError:
            pid = -1
        if pid == 0:
            self._become_child(parent, fds[:3], asker)
            return True
        for fd in fds[:3]:
            os.close(fd)
        ended = -1 if pid < 0 else self._watch(pid)
        if ended < 0:
            asker.close()
            return False
        self._children[pid] = (ended, asker)
        for fd in (ended, asker.fileno()):
            self._ready.register(fd, selectors.EVENT_READ, pid)
        self._say(pid, pid)
        return False

    @staticmethod
    def _watch(pid: int) -> int:
        """A descriptor that can be read once the child has ended. Negative: there are no more, and there is no child."""
        _try(os.setpgid, pid, pid)  # here and in the child: whichever comes first
        try:
            return os.pidfd_open(pid)
        except OSError:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return -1

    def _become_child(self, parent: int, fds: list[int], asker: socket.socket) -> None:
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        _offer_to_oom_killer()
        self._ready.close()
        os.close(self._requests.detach())
        asker.close()
        for ended, other in self._children.values():
            os.close(ended)
            other.close()
        for at, fd in enumerate(fds):
            os.dup2(fd, at)
        for fd in fds:
            os.close(fd)

    def _say(self, pid: int, number: int) -> None:
        try:
            self._children[pid][1].send(struct.pack("=i", number), socket.MSG_NOSIGNAL | socket.MSG_DONTWAIT)
        except OSError:  # whoever asked has gone, and the end of its socket will be read
            pass

    def _look_at(self, pid: int, has_ended: bool) -> None:
        """Its process has ended, or whoever asked for it has: the group goes in any case, as long as its number is its own."""
        _try(os.killpg, pid, signal.SIGKILL)
        if not has_ended:
            self._ready.unregister(self._children[pid][1])
            return
        _, status = os.waitpid(pid, 0)
        self._say(pid, status)
        ended, asker = self._children[pid]
        self._ready.unregister(ended)
        if asker.fileno() in self._ready.get_map():
            self._ready.unregister(asker)
        os.close(ended)
        asker.close()
        del self._children[pid]

    def _end_all(self) -> None:
        for pid in self._children:
            _try(os.killpg, pid, signal.SIGKILL)


def _try(call: Callable[[int, int], None], *arguments: int) -> None:
    try:
        call(*arguments)
    except OSError:  # there is nobody any more
        pass


def _offer_to_oom_killer() -> None:
    """If memory runs out, a child is to end, which costs a case, rather than the process that all come from."""
    try:
        Path("/proc/self/oom_score_adj").write_text("500")
    except OSError:
        pass
