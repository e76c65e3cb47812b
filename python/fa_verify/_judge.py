"""judge: tensors that one already has."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fa_verify import _safetensors
from fa_verify._arrays import to_numpy
from fa_verify._case import Json
from fa_verify._check import _demand, _run
from fa_verify._dtypes import Array
from fa_verify._report import Report

_DTYPES = {"float16": "f16", "float32": "f32", "float64": "f64"}
_TOKENS = ("q", "k", "v", "o", "do", "dq", "dk", "dv")
Layout = Literal["bshd", "bhsd"]


def judge(
    *,
    q: Any,
    k: Any,
    v: Any,
    o: Any,
    lse: Any = None,
    do: Any = None,
    dq: Any = None,
    dk: Any = None,
    dv: Any = None,
    bias: Any = None,
    dbias: Any = None,
    causal: bool = False,
    window: tuple[int, int] | None = None,
    align: Literal["bottom_right", "top_left"] = "bottom_right",
    scale: float | None = None,
    softcap: float = 0,
    alibi_slopes: Any = None,
    cu_seqlens_q: Any = None,
    cu_seqlens_k: Any = None,
    seqused_k: Any = None,
    layout: Layout = "bshd",
    family: str | None = None,
    case: Json | None = None,
) -> Report:
    """Judges outputs that were computed already. Raises :class:`Mismatch`, whose text is the diagnosis.

    q [B, Sq, Hq, D], k [B, Sk, Hk, D], v [B, Sk, Hk, Dv], o, do, dq, dk, dv shaped alike; layout="bhsd" (PyTorch's):
    [B, H, S, D]. With cu_seqlens_q and cu_seqlens_k all are packed, [total, H, D]. lse [B, Hq, Sq] or [Hq, total]: natural
    logarithm, scaled. Arrays of numpy, torch, jax or cupy, all f16, bf16 or f32; lse f32. window: (left, right), -1: no bound.
    Gradients need do, and are judged from the o and lse given here. case: more keys of a case file.

    >>> import fa_verify, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> q, k, v = (rng.standard_normal((1, 40, 2, 64), np.float32) for _ in range(3))
    >>> s = np.einsum("bqhd,bkhd->bhqk", q, k) / 8
    >>> p = np.exp(s - s.max(-1, keepdims=True))
    >>> o = np.einsum("bhqk,bkhd->bqhd", p / p.sum(-1, keepdims=True), v)
    >>> print(fa_verify.judge(q=q, k=k, v=v, o=o))
    passed 1, failed 0, skipped 0 of 1
    """
    given = {"q": q, "k": k, "v": v, "o": o, "lse": lse, "do": do, "dq": dq, "dk": dk, "dv": dv, "bias": bias, "dbias": dbias}
    tensors = {name: _stored(name, value, layout) for name, value in given.items() if value is not None}
    lengths = {"cu_seqlens_q": cu_seqlens_q, "cu_seqlens_k": cu_seqlens_k, "seqused_k": seqused_k}
    described = {
        **_shape(tensors, {name: _integers(value) for name, value in lengths.items() if value is not None}),
        **_mask(causal, window, align),
        **({"softcap": softcap} if softcap else {}),
        **({} if scale is None else {"scale": scale}),
        **({} if alibi_slopes is None else {"alibi": {"slopes": _floats(alibi_slopes)}}),
        **(case or {}),
    }
    described["family"] = family or described.get("family") or _family(described)
    return _demand(_judge(described, tensors), "judge")


def _judge(case: Json, tensors: dict[str, tuple[str, Array]]) -> Report:
    with tempfile.TemporaryDirectory(prefix="fa-verify-") as folder:
        path = Path(folder) / "recorded.safetensors"
        _safetensors.save(path, {f"run/{name}": x for name, x in tensors.items()}, {"run": json.dumps(case)})
        return _run(["check", str(path)])


def _stored(name: str, value: Any, layout: Layout) -> tuple[str, Array]:
    array, is_bf16 = to_numpy(value)
    if name in _TOKENS and layout == "bhsd" and array.ndim == 4:
        array = array.transpose(0, 2, 1, 3)
    if not is_bf16 and array.dtype.name not in _DTYPES:
        raise TypeError(f"{name} is {array.dtype}; f16, bf16 or f32 is needed")
    if name in ("lse", "do") and array.dtype == np.float64:
        array = array.astype(np.float32)
    return ("bf16" if is_bf16 else _DTYPES[array.dtype.name]), array


def _integers(value: Any) -> list[int]:
    return [int(x) for x in to_numpy(value)[0].ravel()]


def _floats(value: Any) -> Any:
    return to_numpy(value)[0].astype(float).tolist()


def _shape(tensors: dict[str, tuple[str, Array]], lengths: Json) -> Json:
    (dtype, q), (_, k), (_, v) = (tensors[name] for name in "qkv")
    packed = "cu_seqlens_q" in lengths
    if q.ndim != (3 if packed else 4):
        raise ValueError(f"q has {q.ndim} axes; {'[total, H, D]' if packed else '[B, S, H, D]'} is needed")
    case = {"dtype": dtype, "heads_q": q.shape[-2], "heads_kv": k.shape[-2], "head_dim": q.shape[-1], "head_dim_v": v.shape[-1], **lengths}
    return case if packed else {**case, "batch": q.shape[0], "seqlen_q": q.shape[1], "seqlen_k": k.shape[1]}


def _mask(causal: bool, window: tuple[int, int] | None, align: str) -> Json:
    if window is not None:
        left, right = window
        return {"mask": {"type": "window", "left": left, "right": 0 if causal else right, "align": align}}
    return {"mask": {"type": "causal", "align": align}} if causal else {}


def _family(case: Json) -> str:
    """The family that may have all this."""
    beyond = "bias" in case or case["head_dim"] != case["head_dim_v"] or case.get("mask", {}).get("align") == "top_left"
    return "memeff" if beyond else "flash"
