"""OpenVINO's scaled_dot_product_attention of opset 13 on the processor, at the precision of the call's elements: one compiled
model with dynamic shapes for many calls."""

from __future__ import annotations

from fa_verify.adapters import _openvino
from fa_verify.adapters._adapter import Adapter

KERNEL = Adapter(
    name="openvino",
    what="OpenVINO scaled_dot_product_attention, dynamic shapes",
    library="openvino",
    modules=("openvino",),
    run=lambda call: _openvino.run(call, fixed=False),
    dtypes=("f32", "bf16"),
    features=("causal", "top_left", "head_dim_v", "bias", "empty_lse"),
    empty_o="nan",
    arithmetic=_openvino.ARITHMETIC,
    refuses=_openvino.refuses,
).kernel()
