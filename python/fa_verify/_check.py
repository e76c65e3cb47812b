"""check: a kernel of this process against many cases."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from fa_verify._binary import MachineFailed, case_file, profiles, run
from fa_verify._call import Call
from fa_verify._kernel import Kernel
from fa_verify._kernel import kernel as make_kernel
from fa_verify._report import Mismatch, NotJudged, Report, diagnosis, read, shortfall
from fa_verify._server import Server

_DEFAULT_COUNT = 200
_INTERRUPTED = (130, -2)


def check(
    kernel: Kernel | Callable[[Call], Any],
    cases: str | os.PathLike[str] | Mapping[str, Any] | Iterable[Mapping[str, Any]] = "causal",
    count: int | None = None,
    *,
    seed: int = 1,
    require: str | float | os.PathLike[str] | None = None,
    dtype: str | Iterable[str] | None = None,
    filter: str | None = None,
    jobs: int = 1,
    timeout: float = 300,
    fail_fast: bool = False,
) -> Report:
    """Judges a kernel of this process. Raises :class:`Mismatch`, whose text is the diagnosis, if a case fails.

    cases: a case file of the package ("causal", "gqa" ...) or a path, all cases of it; with count, or where there is no
    such file, that many random cases of the profile of that name ("everything" ...), made from seed; or a case, or
    several, as a dict or JSON text. require: how much must be judged and not skipped, "all", "90%", 0.9 or a file of
    requirements; less raises :class:`NotJudged`, and so does nothing at all. dtype: only these. filter: only cases whose
    name matches this regular expression. timeout: seconds for one case. The kernel runs in a thread of this process, one
    call at a time, whatever jobs is; jobs judge beside it.

    >>> import fa_verify, numpy as np
    >>> @fa_verify.kernel(lse="natural", arithmetic="recorded")
    ... def attention(call):
    ...     q, k, v = (x.astype(np.float32) for x in (call.q, call.k, call.v))
    ...     s = np.einsum("bqhd,bkhd->bhqk", q, k) * np.float32(call.scale)
    ...     top = s.max(-1, keepdims=True)
    ...     p = np.exp(s - top)
    ...     total = p.sum(-1, keepdims=True)
    ...     return np.einsum("bhqk,bkhd->bqhd", p / total, v), (top + np.log(total))[..., 0]
    >>> print(fa_verify.check(attention, {"seqlen_q": 65, "heads_q": 2, "dtype": "bf16"}, require="all"))
    passed 1, failed 0, skipped 0 of 1
    """
    subject = kernel if isinstance(kernel, Kernel) else make_kernel(kernel)
    dtypes = [dtype] if isinstance(dtype, str) else None if dtype is None else list(dtype)
    arguments = [*_which(cases, count, seed), "-j", str(jobs), "--timeout", str(timeout)]
    arguments += ["--filter", filter] if filter is not None else []
    arguments += ["-x"] if fail_fast else []
    arguments += ["--require", _requirement(require)] if require is not None else []
    with Server(subject, dtypes) as server:
        report = _run([*arguments, "--backend", server.backend])
    return _demand(report, subject.name)


def _which(cases: Any, count: int | None, seed: int) -> list[str]:
    """The command and its options that name the cases."""
    if isinstance(cases, Mapping):
        return ["run", "--case", json.dumps(cases)]
    if not isinstance(cases, (str, os.PathLike)):
        return ["run", *(word for case in cases for word in ("--case", json.dumps(case)))]
    name = os.fspath(cases)
    if name.lstrip().startswith("{"):
        return ["run", "--case", name]
    path = case_file(name)
    if path is not None and count is None:
        return ["run", "--cases", str(path)]
    if name not in profiles():
        what = "no profile of random cases" if path else "neither a case file nor a profile of random cases"
        raise ValueError(f"{name!r} is {what}; profiles are {', '.join(profiles())}")
    return ["random", "--profile", name, "--count", str(count or _DEFAULT_COUNT), "--seed", str(seed)]


def _requirement(require: str | float | os.PathLike[str]) -> str:
    return f"{100 * require:g}%" if isinstance(require, (int, float)) else os.fspath(require)


def _run(arguments: list[str]) -> Report:
    """Runs fa-verify. MachineFailed: it could not work, and no case failed."""
    with tempfile.TemporaryDirectory(prefix="fa-verify-") as folder:
        path = Path(folder) / "report.json"
        done = run([*arguments, "--report", path, "-q", "--no-progress", "--color", "never"])
        if done.returncode in _INTERRUPTED:
            raise KeyboardInterrupt
        if done.returncode not in (0, 1, 3, 4) or not path.exists():
            raise MachineFailed((done.stderr.strip() or done.stdout.strip() or "fa-verify failed")[-4000:])
        report = read(json.loads(path.read_text()), done.stdout)
    if done.returncode == 3 and not report.failed:
        raise MachineFailed(done.stdout[-2000:] + done.stderr[-2000:])
    return report


def _demand(report: Report, subject: str) -> Report:
    """The report, if nothing failed and enough was judged."""
    if report.failed:
        raise Mismatch(diagnosis(report, subject), report)
    if report.judged == 0 or not report.raw.get("require", {}).get("met", True):
        raise NotJudged(shortfall(report, subject), report)
    return report
