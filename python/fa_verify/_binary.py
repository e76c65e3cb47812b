"""The program fa-verify and its case files: in the installed package, else in the source tree around it."""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_SOURCE = _PACKAGE.parent.parent


class MachineFailed(RuntimeError):
    """fa-verify could not do its work: no memory, a lost device, a wrong option, a malformed case."""


def _first(candidates: Sequence[Path], what: str) -> Path:
    for path in candidates:
        if path.exists():
            return path
    raise MachineFailed(f"{what} is at none of {', '.join(map(str, candidates))}")


def binary() -> Path:
    """The program: $FA_VERIFY_BINARY, else the one in the package, else build/fa-verify of a source tree."""
    given = os.environ.get("FA_VERIFY_BINARY")
    candidates = [Path(given)] if given else [_PACKAGE / "bin" / "fa-verify", _SOURCE / "build" / "fa-verify"]
    return _first(candidates, "the program fa-verify")


def cases_folder() -> Path:
    """The folder of the case files and of their schema."""
    return _first([_PACKAGE / "cases", _SOURCE / "cases"], "the folder of case files")


def case_file(name: str) -> Path | None:
    """The case file of that name or path: "causal", "causal.json", "my/cases.json". None: there is none.

    >>> case_file("causal").name
    'causal.json'
    >>> case_file("no_such_cases") is None
    True
    """
    if Path(name).is_file():
        return Path(name)
    shipped = cases_folder() / (name if name.endswith(".json") else f"{name}.json")
    return shipped if os.sep not in name and shipped.is_file() and shipped.name != "schema.json" else None


def run(arguments: Sequence[str | os.PathLike[str]]) -> subprocess.CompletedProcess[str]:
    """Runs fa-verify and returns its exit code and output. Nothing is left running if the caller is interrupted."""
    return subprocess.run([str(binary()), *map(str, arguments)], capture_output=True, text=True, errors="replace", check=False)


@functools.cache
def profiles() -> tuple[str, ...]:
    """Names of the kinds of random cases."""
    return tuple(line.split()[0] for line in run(["list", "profiles"]).stdout.splitlines() if line.strip())
