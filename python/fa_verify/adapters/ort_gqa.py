"""onnxruntime's GroupQueryAttention on the processor: its prompt phase, and decoding over a cache that it appends to.

The operator always appends. A call without new keys is given as a prompt, and only one that is causal from the bottom
right, or has one query, means the same there."""

from __future__ import annotations

from typing import Any

import numpy as np

from fa_verify.adapters import _ort
from fa_verify.adapters._adapter import Adapter, result
from fa_verify.adapters._problem import Problem

NAMES = ("q", "k", "v", "past_k", "past_v", "i32_last", "i32_total")


def _refuses(p: Problem, backward: bool) -> str:
    if p.nothing_there:
        return "no rows or no keys"
    if p.scale == 0:
        return "a scale of 0 means the default one"
    if p.mask == "none":
        return "it is always causal"
    if p.right != 0 or (p.top_left and not p.square):
        return "its mask ends at the diagonal from the bottom right"
    if not p.cached:
        return "" if p.square else "a prompt has as many keys as queries"
    if p.new != p.seqlen_q:
        return "it appends as many keys as there are queries"
    if p.new > 1 and p.batch > 1:
        return "several new keys go with one sequence only"
    return ""


def _run(call: Any) -> Any:
    p = Problem(call.json)
    attributes = [("num_heads", p.heads_q), ("kv_num_heads", p.heads_kv), ("scale", p.scale)]
    if p.softcap:
        attributes.append(("softcap", p.softcap))
    if p.left >= 0:
        attributes.append(("local_window_size", p.left + 1))
    found = _ort.session("GroupQueryAttention", "com.microsoft", p.dtype, NAMES, 3, tuple(attributes))
    if p.cached:
        k, v = call.k_new, call.v_new
        past = (call.k.transpose(0, 2, 1, 3)[:, :, : max(p.cache_seqlens)], call.v.transpose(0, 2, 1, 3)[:, :, : max(p.cache_seqlens)])
    else:
        k, v = call.k, call.v
        past = (np.empty((p.batch, p.heads_kv, 0, p.head_dim), call.q.dtype),) * 2
    keys = np.asarray(p.keys, np.int32)
    given = {"q": _ort.flat(call.q), "k": _ort.flat(k), "v": _ort.flat(v), "past_k": past[0], "past_v": past[1]}
    o, present_k, present_v = _ort.run(found, {**given, "i32_last": keys - 1, "i32_total": np.asarray([keys.max()], np.int32)})
    out = result(o=o.reshape(p.batch, p.seqlen_q, p.heads_q, p.head_dim))
    if p.cached:
        out.k, out.v = _caches(p, call, present_k, present_v)
    return out


def _caches(p: Problem, call: Any, present_k: Any, present_v: Any) -> tuple[Any, Any]:
    """The caches afterwards: its own are as long as the longest sequence, and new slots are all that changes."""
    after = [np.array(call.k), np.array(call.v)]
    for x, present in zip(after, (present_k, present_v)):
        for b, length in enumerate(p.cache_seqlens):
            x[b, length : length + p.new] = present[b, :, length : length + p.new].swapaxes(0, 1)
    return after[0], after[1]


KERNEL = Adapter(
    name="ort_gqa",
    what="onnxruntime GroupQueryAttention, prompt and decoding",
    library="onnxruntime",
    modules=("onnxruntime", "onnx"),
    run=_run,
    families=("flash", "memeff", "flex", "kvcache"),
    dtypes=("f16", "f32"),
    features=("causal", "window", "top_left", "bottom_right", "gqa", "softcap", "append", "empty_lse"),
    limits={"head_dim": {"multiple_of": 8}},
    arithmetic={"f32": {"name": "simt-f32"}, "f16": {"name": "numpy-f32"}},
    refuses=_refuses,
).kernel()
