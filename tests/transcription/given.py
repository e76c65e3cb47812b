"""Inputs that the page itself fixes: standard slopes, trees of draft tokens, the padding of custom masks."""

from __future__ import annotations

import math

import numpy as np
from cache import entries
from key_lists import strangers
from masks import by_bits
from sequences import Case, sequences
from stored import Arrays


def standard_slopes(heads: int) -> list[float]:
    """2^(-8 (h + 1) / H); for other numbers of heads those of the next lower power of two, and every second one of twice that."""
    power = 2 ** int(math.log2(heads))
    slopes = [2.0 ** (-8 * (h + 1) / power) for h in range(power)]
    return slopes + [2.0 ** (-8 * (h + 1) / (2 * power)) for h in range(0, 2 * (heads - power), 2)]


def contradictions(case: Case, t: Arrays) -> list[str]:
    """What inputs are not as the page says."""
    found = []
    if "alibi" in case and case["alibi"].get("slopes", "standard") == "standard":
        want = np.array(standard_slopes(int(case.get("heads_q", 1))))
        if not np.allclose(t["alibi_slopes"], want, rtol=2.0**-23, atol=0):
            found.append(f"standard slopes are {t['alibi_slopes']}, not {want}")
    if "mask_bits" in t and "q" in t:
        found += [] if t["mask_indptr"][0] == 0 else ["mask_indptr does not begin at 0"]
        found += _bits(case, t)
    if "topk_indices" in t:
        for at in entries(case, t):
            others = strangers(case, t, at)
            found += [f"lists of entry {at.b} name slots {others}, which are none of its keys"] if others else []
    return found


def _entries(case: Case, t: Arrays) -> list[tuple[int, int, int]]:
    """b, sq, sk."""
    return [(at.b, at.sq, at.sk) for at in (entries(case, t) if "kvcache" in case else sequences(case, t))]


def _bits(case: Case, t: Arrays) -> list[str]:
    found = []
    bits = case["mask_bits"]
    for b, sq, sk in _entries(case, t):
        used, end = sq * sk, int(t["mask_indptr"][b + 1])
        if end - int(t["mask_indptr"][b]) != -(-used // 8):
            found.append(f"entry {b} of mask_indptr has {end - int(t['mask_indptr'][b])} bytes for {used} bits")
        elif used % 8 and int(t["mask_bits"][end - 1]) >> used % 8 != 0xFF >> used % 8:
            found.append(f"the padding of entry {b} is not set")
        elif "tree" in bits and not bits.get("empty_rows") and not bits.get("hide_diagonal"):
            if not _is_tree(by_bits(t, b, sq, sk), bits["tree"]):
                found.append(f"the bits of entry {b} are no tree {bits['tree']}")
    return found


def _is_tree(visible: np.ndarray, kind: str) -> bool:
    """Rows are draft tokens, the last keys: each sees all keys before them, itself, and what its parent sees."""
    sq, sk = visible.shape
    first = sk - sq
    if first < 0:
        return True  # the first draft tokens are no keys: whose children others are cannot be seen
    if not visible[:, :first].all():
        return False
    drafts, own = visible[:, first:], np.eye(sq, dtype=bool)
    for i in range(sq):
        parents = {"chain": [i - 1], "star": [0 if i else -1], "random": [-1, *range(i)]}[kind]
        seen = [own[i] | (drafts[parent] if parent >= 0 else False) for parent in parents]
        if not any((drafts[i] == one).all() for one in seen):
            return False
    return True
