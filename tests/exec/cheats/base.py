"""An honest child of protocol 2 in numpy. A cheat is a class that changes one thing of it (answers.py and its neighbours).

What a child must understand and answer: docs/reference/protocol.md. Plain attention, forward and backward, every score at once."""

from __future__ import annotations

import json
import math
import mmap
import os
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

F32 = np.float32
STORAGE = {"f16": np.float16, "bf16": np.uint16, "f32": np.float32, "i32": np.int32}


def widened(stored: np.ndarray, dtype: str) -> np.ndarray:
    """Stored elements as float32 (i32 stays what it is)."""
    if dtype == "bf16":
        return (stored.astype(np.uint32) << 16).view(F32)
    return np.array(stored) if dtype == "i32" else stored.astype(F32)


def narrowed(values: np.ndarray, dtype: str) -> np.ndarray:
    """float32 values as they are stored, rounded to nearest even."""
    if dtype != "bf16":
        return np.asarray(values).astype(STORAGE[dtype])
    bits = np.ascontiguousarray(values, F32).view(np.uint32)
    even = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(values), 0x7FC0, even).astype(np.uint16)


def rounded(values: np.ndarray, dtype: str) -> np.ndarray:
    """float32 values after a round trip through an element type."""
    return widened(narrowed(values, dtype), dtype)


def truncated(values: np.ndarray, dtype: str) -> np.ndarray:
    """float32 values cut to the bits of f16 or bf16 (normal numbers only)."""
    mask = np.uint32(0xFFFFE000 if dtype == "f16" else 0xFFFF0000)
    return (np.ascontiguousarray(values, F32).view(np.uint32) & mask).view(F32)


class Memory:
    """The shared region, mapped again when it has moved or grown."""

    def __init__(self) -> None:
        self.key, self.map = None, None

    def at(self, path: str, n_bytes: int) -> mmap.mmap:
        if self.key != (path, n_bytes):
            fd = os.open(path, os.O_RDWR)
            self.map, self.key = mmap.mmap(fd, n_bytes), (path, n_bytes)
            os.close(fd)
        return self.map


@dataclass
class Call:
    """One request: x has every input as float32, raw every tensor as it is stored, entry what the request says of it."""

    case: dict[str, Any]
    backward: bool
    memory: mmap.mmap
    entry: dict[str, dict[str, Any]]
    raw: dict[str, np.ndarray]
    x: dict[str, np.ndarray]
    dtype: str

    @property
    def outputs(self) -> list[str]:
        return [name for name, e in self.entry.items() if e["access"] == "write"]


def view(memory: mmap.mmap, entry: dict[str, Any]) -> np.ndarray:
    """A tensor where it lies."""
    kind = np.dtype(STORAGE[entry["dtype"]])
    if 0 in entry["shape"]:
        return np.empty(entry["shape"], kind)
    return np.ndarray(entry["shape"], kind, memory, entry["offset"], [s * kind.itemsize for s in entry["strides"]])


def call_of(request: dict[str, Any], memory: mmap.mmap) -> Call:
    entry = request["tensors"]
    raw = {name: view(memory, e) for name, e in entry.items()}
    x = {name: widened(raw[name], e["dtype"]) for name, e in entry.items() if e["access"] != "write"}
    return Call(request["case"], "backward" in request["passes"], memory, entry, raw, x, request["case"].get("dtype", "f16"))


def visible(case: dict[str, Any], sq: int, sk: int) -> np.ndarray:
    """[Sq, Sk]: which keys the mask leaves."""
    mask = case.get("mask", {})
    shift = 0 if mask.get("align") == "top_left" else sk - sq
    away = np.arange(sk)[None, :] - np.arange(sq)[:, None] - shift
    kind = mask.get("type", "none")
    left = min(mask.get("left", -1), sq + sk) if kind == "window" else -1
    right = {"causal": 0, "window": min(mask.get("right", -1), sq + sk)}.get(kind, -1)
    return ((right < 0) | (away <= right)) & ((left < 0) | (away >= -left))


class Honest:
    """Float32 throughout, rounded at the end."""

    arithmetic: dict[str, Any] = {"name": "torch-math"}
    features = ["causal", "window", "bottom_right", "gqa", "softcap", "alibi", "dlse", "deterministic"]
    dtypes = ["f16", "bf16", "f32"]
    passes = ["forward", "backward"]
    n_calls, request_id, region, argument = 0, 0, "", ""

    # ---- the protocol ----

    def hello(self) -> dict[str, Any]:
        return {"fa_exec": 2, "name": type(self).__name__, "families": ["flash"], "dtypes": self.dtypes,
                "features": self.features, "passes": self.passes, "arithmetic": self.arithmetic, "empty_o": "0",
                "lse": {"base": "e", "scaled": True, "empty": "as_case", "alibi": "distance"}}  # fmt: skip

    def supports(self, case: dict[str, Any]) -> dict[str, Any]:
        return {"passes": self.passes}

    def run(self, call: Call) -> dict[str, Any]:
        self.store(call, self.compute(call))
        return {"state": "ok"}

    def run_files(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"state": "unsupported", "text": "tensors in files"}

    def store(self, call: Call, out: dict[str, np.ndarray]) -> None:
        """Writes float32 values where the request wants them."""
        for name in call.outputs:
            call.raw[name][...] = narrowed(out[name], call.entry[name]["dtype"])

    # ---- attention ----

    def scale(self, call: Call) -> np.float32:
        return F32(call.case.get("scale", 1 / math.sqrt(call.x["q"].shape[-1])))

    def scores(self, call: Call, q: np.ndarray, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Logits [B, H, Sq, Sk], hidden ones -inf, and the derivative of the softcap."""
        t = (q @ k.swapaxes(-1, -2)) * self.scale(call)
        slope, cap = np.ones_like(t), call.case.get("softcap", 0)
        if cap:
            bent = np.tanh(t / F32(cap))
            t, slope = bent * F32(cap), 1 - bent * bent
        if "alibi_slopes" in call.x:
            slopes = np.atleast_2d(call.x["alibi_slopes"])[..., None, None]
            sq, sk = t.shape[-2:]
            t = t - slopes * np.abs(np.arange(sq)[:, None] + (sk - sq) - np.arange(sk)).astype(F32)
        return np.where(visible(call.case, *t.shape[-2:]), t, F32(-np.inf)), slope

    def softmax(self, call: Call, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """P [B, H, Sq, Sk] and LSE [B, H, Sq]."""
        top = t.max(axis=-1, initial=-np.inf)
        empty = np.isneginf(top)
        e = np.exp(t - np.where(empty, 0, top)[..., None])
        total = np.where(empty, 1, e.sum(axis=-1))
        lse = np.where(empty, F32(call.case.get("empty_lse", "inf")), np.where(empty, 0, top) + np.log(total))
        return e / total[..., None], lse.astype(F32)

    def heads_first(self, call: Call) -> tuple[np.ndarray, ...]:
        """q, k, v as [B, Hq, S, D]; grouped heads are repeated."""
        q, k, v = (call.x[n].swapaxes(1, 2) for n in ("q", "k", "v"))
        group = q.shape[1] // k.shape[1]
        return q, np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)

    def compute(self, call: Call) -> dict[str, np.ndarray]:
        """Every output of the call as float32, by its name."""
        with np.errstate(all="ignore"):
            q, k, v = self.heads_first(call)
            t, slope = self.scores(call, q, k)
            p, lse = self.softmax(call, t)
            out = {"o": (p @ v).swapaxes(1, 2), "lse": lse}
            if call.backward:
                out.update(self.gradients(call, q, k, v, p, slope))
            return out

    def gradients(self, call: Call, q: np.ndarray, k: np.ndarray, v: np.ndarray, p: np.ndarray, slope: np.ndarray) -> dict[str, np.ndarray]:
        do = call.x["do"].swapaxes(1, 2)
        dp = do @ v.swapaxes(-1, -2)
        delta = (p * dp).sum(axis=-1, keepdims=True) - (call.x["dlse"][..., None] if "dlse" in call.x else 0)
        ds = p * (dp - delta) * slope * self.scale(call)
        heads = call.x["k"].shape[2]
        summed = lambda x: x.reshape(x.shape[0], heads, x.shape[1] // heads, *x.shape[2:]).sum(axis=2).swapaxes(1, 2)  # noqa: E731
        return {"dq": (ds @ k).swapaxes(1, 2), "dk": summed(ds.swapaxes(-1, -2) @ q), "dv": summed(p.swapaxes(-1, -2) @ do)}


class Refused(Exception):
    """What the child says where an exploit has not worked, so that the verdict names the step that failed."""


def answer(child: Honest, memory: Memory, request: dict[str, Any]) -> dict[str, Any]:
    if request["type"] == "hello":
        return child.hello()
    if request["type"] == "supports":
        return child.supports(request["case"])
    child.n_calls += 1
    child.request_id, child.region = request["id"], request.get("memory", "")
    try:
        if not child.region:
            return child.run_files(request)
        return child.run(call_of(request, memory.at(request["memory"], request["bytes"])))
    except Refused as refused:
        return {"state": "rejected", "text": str(refused)}


def serve(child: Honest) -> None:
    memory = Memory()
    for line in sys.stdin:
        request = json.loads(line)
        sys.stdout.write(json.dumps({**answer(child, memory, request), "id": request["id"]}) + "\n")
        sys.stdout.flush()
