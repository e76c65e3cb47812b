"""onnxruntime's MultiHeadAttention on the processor."""

from __future__ import annotations

from typing import Any

from fa_verify.adapters import _ort
from fa_verify.adapters._adapter import Adapter, result
from fa_verify.adapters._problem import Problem


def _refuses(p: Problem, backward: bool) -> str:
    if p.nothing_there:
        return "no rows or no keys"
    if p.scale == 0:
        return "a scale of 0 means the default one"
    if p.has_bias and p.bias_spec["shape"][2] == 1 and p.seqlen_q > 1:
        return "its bias has a row for every query"
    return ""


def _run(call: Any) -> Any:
    p = Problem(call.json)
    names = ("q", "k", "v") if call.bias is None else ("q", "k", "v", "", "", "bias")
    attributes = (("num_heads", p.heads_q), ("scale", p.scale), ("unidirectional", int(p.causal)))
    given = {name: _ort.flat(getattr(call, name)) for name in "qkv"}
    if call.bias is not None:
        given["bias"] = call.bias
    (o,) = _ort.run(_ort.session("MultiHeadAttention", "com.microsoft", p.dtype, names, 1, attributes), given)
    return result(o=o.reshape(p.batch, p.seqlen_q, p.heads_q, p.head_dim_v))


KERNEL = Adapter(
    name="ort_mha",
    what="onnxruntime MultiHeadAttention",
    library="onnxruntime",
    modules=("onnxruntime", "onnx"),
    run=_run,
    dtypes=("f32",),
    features=("causal", "top_left", "head_dim_v", "bias", "empty_lse"),
    arithmetic={"name": "simt-f32"},
    refuses=_refuses,
).kernel()
