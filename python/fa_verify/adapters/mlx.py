"""MLX's fast scaled_dot_product_attention, on the processor where there is no Apple GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from fa_verify.adapters._adapter import Adapter, result
from fa_verify.adapters._problem import Problem

_TYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32"}


def _refuses(p: Problem, backward: bool) -> str:
    if p.has_bias and p.masked:
        return "one mask at a time: a bias, or which pairs are seen"
    return "no rows or no keys" if p.nothing_there else ""


def _mask(mx: Any, p: Problem) -> Any:
    """Its own causal mask, which begins at the bottom right, or every pair."""
    if not p.masked:
        return None
    if p.causal and (p.square or not p.top_left):
        return "causal"
    away = np.arange(p.seqlen_k)[None, :] - np.arange(p.seqlen_q)[:, None] - p.shift()
    shown = np.ones(away.shape, bool)
    if p.right >= 0:
        shown &= away <= p.right
    return mx.array(shown & (away >= -p.left) if p.left >= 0 else shown)


def _run(call: Any) -> Any:
    import mlx.core as mx

    p = Problem(call.json)
    kind = getattr(mx, _TYPES[p.dtype])
    q, k, v, do = (None if x is None else mx.array(np.ascontiguousarray(np.swapaxes(x, 1, 2))).astype(kind) for x in (call.q, call.k, call.v, call.do))
    mask = _mask(mx, p)
    if call.bias is not None:
        mask = mx.array(np.ascontiguousarray(call.bias)).astype(kind)

    def attention(q: Any, k: Any, v: Any) -> Any:
        return mx.fast.scaled_dot_product_attention(q, k, v, scale=p.scale, mask=mask)

    host = lambda x: np.array(x.astype(mx.float32)).swapaxes(1, 2)  # noqa: E731
    if not call.wants_gradients:
        return result(o=host(attention(q, k, v)))
    (o,), grads = mx.vjp(lambda *x: [attention(*x)], [q, k, v], [do])
    return result(o=host(o), **{f"d{name}": host(g) for name, g in zip("qkv", grads)})


# Of 16-bit elements: one operation at a time; the queries are multiplied by the scale, which is of the element type too,
# before their product, and the gradients of a group's heads are added up rounded.
_HALF = {"name": "torch-eager", "q_scaled": True, "delta_rounded": True, "gqa_partials_rounded": True}

KERNEL = Adapter(
    name="mlx",
    what="MLX fast attention",
    library="mlx",
    modules=("mlx.core",),
    run=_run,
    features=("causal", "window", "top_left", "bottom_right", "gqa", "head_dim_v", "bias", "empty_lse"),
    passes=("forward", "backward"),
    outputs=("o", "dq", "dk", "dv"),
    empty_o="any",
    arithmetic={"f32": {"name": "numpy-f32", "delta": "sum_p_dp", "p_kept": True}, "f16": _HALF, "bf16": _HALF},
    refuses=_refuses,
).kernel()
