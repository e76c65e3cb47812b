"""OpenVINO's scaled_dot_product_attention on the processor in a model that keeps its keys and values in its state, as models
of language are exported: the plugin's own kernel with a KV cache takes such a model. Its causal masks begin at the last
row and key.

The plugin refuses a scalar that stands for no mask, without which there is no scale; so a call without a mask has the usual one. With
FA_VERIFY_OPENVINO=mask_column a prompt without a mask gets one with a number for each row, [1, 1, S, 1], which changes nothing
(docs/findings.md, "openvino-stateful-mask-column")."""

from __future__ import annotations

import functools
import os
from typing import Any

import numpy as np

from fa_verify.adapters import _openvino
from fa_verify.adapters._adapter import Adapter, result
from fa_verify.adapters._problem import Problem


def _refuses(p: Problem, backward: bool) -> str:
    if p.nothing_there:
        return "no rows or no keys"
    if p.causal and p.has_bias:
        return "a causal call leaves its mask out"
    if p.causal and p.top_left and not p.square:
        return "its mask ends at the diagonal from the bottom right"
    if p.cached and len(set(p.cache_seqlens)) > 1:
        return "its past has one length"
    if (p.new if p.cached else p.seqlen_k) != p.seqlen_q:
        return "it appends as many keys as there are queries"
    if not p.has_bias and abs(p.scale * p.head_dim**0.5 - 1) > 1e-6:
        return "without a mask its scale is the usual one"
    return ""


def _mask_column() -> bool:
    return os.environ.get("FA_VERIFY_OPENVINO", "") == "mask_column"


def _joined(new: Any, empty: Any, beam: Any, name: str, shape: list[int]) -> tuple[Any, Any]:
    """The state's keys or values with the new ones behind them, and the node that stores both."""
    import openvino as ov
    from openvino import opset13

    info = ov.op.util.VariableInfo()
    info.data_shape, info.data_type, info.variable_id = ov.PartialShape(shape), ov.Type.f32, name
    variable = ov.op.util.Variable(info)
    before = opset13.gather(opset13.read_value(empty, variable), beam, opset13.constant(0))
    joined = opset13.concat([before, new], 2)
    return joined, opset13.assign(joined, variable)


@functools.lru_cache(maxsize=64)
def _model(dtype: str, causal: bool, mask: str, heads: int, head_dim: int, head_dim_v: int) -> tuple[Any, Any]:
    """A compiled model and a request to it. mask: "" for none, "given" with a scale, "column" without one."""
    import openvino as ov
    from openvino import opset13 as op

    inputs = [op.parameter([-1, heads, -1, d], np.float32, name=name) for name, d in (("q", head_dim), ("k", head_dim), ("v", head_dim_v))]
    beam = op.parameter([-1], np.int32, name="beam")
    batch = op.gather(op.shape_of(inputs[0], "i64"), op.constant([0]), op.constant(0))
    caches = []
    for new, d in ((inputs[1], head_dim), (inputs[2], head_dim_v)):
        empty = op.broadcast(op.constant(np.float32(0)), op.concat([batch, op.constant([heads, 0, d])], 0))
        caches.append(_joined(new, empty, beam, new.get_friendly_name(), [-1, heads, -1, d]))
    (keys, store_k), (values, store_v) = caches
    more = {"attention_mask": op.parameter([-1, -1, -1, -1], np.float32, name="mask")} if mask else {}
    if mask == "given":
        more["scale"] = op.parameter([], np.float32, name="scale")
    out = op.result(op.scaled_dot_product_attention(inputs[0], keys, values, **more, causal=causal))
    asked = [*inputs, beam, *more.values()]
    settings = {"INFERENCE_PRECISION_HINT": dtype, "KV_CACHE_PRECISION": dtype, "INFERENCE_NUM_THREADS": 1}
    compiled = ov.Core().compile_model(ov.Model([out], [store_k, store_v], asked), "CPU", settings)
    return compiled, compiled.create_infer_request()


def _run(call: Any) -> Any:
    p = Problem(call.json)
    mask = "given" if call.bias is not None else "column" if _mask_column() and not p.cached and not p.causal else ""
    _, found = _model(p.dtype, p.causal, mask, p.heads_q, p.head_dim, p.head_dim_v)
    found.reset_state()
    given = {"beam": np.arange(p.batch, dtype=np.int32), **({"scale": np.asarray(p.scale, np.float32)} if call.bias is not None else {})}
    if p.cached:
        past = p.keys[0] - p.new
        if past:
            before = {"q": np.zeros((p.batch, p.heads_q, past, p.head_dim), np.float32), "k": _rows(call.k[:, :past]), "v": _rows(call.v[:, :past])}
            nothing = {"mask": np.zeros((p.batch, 1, past, past), np.float32)} if call.bias is not None else {}
            found.infer({**given, **before, **nothing})
        new = {"k": _rows(call.k_new), "v": _rows(call.v_new)}
    else:
        new = {"k": _rows(call.k), "v": _rows(call.v)}
    if mask == "given":
        new["mask"] = np.ascontiguousarray(call.bias, np.float32)
    elif mask == "column":
        new["mask"] = 30 * np.arange(p.seqlen_q, dtype=np.float32).reshape(1, 1, -1, 1)
    out = result(o=np.array(np.swapaxes(found.infer({**given, "q": _rows(call.q), **new})[0], 1, 2)))
    if p.cached:
        out.k, out.v = (_after(x, y, past) for x, y in ((call.k, call.k_new), (call.v, call.v_new)))
    return out


def _rows(x: Any) -> Any:
    return np.ascontiguousarray(np.swapaxes(x, 1, 2), np.float32)


def _after(cache: Any, new: Any, past: int) -> Any:
    """A case's cache as it must be afterwards: the state itself is not read back."""
    after = np.array(cache)
    after[:, past : past + new.shape[1]] = new
    return after


KERNEL = Adapter(
    name="openvino_stateful",
    what="OpenVINO scaled_dot_product_attention over a KV cache in the model's state",
    library="openvino",
    modules=("openvino",),
    run=_run,
    families=("flash", "memeff", "flex", "kvcache"),
    dtypes=("f32", "bf16"),
    features=("causal", "top_left", "bottom_right", "head_dim_v", "bias", "append", "empty_lse"),
    empty_o="0",
    arithmetic=_openvino.ARITHMETIC,
    refuses=_refuses,
).kernel()
