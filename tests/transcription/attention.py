"""Attention of one head of one sequence: forward, backward, sinks, and how far float64 itself may be off."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

ROUNDING = 1e-13  # of sums, relative to the magnitudes that are added


@dataclass
class Row:
    """What the forward of a head leaves, and how far each may be off (`..._off`)."""

    o: np.ndarray  # [sq, Dv]
    lse: np.ndarray  # [sq], with the sink, if there is one; of rows without a key the convention
    p: np.ndarray  # [sq, sk]
    share: np.ndarray  # [sq], of the sink
    empty: np.ndarray  # [sq], rows that see no key
    o_off: np.ndarray
    lse_off: np.ndarray
    p_off: np.ndarray  # relative


def forward(t: np.ndarray, doubt: np.ndarray, v: np.ndarray, z: np.ndarray, sink: float, in_lse: bool, empty_lse: float) -> Row:
    """t, doubt, z [sq, sk]: final scores, what they may be off, dropout's factors; v [sk, Dv]; sink -inf where there is none."""
    sq = t.shape[0]
    empty = np.asarray(np.isneginf(t).all(1))
    top = np.maximum(t.max(1, initial=-np.inf), sink)
    top = np.where(np.isneginf(top), 0.0, top)
    weight = np.exp(t - top[:, None])
    of_sink = np.exp(np.full(sq, sink) - top)
    whole = weight.sum(1) + of_sink
    safe = np.where(whole > 0, whole, 1.0)
    p, share = weight / safe[:, None], of_sink / safe
    with np.errstate(divide="ignore"):
        counted = whole if in_lse else weight_of_keys(t)
        lse = (top if in_lse else top_of_keys(t)) + np.log(counted)
    lse = np.where(empty & (np.isneginf(sink) | (not in_lse)), empty_lse, lse)
    finite = np.where(p > 0, doubt + 2.0**-51 * np.abs(np.where(np.isneginf(t), 0.0, t)), 0.0)
    of_row = (p * finite).sum(1)
    p_off = finite + of_row[:, None] + ROUNDING
    magnitude = np.abs(v)
    of_lse = (p / np.where(share < 1, 1 - share, 1)[:, None] * finite).sum(1)
    return Row((p * z) @ v, lse, p, share, empty, (p * z * p_off) @ magnitude, of_lse + ROUNDING * (1 + np.abs(_finite(lse))), p_off)


def _finite(x: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(x), x, 0.0)


def top_of_keys(t: np.ndarray) -> np.ndarray:
    top = t.max(1, initial=-np.inf)
    return np.where(np.isneginf(top), 0.0, top)


def weight_of_keys(t: np.ndarray) -> np.ndarray:
    """The sum over keys alone, relative to their own maximum: a far larger sink would leave nothing of it."""
    return np.exp(t - top_of_keys(t)[:, None]).sum(1)


@dataclass
class Inner:
    """The gradient at the end of the score chain, g [sq, sk], delta [sq], and how far they may be off."""

    g: np.ndarray
    g_off: np.ndarray
    delta: np.ndarray
    delta_off: np.ndarray


def backward(row: Row, v: np.ndarray, z: np.ndarray, do: np.ndarray, dlse: np.ndarray) -> Inner:
    """do [sq, Dv], dlse [sq]."""
    delta = (do * row.o).sum(1) - dlse
    dp, magnitude = do @ v.T, np.abs(do) @ np.abs(v).T
    g = row.p * (z * dp - delta[:, None])
    delta_magnitude = (row.p * z * magnitude).sum(1) + np.abs(dlse)
    delta_off = (row.p * z * row.p_off * magnitude).sum(1) + ROUNDING * delta_magnitude
    g_off = row.p * (row.p_off * (z * magnitude + delta_magnitude[:, None]) + delta_off[:, None])
    return Inner(g, g_off, delta, delta_off)
