"""Lists of keys: which keys of its sequence each row names, and how often."""

from __future__ import annotations

import numpy as np
from rules import changed
from sequences import Case, Sequence
from stored import Arrays


def entries_of(t: Arrays, at: Sequence) -> np.ndarray:
    """The lists of a sequence's rows, [sq, k], as long as topk_length says; all if it says nothing."""
    lists = t["topk_indices"][at.rows]
    return lists[:, : int(t["topk_length"][at.b])] if "topk_length" in t else lists


def slots_of(case: Case, at: Sequence) -> np.ndarray:
    """By which number a list names each key of the sequence."""
    size = case["kvcache"].get("page_size", 0)
    if not size:
        return np.arange(at.sk)
    pages, places = at.keys
    return np.asarray(pages * size + places)


def times_named(case: Case, t: Arrays, at: Sequence) -> np.ndarray:
    """How often each row names each key: [sq, sk]."""
    named = entries_of(t, at)[:, :, None] == slots_of(case, at)[None, None, :]
    times: np.ndarray = named.sum(1)
    return np.minimum(times, 1) if changed("named_twice_counts_once") else times


def strangers(case: Case, t: Arrays, at: Sequence) -> list[int]:
    """Entries that are neither below 0 nor a key of the sequence. Without pages those from the number of keys on name none."""
    entries = entries_of(t, at).ravel()
    end = np.inf if case["kvcache"].get("page_size", 0) else at.sk
    return sorted(set(entries[(entries >= 0) & (entries < end)].tolist()) - set(slots_of(case, at).tolist()))
