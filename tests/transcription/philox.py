"""Dropout: the two ways from Philox's numbers to the pairs that are kept."""

from __future__ import annotations

import numpy as np
from rules import changed

LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)


Counter = np.ndarray | np.uint64


def philox(x: Counter, y: Counter, z: Counter, w: Counter, seed: int, rounds: int) -> np.ndarray:
    """Philox-4x32 of counters that broadcast, uint64 each: [4, ...]."""
    seed += changed("dropout_seed_plus_one")
    key = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    x, y, z, w = np.broadcast_arrays(*(np.asarray(c, np.uint64) for c in (x, y, z, w)))
    for _ in range(rounds):
        a, b = np.uint64(0xD2511F53) * x, np.uint64(0xCD9E8D57) * z
        x, y = (b >> HALF) ^ y ^ np.uint64(key[0]), b & LOW
        z, w = (a >> HALF) ^ w ^ np.uint64(key[1]), a & LOW
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack([x, y, z, w])


def halves(n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return n & LOW, n >> HALF


def kept_flash(p: float, seed: int, offset: int, head: int, sq: int, sk: int) -> np.ndarray:
    """[sq, sk] of query head `head` = b Hq + h: tiles of 16 rows and 32 columns, a byte for every pair."""
    base = np.uint64((offset + head * 32) % 2**64)
    with np.errstate(over="ignore"):
        x, y = halves(base + np.arange(32, dtype=np.uint64))
    z = np.arange(-(-sq // 16), dtype=np.uint64)[:, None, None]
    w = np.arange(-(-sk // 32), dtype=np.uint64)[None, :, None]
    words = philox(x, y, z, w, seed, 7)
    i, j = np.arange(sq)[:, None], np.arange(sk)[None, :]
    r, c = i % 16, j % 32
    number = c // 8 * 4 + r // 8 * 2 + (c & 1)
    word = words[number // 4, i // 16, j // 32, r % 8 * 4 + c % 8 // 2]
    byte = word >> (8 * (number % 4)).astype(np.uint64) & np.uint64(255)
    limit = np.floor(float(np.float32(1) - np.float32(p)) * 255.0)
    return byte < limit if changed("dropout_rate") else byte <= limit


def kept_memeff(p: float, seed: int, first: int, sq: int, sk: int) -> np.ndarray:
    """[sq, sk] of the head whose pair (0, 0) has number `first`; a word for every pair."""
    with np.errstate(over="ignore"):
        n = np.uint64(first % 2**64) + np.arange(sq * sk, dtype=np.uint64)
    x, y = halves(n // np.uint64(4))
    zero = np.uint64(0)
    words = philox(x, y, zero, zero, seed, 10)
    word = np.take_along_axis(words, (n % np.uint64(4)).astype(np.int64)[None], 0)[0]
    u = word.astype(np.float32) * np.float32(2.0**-32) + np.float32(2.0**-33)
    return (u > np.float32(p)).reshape(sq, sk)
