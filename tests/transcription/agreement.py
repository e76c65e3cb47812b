"""Holds one golden against the transcription, element by element."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from given import contradictions
from sequences import has_padded_lse
from stored import Golden
from whole import compute

RELATIVE = 1e-11
TINY = 1e-300  # what is left where float64 underflows


@dataclass
class Outcome:
    """How one golden came out: the largest error in units of what is allowed, how many elements there were, and what disagrees."""

    worst: float
    elements: int
    wrong: list[str]


def ratios(got: np.ndarray, want: np.ndarray, off: np.ndarray, may_be_nan: bool) -> np.ndarray:
    """Errors in units of what is allowed; infinity where one side is not finite and the other is another number."""
    with np.errstate(invalid="ignore", over="ignore"):
        ratio = np.abs(got - want) / (off + RELATIVE * np.abs(want) + TINY)
    ratio = np.where(np.isfinite(ratio) & np.isfinite(want), ratio, np.inf)
    same = (got == want) | (np.isnan(got) & np.isnan(want) & may_be_nan)
    return np.where(same, 0.0, ratio)


def hold(golden: Golden) -> Outcome:
    """Every output that the golden has must be computed, in its shape, and agree."""
    got, off = compute(golden)
    outcome = Outcome(0.0, 0, contradictions(golden.case, golden.inputs))
    for name, want in golden.want.items():
        if name not in got or got[name].shape != want.shape:
            outcome.wrong.append(f"{name} is {got[name].shape if name in got else 'not computed'}, not {want.shape}")
            continue
        # Slots of a cache without a key hold NaN, and so does padding.
        ratio = ratios(got[name], want, off[name], name.endswith("_after") or (name == "lse" and has_padded_lse(golden.case)))
        outcome.elements += want.size
        if ratio.size:
            outcome.worst = max(outcome.worst, float(ratio.max()))
        if (ratio > 1).any():
            at = np.unravel_index(ratio.argmax(), ratio.shape)
            where = [int(x) for x in at]
            how_many = f"{int((ratio > 1).sum())} of {want.size} elements"
            outcome.wrong.append(f"{name}{where} is {got[name][at]:.17g}, in the golden {want[at]:.17g}; {how_many}")
    return outcome
