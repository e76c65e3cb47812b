"""Masks: which keys a row sees. All of them are combined by AND."""

from __future__ import annotations

from typing import Any

import numpy as np
from rules import changed
from stored import Arrays

Case = dict[str, Any]


def by_position(case: Case, sq: int, sk: int) -> np.ndarray:
    """Causal masks, windows and chunks: [sq, sk]."""
    mask = case.get("mask", {})
    kind, left, right = mask.get("type", "none"), mask.get("left", -1), mask.get("right", -1)
    top_left = mask.get("align", "bottom_right") == "top_left" or changed("causal_from_the_top")
    if "kvcache" in case and "cu_seqlens_q" in case:
        top_left = top_left or changed("packed_queries_from_the_top")
    p = np.arange(sq)[:, None] + (0 if top_left else sk - sq)
    j = np.arange(sk)[None, :]
    visible = np.ones((sq, sk), bool)
    if kind in ("causal", "chunk"):
        visible &= j <= p
    if kind == "chunk":
        visible &= j >= first_of_chunk(p, int(mask["size"]))
    if kind in ("window", "chunk") and left >= 0:
        visible &= j >= p - left
    if kind == "window" and right >= 0:
        visible &= j <= p + right
    return visible


def first_of_chunk(p: np.ndarray, size: int) -> np.ndarray:
    """Floors: the chunk of a position before key 0 ends before key 0."""
    return (p + changed("chunk_of_the_next")) // size * size


def by_bits(t: Arrays, b: int, sq: int, sk: int) -> np.ndarray:
    """A custom mask of packed bits: [sq, sk]."""
    first = int(t["mask_indptr"][b])
    n = np.arange(sq * sk)
    place = 7 - n % 8 if changed("bits_from_the_top") else n % 8
    return (t["mask_bits"][first + n // 8] >> place & 1).astype(bool).reshape(sq, sk)


def of_lists(case: Case, t: Arrays, b: int, h: int, sq: int, sk: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of listed tiles, and those of full ones, where mask_mod does not apply: [sq, sk] each."""
    blocks = case["block_sparse"]
    size_q, size_k = blocks.get("q_block", 128), blocks.get("kv_block", 128)
    rows, columns = -(-sq // size_q), -(-sk // size_k)
    pairs = []
    for kind in ("kv", "full_kv"):
        if f"{kind}_num_blocks" not in t:
            pairs.append(np.zeros((sq, sk), bool))  # the case has no list of full tiles
            continue
        counts, indices = t[f"{kind}_num_blocks"], t[f"{kind}_indices"]
        n, m = counts.shape[:2]
        entry = n - 1 - b % n if changed("lists_from_the_end") else b % n
        tiles = np.zeros((rows, columns), bool)
        for row in range(rows):
            listed = indices[entry, h % m, row, : counts[entry, h % m, row]]
            tiles[row, listed[(0 <= listed) & (listed < columns)]] = True
        pairs.append(np.repeat(np.repeat(tiles, size_q, 0), size_k, 1)[:sq, :sk])
    return pairs[0] | pairs[1], pairs[1]
