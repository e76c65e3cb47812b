"""A kernel of this very process, offered to fa-verify on a Unix socket."""

from __future__ import annotations

import json
import select
import socket
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from fa_verify._case import Json
from fa_verify._kernel import Kernel
from fa_verify._session import Session


class Server:
    """Accepts connections as long as its `with` block lasts. The kernel runs one call at a time, in a thread of ours."""

    def __init__(self, kernel: Kernel, dtypes: Iterable[str] | None = None):
        self._kernel = kernel
        self._dtypes = dtypes
        self._folder = tempfile.TemporaryDirectory(prefix="fa-verify-")
        self.path = str(Path(self._folder.name) / "kernel")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._turn = threading.Lock()
        self._running: socket.socket | None = None  # the connection whose call the kernel works on
        self._hangs = False  # a call came while the kernel worked for a connection that has given up

    @property
    def backend(self) -> str:
        """The --backend that reaches this server."""
        return f"connect:{self.path}"

    def __enter__(self) -> Self:
        self._socket.bind(self.path)
        self._socket.listen()
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._folder.cleanup()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        session = Session(self._kernel, dtypes=self._dtypes)
        with connection, connection.makefile("r") as requests:
            try:
                for line in requests:
                    connection.sendall(json.dumps(self._answer(session, json.loads(line), connection)).encode() + b"\n")
            except OSError:  # the other side has ended
                return

    def _answer(self, session: Session, request: Json, connection: socket.socket) -> Json:
        """A call has to wait for its turn. Behind one that hangs the first waits until its own time is up, and so hangs
        too, which is what is wrong; those after it are told at once."""
        if request["type"] in ("hello", "supports"):
            return session.answer(request)
        told = self._hangs
        while not self._turn.acquire(timeout=0.2):
            if self._running is None or not _is_gone(self._running):
                continue
            if told:
                return {"id": request["id"], "state": "error", "text": "the kernel is still busy with an earlier call: it hangs"}
            if _is_gone(connection):
                raise ConnectionError
            self._hangs = True
        try:
            self._running = connection
            return session.answer(request)
        finally:
            self._running, self._hangs = None, False
            self._turn.release()


def _is_gone(connection: socket.socket) -> bool:
    """Whether the other side of a connection has given up."""
    poll = select.poll()
    poll.register(connection, select.POLLRDHUP)
    return bool(poll.poll(0))
