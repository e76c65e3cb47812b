"""Asks the program for cases and for goldens of them, a few at a time, so that little lies on the disk."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sequences import Case, batch_of
from stored import Golden, read_folder

AT_ONCE = 25


def drawn(program: str, profile: str, count: int, seed: int) -> list[Case]:
    """Random cases, which are the same everywhere."""
    part = {"profile": profile, "count": count, "seed": str(seed)}
    return _listed(program, ["--cases", "-"], json.dumps({"fa_cases": 1, "random": [part]}))


def named(program: str, files: list[str]) -> list[Case]:
    """All cases of case files, sweeps written out."""
    return _listed(program, ["--cases", *files], "")


def _listed(program: str, arguments: list[str], text: str) -> list[Case]:
    return [json.loads(line) for line in _said([program, "list", "cases", *arguments], text).splitlines()]


def _said(command: list[str], text: str) -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def pairs_of(case: Case) -> int:
    """How many pairs of a row and a key a case has at most, over all heads."""
    rows = int(case.get("seqlen_q", 1))
    keys = int(case.get("seqlen_k", rows))
    if "cu_seqlens_q" in case:
        rows = _longest(case["cu_seqlens_q"])
    if "cu_seqlens_k" in case:
        keys = _longest(case["cu_seqlens_k"])
    return batch_of(case) * int(case.get("heads_q", 1)) * rows * keys


def _longest(cu_seqlens: list[int]) -> int:
    return max(b - a for a, b in zip(cu_seqlens, cu_seqlens[1:], strict=False))


def is_for_goldens(case: Case) -> bool:
    """Cases that are to be refused, or judged by a law, have no outputs of the reference; 8 bits and their descales are not transcribed."""
    return not {"expect", "law", "quantized"} & set(case)


def written(program: str, cases: list[Case]) -> Iterator[Golden]:
    """Goldens of these cases; names are replaced, since those of several files and profiles may be the same."""
    for first in range(0, len(cases), AT_ONCE):
        with tempfile.TemporaryDirectory(prefix="fa-transcription-") as folder:
            lines = [json.dumps({**case, "name": f"golden_{first + n}"}) for n, case in enumerate(cases[first : first + AT_ONCE])]
            _said([program, "golden", "write", folder, "--cases", "-", "-q"], "\n".join(lines))
            for golden in read_folder(Path(folder)):
                number = int(golden.name.removeprefix("golden_"))
                golden.case["name"] = cases[number]["name"]
                yield golden


def as_json(case: dict[str, Any]) -> str:
    return json.dumps(case, separators=(",", ":"))
