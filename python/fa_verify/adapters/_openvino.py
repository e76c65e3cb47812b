"""What the adapters of OpenVINO share: compiled models of one node, kept for the calls that they suit, on numpy arrays.

A bf16 call is given in float32 with a hint to compute in bf16, as its users' models do. The hint for f16 means bf16 too
on processors without products of f16, so f16 is left out."""

from __future__ import annotations

import functools
import os
from typing import Any

import numpy as np

from fa_verify.adapters._adapter import result
from fa_verify.adapters._problem import Problem

ARITHMETIC = {"f32": {"name": "simt-f32"}, "bf16": {"name": "torch-eager", "scores": "f32"}}


def refuses(p: Problem, backward: bool) -> str:
    if p.nothing_there:
        return "no rows or no keys"
    if p.causal and p.has_bias:
        return "a causal call leaves its mask out"
    return ""


@functools.lru_cache(maxsize=256)
def model(dtype: str, causal: bool, shapes: tuple[tuple[int, ...], ...], scale: float | None, apart: bool) -> Any:
    """A model of inputs with these shapes (-1: any), three or, with a mask, four; without a scale of its own it has that as its
    last input. apart: one that no other call gets."""
    import openvino as ov
    from openvino import opset13

    inputs = [opset13.parameter(list(shape), np.float32) for shape in shapes]
    mask = inputs[3] if len(inputs) > 3 else opset13.constant(np.zeros((1, 1), np.float32))
    known = opset13.parameter([], np.float32) if scale is None else opset13.constant(np.float32(scale))
    node = opset13.scaled_dot_product_attention(*inputs[:3], mask, scale=known, causal=causal)
    asked = [*inputs, known] if scale is None else inputs
    return ov.Core().compile_model(ov.Model([node], asked), "CPU", {"INFERENCE_PRECISION_HINT": dtype, "INFERENCE_NUM_THREADS": 1})


def run(call: Any, fixed: bool) -> Any:
    """fixed: the model knows all shapes and the scale when it is compiled."""
    p = Problem(call.json)
    given = [np.swapaxes(getattr(call, name), 1, 2) for name in "qkv"]
    if call.bias is not None:
        given.append(call.bias)
    given = [np.ascontiguousarray(x, np.float32) for x in given]
    if fixed:
        found = model(p.dtype, p.causal, tuple(x.shape for x in given), p.scale, False)
        return result(o=np.swapaxes(found(given)[0], 1, 2))
    # What a model with dynamic shapes computes after a call of head dim 1 is wrong (docs/findings.md, "openvino-bf16-after-head-dim-1"); here one that is
    # wrong by its past would hide what is wrong by itself.
    apart = p.head_dim == 1 and os.environ.get("FA_VERIFY_OPENVINO", "") != "one_model"
    found = model(p.dtype, p.causal, tuple((-1,) * x.ndim for x in given), None, apart)
    return result(o=np.swapaxes(found([*given, np.asarray(p.scale, np.float32)])[0], 1, 2))
