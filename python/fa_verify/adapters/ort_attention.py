"""onnxruntime's Attention of ONNX opset 23 on the processor, also with new keys behind a past."""

from __future__ import annotations

from typing import Any

import numpy as np

from fa_verify.adapters import _ort
from fa_verify.adapters._adapter import Adapter, result
from fa_verify.adapters._problem import Problem


def _refuses(p: Problem, backward: bool) -> str:
    if p.nothing_there:
        return "no rows or no keys"
    if p.scale <= 0:
        return "its scale is above 0"
    if p.cached and len(set(p.cache_seqlens)) > 1:
        return "its past has one length"
    if p.cached and p.new == 0:
        return "some key is new"
    return ""


def _shown(p: Problem) -> Any:
    away = np.arange(p.keys[0])[None, :] - np.arange(p.seqlen_q)[:, None] - p.shift()
    shown = np.ones(away.shape, bool)
    if p.right >= 0:
        shown &= away <= p.right
    return shown & (away >= -p.left) if p.left >= 0 else shown


def _run(call: Any) -> Any:
    """is_causal shows row i the keys up to i behind the past; every other mask is given as a mask."""
    p = Problem(call.json)
    past = p.keys[0] - p.new if p.cached else 0
    own = p.left < 0 <= p.right and p.shift() + p.right == past
    given = {"q": call.q, "k": call.k_new if p.cached else call.k, "v": call.v_new if p.cached else call.v}
    given = {name: np.swapaxes(x, 1, 2) for name, x in given.items()}
    names = ["q", "k", "v", ""]
    if call.bias is not None:
        bias = np.broadcast_to(call.bias, (*call.bias.shape[:2], p.seqlen_q, p.keys[0]))
        given["bias"] = bias if own or not p.masked else np.where(_shown(p), bias, call.bias.dtype.type(-np.inf))
        names[3] = "bias"
    elif p.masked and not own:
        given["bool_mask"] = _shown(p)
        names[3] = "bool_mask"
    if p.cached:
        given["past_k"], given["past_v"] = (np.swapaxes(x[:, :past], 1, 2) for x in (call.k, call.v))
        names += ["past_k", "past_v"]
    attributes = [("scale", p.scale), ("is_causal", int(own))]
    if p.softcap:
        attributes.append(("softcap", p.softcap))
    while not names[-1]:
        names.pop()
    found = _ort.session("Attention", "", p.dtype, tuple(names), 3 if p.cached else 1, tuple(attributes))
    o, *present = _ort.run(found, given)
    out = result(o=np.swapaxes(o, 1, 2))
    if p.cached:
        out.k, out.v = (_cache(x, now, past, p.new) for x, now in zip((call.k, call.v), present))
    return out


def _cache(before: Any, present: Any, past: int, new: int) -> Any:
    """The cache afterwards: what is new goes behind the past, in place."""
    after = np.array(before)
    after[:, past : past + new] = present[:, :, past:].swapaxes(1, 2)
    return after


KERNEL = Adapter(
    name="ort_attention",
    what="onnxruntime Attention of opset 23",
    library="onnxruntime",
    modules=("onnxruntime", "onnx"),
    run=_run,
    families=("flash", "memeff", "flex", "kvcache"),
    dtypes=("f16", "f32"),
    features=("causal", "window", "top_left", "bottom_right", "gqa", "head_dim_v", "softcap", "bias", "empty_lse", "append", "top_left_cache"),
    arithmetic={"f32": {"name": "simt-f32"}, "f16": {"name": "torch-eager"}},
    refuses=_refuses,
).kernel()
