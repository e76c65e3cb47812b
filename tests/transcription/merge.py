"""Family merge: partial states put together, and the gradients that their parts get."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from rules import changed
from stored import Arrays

ROUNDING = 1e-13
Case = dict[str, Any]


def with_column(lse: np.ndarray) -> np.ndarray:
    """[..., B, H, S] to [..., B, S, H, 1], packed [..., H, total] to [..., total, H, 1]."""
    return np.swapaxes(lse, -1, -2)[..., None]


def merged(case: Case, t: Arrays) -> tuple[Arrays, Arrays]:
    """All outputs, and how far float64 may be off in each."""
    base_2 = case.get("merge", {}).get("base", "e") == "2" and not changed("merge_in_base_e")
    exp, log, unit = (np.exp2, np.log2, math.log(2)) if base_2 else (np.exp, np.log, 1.0)
    parts, empty = t["lse_parts"], ~np.isfinite(t["lse_parts"])
    assert not np.isnan(parts).any()
    parts = np.where(empty, -np.inf, parts)
    m = parts.max(0)
    m = np.where(np.isneginf(m), 0.0, m)
    with np.errstate(divide="ignore"):
        lse = m + log(exp(parts - m).sum(0))
    w = np.where(empty, 0.0, exp(parts - np.where(np.isneginf(lse), 0.0, lse)))
    column, alive = with_column(w), with_column(~empty)
    o_parts = np.where(alive, t["o_parts"], 0.0)
    o = (column * o_parts).sum(0)
    far = ROUNDING * (1 + np.where(np.isneginf(lse), 0.0, np.abs(lse)))
    far_parts = np.where(empty, 0.0, ROUNDING * (1 + np.abs(np.where(empty, 0.0, parts)) + np.abs(m)))
    got = {"o": o, "lse": lse}
    off = {"o": (column * with_column(far_parts) * np.abs(o_parts)).sum(0), "lse": far}
    if "do" in t:
        _gradients(t, got, off, w, with_column(far_parts), o_parts, 1.0 if changed("merge_gradient_without_ln_2") else unit)
    return got, off


def _gradients(t: Arrays, got: Arrays, off: Arrays, w: np.ndarray, far: np.ndarray, o_parts: np.ndarray, c: float) -> None:
    column, do = with_column(w), t["do"]
    dl = t.get("dlse", np.zeros(w.shape[1:]))
    got["do_parts"] = column * do
    off["do_parts"] = column * far * np.abs(do)
    product = (do * (o_parts - got["o"])).sum(-1, keepdims=True)
    magnitude = (np.abs(do) * (np.abs(o_parts) + (column * np.abs(o_parts)).sum(0))).sum(-1, keepdims=True)
    dl_parts = column * (with_column(dl) + c * product)
    dl_off = column * 4 * far * (np.abs(with_column(dl)) + magnitude)
    got["dlse_parts"] = np.swapaxes(dl_parts[..., 0], -1, -2)
    off["dlse_parts"] = np.swapaxes(dl_off[..., 0], -1, -2)
