"""Cheats of kind A: wrong answers that a comparison might let through. Each changes one thing of the honest child."""

from __future__ import annotations

import numpy as np
from base import F32, Call, Honest, narrowed, rounded, truncated, visible

Outputs = dict[str, np.ndarray]


class Changed(Honest):
    """Computes honestly, then changes the answer."""

    def change(self, call: Call, out: Outputs) -> None:
        raise NotImplementedError

    def compute(self, call: Call) -> Outputs:
        out = super().compute(call)
        self.change(call, out)
        return out


class MoreExact(Honest):
    """Declares that P is rounded to the element type, and computes in f32 from end to end: another kernel than the declared one."""

    arithmetic = {"name": "flash"}


class Zeros(Changed):
    """O is 0 everywhere."""

    def change(self, call: Call, out: Outputs) -> None:
        out["o"][...] = 0


class Constant(Changed):
    """Every element of O is the mean of V."""

    def change(self, call: Call, out: Outputs) -> None:
        out["o"][...] = call.x["v"].mean()


class MeanOfV(Changed):
    """Attention as if all scores were equal."""

    def change(self, call: Call, out: Outputs) -> None:
        v = call.x["v"].mean(axis=1, keepdims=True)
        out["o"][...] = np.repeat(v, out["o"].shape[2] // v.shape[2], axis=2)


class CopyOfV(Changed):
    """O is V itself."""

    def change(self, call: Call, out: Outputs) -> None:
        if out["o"].shape == call.x["v"].shape:
            out["o"][...] = call.x["v"]


class OtherHead(Changed):
    """Head 0 has the answer of head 1."""

    def change(self, call: Call, out: Outputs) -> None:
        out["o"][:, :, 0] = out["o"][:, :, -1]


class AllNan(Changed):
    """Every output is NaN, which a comparison may skip."""

    def change(self, call: Call, out: Outputs) -> None:
        for x in out.values():
            x[...] = np.nan


class AllInfinite(Changed):
    """Every element of O is infinite."""

    def change(self, call: Call, out: Outputs) -> None:
        out["o"][...] = np.inf


class OneElement(Changed):
    """One element of O is off by 0.4 %."""

    def change(self, call: Call, out: Outputs) -> None:
        out["o"] = np.ascontiguousarray(out["o"])
        flat = out["o"].reshape(-1)
        flat[np.abs(flat).argmax()] *= F32(1.004)


class FivePercent(Changed):
    """Every twentieth element of O is off by 0.5 %."""

    def change(self, call: Call, out: Outputs) -> None:
        out["o"] = np.ascontiguousarray(out["o"])
        out["o"].reshape(-1)[::20] *= F32(1.005)


class FirstTile(Honest):
    """Writes only the first 16 rows."""

    def store(self, call: Call, out: Outputs) -> None:
        call.raw["o"][:, :16] = narrowed(out["o"], call.dtype)[:, :16]
        call.raw["lse"][...] = out["lse"]


class SkipsEmptyRows(Honest):
    """Does not write rows of O without a key: memory of the pool is 0 anyway."""

    def store(self, call: Call, out: Outputs) -> None:
        seen = visible(call.case, call.x["q"].shape[1], call.x["k"].shape[1]).any(axis=1)
        call.raw["lse"][...] = out["lse"]
        call.raw["o"][:, seen] = narrowed(out["o"], call.dtype)[:, seen]


class AddsToOutputs(Honest):
    """Adds its partial sums to what the outputs hold, as atomics do that nobody has zeroed memory for."""

    def store(self, call: Call, out: Outputs) -> None:
        for name in call.outputs:
            call.raw[name][...] += narrowed(out[name], call.entry[name]["dtype"])


class Bf16Operands(Honest):
    """An f32 problem by bf16 products, which it declares."""

    arithmetic = {"name": "amx-bf16"}

    def heads_first(self, call: Call) -> tuple[np.ndarray, ...]:
        q, k, v = super().heads_first(call)
        return tuple(rounded(x, "bf16") for x in (q, k, v))

    def softmax(self, call: Call, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p, lse = super().softmax(call, t)
        return rounded(p, "bf16"), lse


class Tf32Operands(Bf16Operands):
    """An f32 problem by one tf32 product each, which it declares."""

    arithmetic = {"name": "triton"}

    def heads_first(self, call: Call) -> tuple[np.ndarray, ...]:
        return tuple(truncated(x, "f16") for x in Honest.heads_first(self, call))  # the same ten bits

    def softmax(self, call: Call, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p, lse = Honest.softmax(self, call, t)
        return truncated(p, "f16"), lse


class F16Sums(Honest):
    """P V is added up in f16, which it declares."""

    arithmetic = {"name": "mma-sm80", "accumulator_pv": "f16"}

    def compute(self, call: Call) -> Outputs:
        q, k, v = self.heads_first(call)
        t, _ = self.scores(call, q, k)
        p, lse = self.softmax(call, t)
        top = np.exp(lse)[..., None, None] if t.shape[-1] == 0 else np.exp(t.max(axis=-1) - lse)[..., None]
        e = (p / np.maximum(top, F32(1e-30))).astype(np.float16)
        sums = np.zeros((*p.shape[:-1], v.shape[-1]), np.float16)
        for j in range(0, v.shape[-2], 8):
            sums += (e[..., j : j + 8].astype(F32) @ v[..., j : j + 8, :]).astype(np.float16)
        return {"o": (sums.astype(F32) * top).swapaxes(1, 2), "lse": lse}


class Bf16Scores(Honest):
    """Scores are rounded to bf16 before the softmax, which it declares."""

    arithmetic = {"name": "triton", "scores": "bf16"}

    def scores(self, call: Call, q: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        t, slope = super().scores(call, q, k)
        return rounded(t, "bf16"), slope


class IgnoresSoftcap(Honest):
    def scores(self, call: Call, q: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        call.case.pop("softcap", None)
        return super().scores(call, q, k)


class IgnoresAlibi(Honest):
    def scores(self, call: Call, q: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        call.x.pop("alibi_slopes", None)
        return super().scores(call, q, k)


class IgnoresWindow(Honest):
    """Takes a window for a causal mask."""

    def scores(self, call: Call, q: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if call.case.get("mask", {}).get("type") == "window":
            call.case["mask"] = {**call.case["mask"], "left": -1}
        return super().scores(call, q, k)


class IgnoresDlse(Honest):
    def gradients(self, call: Call, *rest: np.ndarray) -> Outputs:
        call.x.pop("dlse", None)
        return super().gradients(call, *rest)


class IgnoresScale(Honest):
    """Takes the usual scale, whatever the call says."""

    def scale(self, call: Call) -> np.float32:
        return F32(call.x["q"].shape[-1] ** -0.5)
