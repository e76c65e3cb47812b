"""The KV cache: where keys are, what is appended, and how positions rotate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from rules import changed
from sequences import Case, Sequence, rows_of
from stored import Arrays, to_type


def rotate(x: np.ndarray, positions: np.ndarray, t: Arrays, case: Case) -> np.ndarray:
    """x [S, H, D] at positions [S], not rounded yet."""
    rotary = case["kvcache"]["rotary"]
    r = int(rotary.get("dim", 0))
    cos, sin = t["rotary_cos"][positions][:, None], t["rotary_sin"][positions][:, None]
    interleaved = rotary.get("interleaved", False)
    one, two = (slice(0, r, 2), slice(1, r, 2)) if interleaved else (slice(0, r // 2), slice(r // 2, r))
    a, c = x[..., one], x[..., two]
    turned = x.copy()
    turned[..., one] = a * cos - c * sin
    turned[..., two] = a * sin + c * cos
    return turned


def slot(case: Case, t: Arrays, b: int, j: int) -> tuple[Any, ...]:
    """Where key j of entry b stands in the cache."""
    size = case["kvcache"].get("page_size", 0)
    if size:
        return int(t["block_table"][b, j // size]), j % size
    return (int(t["cache_batch_idx"][b]) if "cache_batch_idx" in t else b), j


def slots(case: Case, t: Arrays, b: int, begin: int, end: int) -> tuple[np.ndarray, np.ndarray]:
    places = [slot(case, t, b, j) for j in range(begin, end)]
    return tuple(np.array([p[axis] for p in places], int) for axis in (0, 1))  # type: ignore[return-value]


def append(case: Case, t: Arrays) -> Arrays:
    """The caches after the call, as goldens have all outputs: before the rounding to the case's type."""
    after = {"k_after": t["k"].copy(), "v_after": t["v"].copy()}
    if "k_new" in t:
        for b in range(t["k_new"].shape[0]):
            new, first = t["k_new"].shape[1], int(t["cache_seqlens"][b])
            at = slots(case, t, b, first, first + new)
            k = t["k_new"][b]
            after["k_after"][at] = rotate(k, first + np.arange(new), t, case) if "rotary" in case["kvcache"] else k
            after["v_after"][at] = t["v_new"][b]
    return after


def entries(case: Case, t: Arrays) -> Iterator[Sequence]:
    """The entries of a call over a cache; `keys` takes [sk, Hk, D] out of it."""
    for b in range(t["cache_seqlens"].shape[0]):
        sq, rows, lse = rows_of(case, t, b)
        new = t["k_new"].shape[1] if "k_new" in t else 0
        end = int(t["cache_seqlens"][b]) + new
        first = min(end, int(t["leftpad_k"][b])) if "leftpad_k" in t else 0
        yield Sequence(b, sq, end - first, rows, slots(case, t, b, first, end), lse)


def rotated_queries(case: Case, t: Arrays) -> np.ndarray:
    """q after its rotation."""
    if "rotary" not in case["kvcache"]:
        return t["q"]
    q = t["q"].copy()
    moving = case.get("mask", {}).get("type", "none") != "none"
    for at in entries(case, t):
        first = 0 if changed("rotary_from_zero") else int(t["cache_seqlens"][at.b])
        q[at.rows] = rotate(t["q"][at.rows], first + np.arange(at.sq) * moving, t, case)
    return to_type(q, case["dtype"])
