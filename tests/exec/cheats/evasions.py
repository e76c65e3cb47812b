"""Cheats of kind A, continued: wrong answers that a run might not ask for, or not ask for again."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from answers import Bf16Scores, Changed, Outputs
from base import F32, Call, Honest, narrowed, truncated


class NoMaximum(Honest):
    """Exponentials of the scores as they are: right while they are small."""

    def softmax(self, call: Call, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        e = np.exp(t)
        total = e.sum(axis=-1)
        lse = np.where(total == 0, F32(np.inf), np.log(total))
        return e / np.where(total == 0, 1, total)[..., None], lse.astype(F32)


class ClampedScores(Honest):
    """Scores beyond 20 count as 20: N(0, 1) never has them."""

    def scores(self, call: Call, q: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        t, slope = super().scores(call, q, k)
        return np.where(np.isneginf(t), t, np.clip(t, -20, 20)), slope


class FirstTileMaximum(Honest):
    """The maximum of the first 16 keys serves for all, even where a window hides them."""

    def softmax(self, call: Call, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        top = t[..., :16].max(axis=-1, initial=-1e30)[..., None]
        p, lse = NoMaximum.softmax(self, call, t - top)
        return p, np.where(np.isinf(lse), lse, lse + top[..., 0])


class Multiples(Changed):
    """Right for multiples of 32 keys; the last, ragged tile is left out."""

    def scores(self, call: Call, q: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        t, slope = super().scores(call, q, k)
        t[..., t.shape[-1] // 32 * 32 :] = -np.inf
        return t, slope

    def change(self, call: Call, out: Outputs) -> None:
        pass


class KnownShapes(Changed):
    """Right for the shapes that are asked for by name, 64 queries and 64 keys."""

    def change(self, call: Call, out: Outputs) -> None:
        if call.x["q"].shape[1] != 64 or call.x["k"].shape[1] != 64:
            out["o"] *= F32(1.5)


class WrongLater(Changed):
    """Right in the first two calls, which a check makes, and wrong from then on."""

    def change(self, call: Call, out: Outputs) -> None:
        if self.n_calls > 2:
            out["o"] *= F32(1.5)


class WrongLaterInAll(Changed):
    """Likewise, and it counts over all of its processes, in a file."""

    def change(self, call: Call, out: Outputs) -> None:
        with open("/tmp/fa-cheat-calls", "a+") as f:
            f.write("x")
            if f.tell() > 2:
                out["o"] *= F32(1.5)


class WrongEverySeventh(Changed):
    def change(self, call: Call, out: Outputs) -> None:
        if self.n_calls % 7 == 0:
            out["o"] *= F32(1.5)


class Racy(Changed):
    """The last bits depend on chance, within every bound."""

    def change(self, call: Call, out: Outputs) -> None:
        out["o"] *= F32(1 + 2**-23 * (os.urandom(1)[0] % 8))


class RacyGradient(Changed):
    """Likewise in dQ, which it declares as added up in any order."""

    arithmetic = {"name": "torch-math", "dq_atomic": True}

    def change(self, call: Call, out: Outputs) -> None:
        if "dq" in out:
            out["dq"] *= F32(1 + 2**-22 * (os.urandom(1)[0] % 8))


class ReadsPast(Honest):
    """Adds 0 times what stands behind K: right where that is 0."""

    def scores(self, call: Call, q: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        t, slope = super().scores(call, q, k)
        end = call.entry["k"]["offset"] + call.raw["k"].nbytes
        behind = np.frombuffer(call.memory, call.raw["k"].dtype, 1, end).astype(F32)
        return t + 0 * behind, slope


class WritesPast(Honest):
    """Writes one element past the end of O."""

    def store(self, call: Call, out: Outputs) -> None:
        super().store(call, out)
        end = call.entry["o"]["offset"] + call.raw["o"].nbytes
        call.memory[end] ^= 1


class WritesInput(Changed):
    """Zeroes V and answers 0, so that whoever computes the answer from it afterwards agrees."""

    def change(self, call: Call, out: Outputs) -> None:
        call.raw["v"][...] = 0
        out["o"][...] = 0


class CheapensInput(Honest):
    """Right answers; it leaves K scaled by half, so that the next call is easier."""

    def store(self, call: Call, out: Outputs) -> None:
        super().store(call, out)
        call.raw["k"][...] = narrowed(call.x["k"] / 2, call.dtype)


class RefusesEverySecond(Honest):
    """Finds that it cannot do every second case, when asked."""

    asked = 0

    def hello(self) -> dict[str, Any]:
        return {**super().hello(), "supports": True}

    def supports(self, case: dict[str, Any]) -> dict[str, Any]:
        self.asked += 1
        return {"passes": [], "reason": "not today"} if self.asked % 2 == 0 else {"passes": self.passes}


class RefusesWide(Honest):
    """Wrong for head dims above 32, so it says "unsupported" when such a call comes."""

    def run(self, call: Call) -> dict[str, Any]:
        if call.x["q"].shape[-1] > 32:
            return {"state": "unsupported", "text": "no such head dim"}
        return super().run(call)


class OtherClaims(Honest):
    """Claims other limits in each of its hellos."""

    def hello(self) -> dict[str, Any]:
        return {**super().hello(), "limits": {"head_dim": {"max": 64 + os.urandom(1)[0]}}}


class TruncatedP(Honest):
    """P is cut instead of rounded, and it declares the widest set of bounds."""

    arithmetic = {"name": "recorded", "p_rounding": "truncate"}

    def softmax(self, call: Call, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p, lse = super().softmax(call, t)
        top = p.max(axis=-1, keepdims=True)
        return truncated(p / np.where(top == 0, 1, top), call.dtype) * top, lse


class ManySplits(Bf16Scores):
    """Scores in bf16 again, hidden behind a claim of a million splits with 16-bit partial results."""

    arithmetic = {"name": "recorded", "max_splits": 1000000, "partials": "bf16", "scores": "bf16", "p": "e5m2"}


class TruncatedTwice(TruncatedP):
    """Cuts P in the first two calls of a shape and is exact in the third, where odd statistics are tried again."""

    arithmetic = {"name": "mma-sm80"}
    seen: dict[str, int] = {}

    def softmax(self, call: Call, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n = self.seen[str(t.shape)] = self.seen.get(str(t.shape), 0) + 1
        return super().softmax(call, t) if n <= 2 else Honest.softmax(self, call, t)


class ForwardOnly(Honest):
    """Answers a backward case with the forward alone."""

    def run(self, call: Call) -> dict[str, Any]:
        out = self.compute(call)
        for name in ("o", "lse"):
            call.raw[name][...] = narrowed(out[name], call.entry[name]["dtype"])
        return {"state": "ok", "outputs": ["o", "lse"]}


class LseOnly(Honest):
    """Delivers the LSE alone."""

    def run(self, call: Call) -> dict[str, Any]:
        call.raw["lse"][...] = self.compute(call)["lse"]
        return {"state": "ok", "outputs": ["lse"]}


class SkipsTiles(Honest):
    """Leaves out tiles of 16 keys whose scores all lie far below the row's maximum."""

    gap = 8

    def scores(self, call: Call, q: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        t, slope = super().scores(call, q, k)
        top = t.max(axis=-1, initial=-np.inf)
        for n in range(0, t.shape[-1], 16):
            low = t[..., n : n + 16].max(axis=-1) < top - self.gap
            t[..., n : n + 16][low] = -np.inf
        return t, slope


class SkipsTiles12(SkipsTiles):
    """Likewise, further below."""

    gap = 12
