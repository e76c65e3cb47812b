"""A whole call: every sequence and head, and all outputs in the shapes that goldens have."""

from __future__ import annotations

import numpy as np
from attention import Inner, Row, backward, forward
from cache import append, entries, rotated_queries
from key_lists import times_named
from merge import merged
from philox import kept_flash, kept_memeff
from rules import changed
from scores import Scores, bias_of, buffers_of, gradients_wanted, head_scores, scale_of
from sequences import Case, Index, Sequence, has_padded_lse, longest, sequences
from stored import Arrays, Golden, to_type

EMPTY = {"+inf": np.inf, "-inf": -np.inf, "0": 0.0}


class Call:
    """Outputs that are being filled: `got`, and how far float64 may be off in each element: `off`."""

    def __init__(self, golden: Golden):
        self.case: Case = golden.case
        self.t: Arrays = dict(golden.inputs)
        self.got: Arrays = {}
        self.off: Arrays = {}
        self.backward = "do" in self.t and self.case.get("backward", True)
        self.family = self.case.get("family", "flash")

    def make(self, name: str, shape: tuple[int, ...]) -> None:
        self.got[name], self.off[name] = np.zeros(shape), np.zeros(shape)

    def prepare(self) -> None:
        t = self.t
        hq = t["q"].shape[-2]
        self.make("o", (*t["q"].shape[:-1], t["v"].shape[-1]))
        self.make("lse", (*t["q"].shape[:-3], hq, t["q"].shape[-3]))
        if has_padded_lse(self.case):
            lengths = np.diff(t["cu_seqlens_q"])
            self.make("lse", (lengths.size, hq, int(lengths.max())))
            self.got["lse"][:] = np.nan  # behind a sequence's rows
        if not self.backward:
            return
        for gradient, of in (("dq", "q"), ("dk", "k"), ("dv", "v"), ("dbias", "bias"), ("dsinks", "sinks")):
            if of in t:
                self.make(gradient, t[of].shape)
        for name, zeros in gradients_wanted(self.case, buffers_of(self.case, t)).items():
            self.make(self.buffer_gradient(name), zeros.shape or (1,))

    def buffer_gradient(self, name: str) -> str:
        return f"dbuffer_{list(self.case['buffers']).index(name)}"

    def run(self) -> tuple[Arrays, Arrays]:
        if self.family == "merge":
            return merged(self.case, self.t)
        over_cache = "kvcache" in self.case
        if over_cache:
            after = append(self.case, self.t)
            self.got.update(after)
            self.off.update({name: np.zeros(a.shape) for name, a in after.items()})
            self.t.update(q=rotated_queries(self.case, self.t), k=to_type(after["k_after"], self.case["dtype"]), v=after["v_after"])
        self.prepare()
        for at in entries(self.case, self.t) if over_cache else sequences(self.case, self.t):
            for h in range(self.t["q"].shape[-2]):
                self.head(at, h)
        return self.got, self.off

    def head(self, at: Sequence, h: int) -> None:
        t = self.t
        heads = t["k"].shape[-2]
        kv = h % heads if changed("heads_interleaved") else h // (t["q"].shape[-2] // heads)
        q, k, v = t["q"][at.rows][:, h], t["k"][at.keys][:, kv], t["v"][at.keys][:, kv]
        if "topk_indices" in t:  # what no row names may be NaN
            named = times_named(self.case, t, at).any(0)[:, None]
            k, v = np.where(named, k, 0.0), np.where(named, v, 0.0)
        scores = head_scores(self.case, t, at, h, q, k)
        z = self.dropout(at, h)
        sinks = self.case.get("sinks")
        in_lse = sinks.get("in_lse", True) if isinstance(sinks, dict) else True
        sink = float(t["sinks"][h]) * (scale_of(self.case) if changed("sink_scaled") else 1.0) if "sinks" in t else -np.inf
        empty = EMPTY[self.case.get("empty_lse", "-inf" if self.family == "flex" else "+inf")]
        row = forward(scores.t, scores.doubt, v, z, sink, in_lse, empty)
        self.put("o", at.rows, h, row.o, row.o_off)
        self.got["lse"][at.lse][h], self.off["lse"][at.lse][h] = row.lse, row.lse_off
        if self.backward:
            do = t["do"][at.rows][:, h]
            dlse = t["dlse"][at.lse][h] if "dlse" in t else np.zeros(at.sq)
            inner = backward(row, v, z, do, dlse)
            self.gradients(at, h, kv, q, k, do, z, row, scores, inner)
            self.of_sink(h, row, inner, dlse)

    def dropout(self, at: Sequence, h: int) -> np.ndarray:
        """Z [sq, sk]."""
        if "dropout" not in self.case:
            return np.ones((at.sq, at.sk))
        asked = self.case["dropout"]
        p, seed, offset = float(asked.get("p", 0)), int(asked.get("seed", 0)), int(asked.get("offset", 0))
        head = at.b * self.t["q"].shape[-2] + h
        if self.family == "memeff":
            sizes = longest(self.case, self.t)
            kept = kept_memeff(p, seed, offset + head * sizes[0] * sizes[1], at.sq, at.sk)
        else:
            kept = kept_flash(p, seed, offset, head, at.sq, at.sk)
        return np.where(kept, 1 / (1 - p), 0.0)

    def put(self, name: str, where: Index, h: int, value: np.ndarray, off: np.ndarray) -> None:
        """Adds [S, D] to the head's part of an output."""
        if name in self.got:
            self.got[name][where][:, h] += value
            self.off[name][where][:, h] += off

    def gradients(self, at: Sequence, h: int, kv: int, q: np.ndarray, k: np.ndarray, do: np.ndarray, z: np.ndarray,
                  row: Row, scores: Scores, inner: Inner) -> None:  # fmt: skip
        scale = scale_of(self.case)
        ds, ds_off = scores.back(inner.g, inner.g_off)
        self.put("dq", at.rows, h, scale * ds @ k, abs(scale) * ds_off @ np.abs(k))
        self.put("dk", at.keys, kv, scale * ds.T @ q, abs(scale) * ds_off.T @ np.abs(q))
        pz = row.p * z
        self.put("dv", at.keys, kv, pz.T @ do, (pz * row.p_off).T @ np.abs(do))
        for into, mod in ((self.got, scores.score_mod), (self.off, scores.magnitudes)):
            for name, gradient in mod.gradients.items() if mod else ():
                place = into[self.buffer_gradient(name)]
                place += gradient.reshape(place.shape)
        if "dbias" in self.got:
            for into, part in ((self.got, inner.g), (self.off, inner.g_off)):
                place = bias_of(into["dbias"], at, h)
                place += part if place.shape[0] == at.sq and into["dbias"].shape[2] > 1 else part.sum(0, keepdims=True)

    def of_sink(self, h: int, row: Row, inner: Inner, dlse: np.ndarray) -> None:
        if "dsinks" in self.got:
            delta = inner.delta + (dlse if changed("sink_gradient_without_dlse") else 0.0)
            self.got["dsinks"][h] -= (row.share * delta).sum()
            self.off["dsinks"][h] += (row.share * (inner.delta_off + np.abs(delta) * row.p_off.max(1, initial=1e-13))).sum()


def compute(golden: Golden) -> tuple[Arrays, Arrays]:
    with np.errstate(over="ignore", under="ignore"):
        return Call(golden).run()
