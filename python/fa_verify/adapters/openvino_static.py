"""OpenVINO's scaled_dot_product_attention of opset 13 on the processor: a model compiled for the shapes of each call, as
most exported models have them. Its kernels are others than those of dynamic shapes."""

from __future__ import annotations

from fa_verify.adapters import _openvino
from fa_verify.adapters._adapter import Adapter

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
    refuses=_openvino.refuses,
).kernel()
