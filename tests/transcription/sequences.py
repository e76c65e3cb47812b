"""Variable length: which rows and keys of the tensors belong to a sequence, and how many it has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from stored import Arrays

Case = dict[str, Any]
Index = tuple[Any, ...]


@dataclass(frozen=True)
class Sequence:
    """Entry b: `rows` takes [sq, H, D] out of a tensor like q, `keys` [sk, H, D] out of one like k, `lse` [H, sq] out of one like lse."""

    b: int
    sq: int
    sk: int
    rows: Index
    keys: Index
    lse: Index


def batch_of(case: Case) -> int:
    for name in ("cu_seqlens_q", "cu_seqlens_k"):
        if name in case:
            return len(case[name]) - 1
    return int(case.get("batch", 1))


def has_padded_lse(case: Case) -> bool:
    return case.get("lse_layout") == "padded"


def rows_of(case: Case, t: Arrays, b: int) -> tuple[int, Index, Index]:
    """How many rows entry b has, where they are in q, and in lse."""
    if "cu_seqlens_q" not in t:
        return t["q"].shape[1], (b,), (b,)
    first, end = (int(x) for x in t["cu_seqlens_q"][b : b + 2])
    lse = (b, slice(None), slice(0, end - first)) if has_padded_lse(case) else (slice(None), slice(first, end))
    return end - first, (slice(first, end),), lse


def sequences(case: Case, t: Arrays) -> Iterator[Sequence]:
    """The entries of a call without a cache."""
    for b in range(batch_of(case)):
        sq, rows, lse = rows_of(case, t, b)
        packed = "cu_seqlens_k" in t
        first, end = (int(x) for x in t["cu_seqlens_k"][b : b + 2]) if packed else (0, t["k"].shape[1])
        if "seqused_k" in t:
            end = first + int(t["seqused_k"][b])
        if "leftpad_k" in t:
            first = min(end, first + int(t["leftpad_k"][b]))
        keys = (slice(first, end),) if packed else (b, slice(first, end))
        yield Sequence(b, sq, end - first, rows, keys, lse)


def longest(case: Case, t: Arrays) -> tuple[int, int]:
    """The most rows and keys that a sequence of the call has, before `seqused_k` and `leftpad_k`."""
    sizes = []
    for name, axis in (("cu_seqlens_q", "q"), ("cu_seqlens_k", "k")):
        sizes.append(int((t[name][1:] - t[name][:-1]).max()) if name in t else t[axis].shape[1])
    return sizes[0], sizes[1]
