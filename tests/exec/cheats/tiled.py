"""The other honest child: as a Triton kernel would do it. Tiles of queries and keys, a running maximum and sum, f32 accumulators,
P and dS rounded to the element type before their products, a backward that makes P again from the LSE."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from base import F32, Call, Honest, rounded, visible

BLOCK_M, BLOCK_N = 32, 16
LOG2E = F32(math.log2(math.e))


class Tiled(Honest):
    arithmetic = {"name": "triton", "block_n": BLOCK_N}

    def compute(self, call: Call) -> dict[str, np.ndarray]:
        q, k, v = self.heads_first(call)
        out = {"o": np.zeros((*q.shape[:-1], v.shape[-1]), F32), "lse": np.zeros(q.shape[:-1], F32)}
        with np.errstate(all="ignore"):
            for m in range(0, q.shape[2], BLOCK_M):
                rows = slice(m, min(m + BLOCK_M, q.shape[2]))
                out["o"][:, :, rows], out["lse"][:, :, rows] = self.forward_tile(call, rows, q, k, v)
            if call.backward:
                o = rounded(out["o"], call.dtype)
                out.update(self.backward_tiles(call, q, k, v, o, out["lse"]))
        out["o"] = out["o"].swapaxes(1, 2)
        return out

    def tile(self, call: Call, rows: slice, keys: slice, q: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Logits of a tile and the derivative of the softcap there."""
        t = (q[:, :, rows] @ k[:, :, keys].swapaxes(-1, -2)) * self.scale(call)
        slope, cap = np.ones_like(t), F32(call.case.get("softcap", 0))
        if cap:
            bent = np.tanh(t / cap)
            t, slope = bent * cap, 1 - bent * bent
        sq, sk = q.shape[2], k.shape[2]
        if "alibi_slopes" in call.x:
            away = np.abs(np.arange(sq)[rows, None] + (sk - sq) - np.arange(sk)[keys]).astype(F32)
            t = t - np.atleast_2d(call.x["alibi_slopes"])[..., None, None] * away
        return np.where(visible(call.case, sq, sk)[rows, keys], t, F32(-np.inf)), slope

    def forward_tile(self, call: Call, rows: slice, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> tuple[Any, Any]:
        shape = q[:, :, rows].shape[:-1]
        top, total, acc = np.full(shape, -np.inf, F32), np.zeros(shape, F32), np.zeros((*shape, v.shape[-1]), F32)
        for n in range(0, k.shape[2], BLOCK_N):
            keys = slice(n, min(n + BLOCK_N, k.shape[2]))
            t, _ = self.tile(call, rows, keys, q, k)
            new = np.maximum(top, t.max(axis=-1))
            safe = np.where(np.isneginf(new), 0, new)
            p = np.exp2((t - safe[..., None]) * LOG2E)
            factor = np.exp2((top - safe) * LOG2E)
            total = total * factor + p.sum(axis=-1)
            acc = acc * factor[..., None] + rounded(p, call.dtype) @ v[:, :, keys]
            top = new
        empty = total == 0
        lse = np.where(empty, F32(call.case.get("empty_lse", "inf")), top + np.log(np.where(empty, 1, total)))
        return acc / np.where(empty, 1, total)[..., None], lse

    def backward_tiles(self, call: Call, q: np.ndarray, k: np.ndarray, v: np.ndarray, o: np.ndarray, lse: np.ndarray) -> dict[str, np.ndarray]:
        """A pass over tiles of keys: dK and dV stay in accumulators, dQ is added to."""
        do = call.x["do"].swapaxes(1, 2)
        delta = (do * o).sum(axis=-1) - call.x.get("dlse", F32(0))
        dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
        for n in range(0, k.shape[2], BLOCK_N):
            keys = slice(n, min(n + BLOCK_N, k.shape[2]))
            for m in range(0, q.shape[2], BLOCK_M):
                rows = slice(m, min(m + BLOCK_M, q.shape[2]))
                t, slope = self.tile(call, rows, keys, q, k)
                p = np.where(np.isneginf(t), 0, np.exp2((t - lse[:, :, rows, None]) * LOG2E)).astype(F32)
                dv[:, :, keys] += rounded(p, call.dtype).swapaxes(-1, -2) @ do[:, :, rows]
                dp = do[:, :, rows] @ v[:, :, keys].swapaxes(-1, -2)
                ds = rounded(p * (dp - delta[:, :, rows, None]) * slope, call.dtype)
                dk[:, :, keys] += ds.swapaxes(-1, -2) @ q[:, :, rows]
                dq[:, :, rows] += ds @ k[:, :, keys]
        heads, scale = call.x["k"].shape[2], self.scale(call)
        summed = lambda x: x.reshape(x.shape[0], heads, x.shape[1] // heads, *x.shape[2:]).sum(axis=2).swapaxes(1, 2)  # noqa: E731
        return {"dq": (dq * scale).swapaxes(1, 2), "dk": summed(dk * scale), "dv": summed(dv)}
