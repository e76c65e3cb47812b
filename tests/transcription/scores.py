"""The chain from products of q and k to final scores, for one head of one sequence, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from expression_values import Value
from expressions import Evaluation, Surroundings, evaluate
from key_lists import times_named
from masks import by_bits, by_position, of_lists
from rules import changed
from sequences import Sequence
from stored import Arrays

Case = dict[str, Any]
ROUNDING = 2.0**-52


@dataclass
class ScoreMod:
    """An evaluated score_mod: its score, whose gradient is wanted, and the gradients of buffers, which it adds to."""

    score: Value
    evaluation: Evaluation
    gradients: Arrays

    def back(self, g: np.ndarray) -> np.ndarray:
        self.evaluation.back(g)
        return np.broadcast_to(self.score.gradient_or_zero(), g.shape)


@dataclass
class Scores:
    """All are [sq, sk]: final scores `t`, -inf where hidden, `doubt`, what float64 may have cost each, and what the way back needs."""

    t: np.ndarray
    doubt: np.ndarray
    softcap_slope: np.ndarray
    softcap_near_one: float = 0.0  # the slope is a difference of numbers near 1: what its rounding needs
    score_mod: ScoreMod | None = None
    magnitudes: ScoreMod | None = None

    def back(self, g: np.ndarray, g_off: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """From the gradient at the end of the chain, and what it may be off, to those of dS. Gradients of buffers stay on the way."""
        g_off = g_off + np.abs(g) * (self.doubt + 1e-12)
        if self.score_mod and self.magnitudes:
            hidden = np.isneginf(self.t)
            g = self.score_mod.back(np.where(hidden, 0.0, g))
            g_off = self.magnitudes.back(np.where(hidden, 0.0, g_off))
        return g * self.softcap_slope, g_off * (self.softcap_slope + self.softcap_near_one)


def scale_of(case: Case) -> float:
    return float(case.get("scale", 1 / np.sqrt(case.get("head_dim", 64))))


def buffers_of(case: Case, t: Arrays) -> Arrays:
    """By name. A buffer without axes is stored with one."""
    return {name: t[f"buffer_{n}"].reshape(buffer["shape"]) for n, (name, buffer) in enumerate(case.get("buffers", {}).items())}


def gradients_wanted(case: Case, buffers: Arrays) -> Arrays:
    return {name: np.zeros(a.shape) for name, a in buffers.items() if a.dtype.kind == "f" and case["buffers"][name].get("grad", True)}


def head_scores(case: Case, t: Arrays, at: Sequence, h: int, q: np.ndarray, k: np.ndarray) -> Scores:
    """q [sq, D], k [sk, D] of query head h and its KV head."""
    s = scale_of(case) * (q @ k.T)
    doubt = 8 * ROUNDING * abs(scale_of(case)) * (np.abs(q) @ np.abs(k).T)
    scores = Scores(s, doubt, np.ones_like(s))
    late = changed("softcap_after_bias")
    if not late:
        _softcap(case, scores)
    names = _names(at, h)
    buffers = buffers_of(case, t)
    if "score_mod" in case:
        _score_mod(case, scores, names, buffers)
    _biases(case, t, at, h, scores)
    if late:
        _softcap(case, scores)
    scores.t = np.where(visible_pairs(case, t, at, h, names, buffers), scores.t, -np.inf)
    if "topk_indices" in t:
        _of_lists(scores, times_named(case, t, at))
    return scores


def _of_lists(scores: Scores, times: np.ndarray) -> None:
    """exp(S) n is exp(S + log n)."""
    more = np.log(np.maximum(times, 1))
    scores.t = np.where(times > 0, scores.t + more, -np.inf)
    scores.doubt = scores.doubt + 2 * ROUNDING * more


def _softcap(case: Case, scores: Scores) -> None:
    c = float(case.get("softcap", 0))
    if c > 0:
        th = np.tanh(scores.t / c)
        scores.t, scores.softcap_slope, scores.softcap_near_one = c * th, 1 - th * th, 2.0**-10
        scores.doubt = scores.doubt * scores.softcap_slope + 4 * ROUNDING * np.abs(scores.t)


def _names(at: Sequence, h: int) -> dict[str, Value]:
    known = {"b": at.b, "h": h, "seqlen_q": at.sq, "seqlen_k": at.sk}
    names = {name: Value("int", np.asarray(n)) for name, n in known.items()}
    names["q_idx"] = Value("int", np.arange(at.sq)[:, None])
    names["kv_idx"] = Value("int", np.arange(at.sk)[None, :])
    return names


def _score_mod(case: Case, scores: Scores, names: dict[str, Value], buffers: Arrays) -> None:
    worst = np.abs(scores.t)
    before, shifted = scores.t, scores.t + scores.doubt + 2 * ROUNDING * worst
    scores.score_mod, scores.t = _evaluated(case, before, names, buffers, False)
    scores.magnitudes, other = _evaluated(case, shifted, names, buffers, True)  # what roundings before it come to
    with np.errstate(invalid="ignore"):
        moved = np.abs(other - scores.t)
    size = np.where(np.isfinite(scores.t), np.abs(scores.t) + worst, 0.0)
    scores.doubt = np.where(np.isfinite(moved), moved, 0.0) + 32 * ROUNDING * size


def _evaluated(case: Case, score: np.ndarray, names: dict[str, Value], buffers: Arrays, magnitudes: bool) -> tuple[ScoreMod, np.ndarray]:
    value, gradients = Value("float", score), gradients_wanted(case, buffers)
    around = Surroundings({**names, "score": value}, buffers, gradients)
    evaluation = evaluate(case["score_mod"], around, magnitudes)
    result = np.broadcast_to(np.asarray(evaluation.value.array, np.float64), score.shape)
    return ScoreMod(value, evaluation, gradients), result


def _biases(case: Case, t: Arrays, at: Sequence, h: int, scores: Scores) -> None:
    if "alibi_slopes" in t:
        slopes = t["alibi_slopes"]
        shift = 0 if changed("alibi_from_the_start") else at.sk - at.sq
        distance = np.abs(np.arange(at.sq)[:, None] + shift - np.arange(at.sk)[None, :])
        bias = (slopes[h] if slopes.ndim == 1 else slopes[at.b, h]) * distance
        scores.t = scores.t - bias
        scores.doubt = scores.doubt + 2 * ROUNDING * np.abs(bias)
    if "bias" in t:
        bias = bias_of(t["bias"], at, h)
        scores.t = scores.t + bias
        scores.doubt = scores.doubt + 2 * ROUNDING * np.where(np.isfinite(bias), np.abs(bias), 0.0)


def bias_of(bias: np.ndarray, at: Sequence, h: int) -> np.ndarray:
    """A view [sq or 1, sk] of a bias, or of its gradient."""
    b = at.b if bias.shape[0] > 1 else 0
    head = h if bias.shape[1] > 1 else 0
    rows = slice(0, at.sq) if bias.shape[2] > 1 else slice(0, 1)
    return bias[b, head, rows, : at.sk]


def visible_pairs(case: Case, t: Arrays, at: Sequence, h: int, names: dict[str, Value], buffers: Arrays) -> np.ndarray:
    """What no mask hides: [sq, sk]."""
    visible = by_position(case, at.sq, at.sk)
    if "mask_bits" in t:
        visible &= by_bits(t, at.b, at.sq, at.sk)
    asked = np.ones_like(visible)
    if "kv_num_blocks" in t:
        listed, full = of_lists(case, t, at.b, h, at.sq, at.sk)
        visible &= listed
        asked = ~full
    if "mask_mod" in case:
        holds = evaluate(case["mask_mod"], Surroundings(names, buffers)).value.array != 0
        visible &= holds | ~asked
    return visible
