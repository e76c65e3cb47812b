"""One side of the protocol (docs/reference/protocol.md): requests in, answers out."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Iterable
from typing import TextIO

from fa_verify._call import Call
from fa_verify._case import Case, Json
from fa_verify._kernel import Kernel, Unsupported
from fa_verify._timing import Timer
from fa_verify._transport import Memory, from_files

#: Exceptions whose text contains one of these mean that the device is lost: only another process can go on.
#: What exceptions say of errors that no later call of the process survives. Libraries that check their launches themselves give CUDA's words alone.
_LOST_DEVICE = (
    "CUDA error", "cudaError", "CUDA_ERROR", "HIP error",
    "illegal memory access", "misaligned address", "illegal instruction", "unspecified launch failure", "global/shared address space",
)  # fmt: skip
_MAX_TEXT = 1500


class Session:
    """Answers the requests of one harness about one kernel."""

    def __init__(self, kernel: Kernel, may_exit: bool = False, dtypes: Iterable[str] | None = None):
        self._kernel = kernel
        self._may_exit = may_exit  # whether the process may end when its device is lost
        self._dtypes = dtypes
        self._memory = Memory()
        self._timer = Timer(kernel)
        self._version = 1

    def answer(self, request: Json) -> Json:
        """The answer to one request."""
        kinds = {"hello": self._hello, "supports": self._supports, "run": self._run, "stage": self._run, "time": self._run, "fetch": self._run}
        return {**kinds[request["type"]](request), "id": request["id"]}

    def serve(self, requests: Iterable[str], answers: TextIO) -> None:
        """Answers lines with lines, until there are no more."""
        for line in requests:
            answers.write(json.dumps(self.answer(json.loads(line))) + "\n")
            answers.flush()

    def _hello(self, request: Json) -> Json:
        self._version = max(v for v in request.get("versions", [1]) if v <= 2)
        try:
            hello = self._kernel.hello(self._version, request.get("takes", ()))
        except (ImportError, RuntimeError, AssertionError) as missing:  # no framework, or no device
            return {"fa_exec": self._version, "why_not": str(missing) or type(missing).__name__}
        if self._dtypes is not None and "dtypes" in hello:
            hello["dtypes"] = [dtype for dtype in hello["dtypes"] if dtype in self._dtypes]
        if "time" in request.get("takes", ()) and "why_not" not in hello:
            hello["time"] = True
        return hello

    def _supports(self, request: Json) -> Json:
        return self._kernel.supports(Case(request["case"]))

    def _run(self, request: Json) -> Json:
        try:
            return self._computing(request)
        except (Unsupported, NotImplementedError) as refused:
            return {"state": "unsupported", "text": str(refused) or "it does not take this case"}
        except MemoryError:
            return {"state": "error", "text": "out of memory"}
        except Exception as failure:  # noqa: BLE001  whatever a kernel raises is its failure
            return self._failed(failure)

    def _computing(self, request: Json) -> Json:
        if request["type"] == "run":
            return self._compute(request)
        if request["type"] == "time":
            return self._timer.time(request)
        tensors = self._memory.tensors(request)
        return self._timer.stage(request, tensors) if request["type"] == "stage" else self._timer.fetch(request, tensors)

    def _compute(self, request: Json) -> Json:
        tensors = self._memory.tensors(request) if "memory" in request else from_files(request)
        call = Call(request["case"], tensors, request["passes"], request.get("threads", 1), self._kernel.place())
        result = self._kernel.run(call)
        fault = call.finish(result)
        if fault:
            return {"state": fault[0], "text": fault[1]}
        return {"state": "ok", "kernel": result.kernel or self._kernel.name}

    def _failed(self, failure: Exception) -> Json:
        """An exception is the kernel's failure, unless it is the machine's."""
        text = _describe(failure, self._kernel)
        if type(failure).__name__ == "OutOfMemoryError":
            return {"state": "error", "text": text}
        if any(words in str(failure) for words in _LOST_DEVICE):
            traceback.print_exception(failure, file=sys.stderr)
            if self._may_exit:
                os._exit(9)
            return {"state": "error", "text": text}
        return {"state": "rejected", "text": text}


def _describe(failure: Exception, kernel: Kernel) -> str:
    """The exception, and the last line of the kernel's own file that it came through."""
    code = getattr(kernel.function, "__code__", None)
    frames = [f for f in traceback.extract_tb(failure.__traceback__) if code and f.filename == code.co_filename]
    where = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno}: {frames[-1].line})" if frames else ""
    return f"{type(failure).__name__}: {failure}{where}"[:_MAX_TEXT]
