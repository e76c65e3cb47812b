"""OpenVINO's scaled_dot_product_attention of opset 13 on the processor, at the precision of the call's elements.

A bf16 call is given in float32 with a hint to compute in bf16, as its users' models do. The hint for f16 means bf16 too
on processors without products of f16, so f16 is left out."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from fa_verify.adapters._adapter import Adapter, result
from fa_verify.adapters._problem import Problem


def _refuses(p: Problem, backward: bool) -> str:
    if p.nothing_there:
        return "no rows or no keys"
    if p.causal and p.has_bias:
        return "a causal call leaves its mask out"
    return ""


@functools.lru_cache(maxsize=256)
def _model(dtype: str, causal: bool, biased: bool) -> Any:
    import openvino as ov
    from openvino import opset13

    inputs = [opset13.parameter([-1, -1, -1, -1], np.float32, name=name) for name in (("q", "k", "v", "bias") if biased else ("q", "k", "v"))]
    scale = opset13.parameter([], np.float32, name="scale")
    if biased:
        node = opset13.scaled_dot_product_attention(*inputs, scale=scale, causal=causal)
    else:
        zero = opset13.constant(np.zeros((1, 1), np.float32))
        node = opset13.scaled_dot_product_attention(*inputs, zero, scale=scale, causal=causal)
    return ov.Core().compile_model(ov.Model([node], [*inputs, scale]), "CPU", {"INFERENCE_PRECISION_HINT": dtype, "INFERENCE_NUM_THREADS": 1})


def _run(call: Any) -> Any:
    p = Problem(call.json)
    given = [np.ascontiguousarray(np.swapaxes(getattr(call, name), 1, 2), np.float32) for name in "qkv"]
    if call.bias is not None:
        given.append(np.ascontiguousarray(np.broadcast_to(call.bias, (*call.bias.shape[:2], p.seqlen_q, p.seqlen_k)), np.float32))
    found = _model(p.dtype, p.causal, call.bias is not None)([*given, np.asarray(p.scale, np.float32)])
    return result(o=np.swapaxes(found[0], 1, 2))


KERNEL = Adapter(
    name="openvino",
    what="OpenVINO scaled_dot_product_attention",
    library="openvino",
    modules=("openvino",),
    run=_run,
    dtypes=("f32", "bf16"),
    features=("causal", "top_left", "head_dim_v", "bias", "empty_lse"),
    empty_o="nan",
    arithmetic={"f32": {"name": "simt-f32"}, "bf16": {"name": "torch-eager", "scores": "f32"}},
    refuses=_refuses,
).kernel()
