"""The wheel flash-attn3-jax: FlashAttention 3 for Hopper with its backward, built for head dim 128; shorter ones are padded with zeros."""

from __future__ import annotations

from typing import Any

from fa_verify.adapters import _jax
from fa_verify.adapters._adapter import Adapter, result
from fa_verify.adapters._problem import Problem


def _refuses(p: Problem, backward: bool) -> str:
    if p.nothing_there:
        return "no rows or no keys"
    if p.masked and p.top_left and not p.square:
        return "its masks begin at the bottom right"
    return ""


def _run(call: Any) -> Any:
    import jax
    from flash_attn3_jax.flash import _flash_mha_bwd, _flash_mha_fwd

    p = Problem(call.json)
    options = {"softmax_scale": p.scale, "is_causal": p.causal, "window_size": (p.left, p.right) if p.mask == "window" else (-1, -1)}
    inputs = (call.q, call.k, call.v)
    o, lse = jax.jit(lambda *x: _flash_mha_fwd(*x, **options))(*inputs)
    out = result(o=o, lse=lse, kernel="flash_mha_fwd")
    if call.wants_gradients:
        out.dq, out.dk, out.dv = jax.jit(lambda *x: _flash_mha_bwd(*x, **options))(call.do, *inputs, o, lse)
    return out


KERNEL = Adapter(
    name="fa3_jax",
    what="FlashAttention 3 with its backward, under JAX",
    library="flash-attn3-jax",
    modules=("jax", "flash_attn3_jax"),
    run=_run,
    dtypes=("f16", "bf16"),
    features=("causal", "window", "top_left", "bottom_right", "gqa", "empty_lse"),
    passes=("forward", "backward"),
    outputs=("o", "lse", "dq", "dk", "dv"),
    lse={"base": "e", "scaled": True, "layout": "as_call", "dtype": "f32", "empty": "-inf"},
    limits={"head_dim": {"max": 128, "multiple_of": 8}},
    arithmetic={"name": "wgmma-sm90", "delta": "stored_o", "dq_atomic": True, "dkv_atomic": True},
    refuses=_refuses,
    missing=_jax.gpu_missing,
    arrays="jax",
).kernel()
