"""onnxruntime's Attention of ONNX opset 23 on the processor."""

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
    return ""


def _shown(p: Problem) -> Any:
    away = np.arange(p.seqlen_k)[None, :] - np.arange(p.seqlen_q)[:, None] - p.shift()
    shown = np.ones(away.shape, bool)
    if p.right >= 0:
        shown &= away <= p.right
    return shown & (away >= -p.left) if p.left >= 0 else shown


def _run(call: Any) -> Any:
    p = Problem(call.json)
    own = p.causal and (p.square or p.top_left)
    given = {name: np.swapaxes(getattr(call, name), 1, 2) for name in "qkv"}
    names: tuple[str, ...] = ("q", "k", "v")
    if call.bias is not None:
        bias = np.broadcast_to(call.bias, (*call.bias.shape[:2], p.seqlen_q, p.seqlen_k))
        given["bias"] = bias if own or not p.masked else np.where(_shown(p), bias, call.bias.dtype.type(-np.inf))
        names += ("bias",)
    elif p.masked and not own:
        given["bool_mask"] = _shown(p)
        names += ("bool_mask",)
    attributes = [("scale", p.scale), ("is_causal", int(own))]
    if p.softcap:
        attributes.append(("softcap", p.softcap))
    (o,) = _ort.run(_ort.session("Attention", "", p.dtype, names, 1, tuple(attributes)), given)
    return result(o=np.swapaxes(o, 1, 2))


KERNEL = Adapter(
    name="ort_attention",
    what="onnxruntime Attention of opset 23",
    library="onnxruntime",
    modules=("onnxruntime", "onnx"),
    run=_run,
    dtypes=("f16", "f32"),
    features=("causal", "window", "top_left", "bottom_right", "gqa", "head_dim_v", "softcap", "bias", "empty_lse"),
    arithmetic={"f32": {"name": "simt-f32"}, "f16": {"name": "torch-eager"}},
    refuses=_refuses,
).kernel()
