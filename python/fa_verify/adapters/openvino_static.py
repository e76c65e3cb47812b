"""OpenVINO's scaled_dot_product_attention of opset 13 on the processor: a model compiled for the shapes of each call, as
most exported models have them. Its kernels are others than those of dynamic shapes."""

from __future__ import annotations

import math

from fa_verify.adapters import _openvino
from fa_verify.adapters._adapter import Adapter
from fa_verify.adapters._problem import Problem


def _refuses(p: Problem, backward: bool) -> str:
    """A scale that is known beforehand is multiplied into an operand, which is rounded to bf16 behind it. No field of an
    arithmetic says that; what a power of two is multiplied by is not rounded."""
    if p.dtype == "bf16" and p.scale and abs(math.frexp(p.scale)[0]) != 0.5:
        return "in bf16 its scale is a power of two"
    return _openvino.refuses(p, backward)


KERNEL = Adapter(
    name="openvino_static",
    what="OpenVINO scaled_dot_product_attention, static shapes",
    library="openvino",
    modules=("openvino",),
    run=lambda call: _openvino.run(call, fixed=True),
    dtypes=("f32", "bf16"),
    features=("causal", "top_left", "head_dim_v", "bias", "empty_lse"),
    empty_o="nan",
    arithmetic=_openvino.ARITHMETIC,
    refuses=_refuses,
).kernel()
