"""JAX's Mosaic attention for Hopper: Pallas kernels with warpgroup products. It has no scale: queries are multiplied by it
before the call, and only powers of two are taken."""

from __future__ import annotations

import math
from typing import Any

from fa_verify.adapters import _jax
from fa_verify.adapters._adapter import Adapter, result
from fa_verify.adapters._problem import Problem


def _refuses(p: Problem, backward: bool) -> str:
    if math.frexp(p.scale)[0] != 0.5:
        return "it has no scale; only powers of two multiply the queries exactly"
    if backward and p.causal:
        return "its backward has no mask"
    return ""


def _run(call: Any) -> Any:
    import jax
    import jax.numpy as jnp
    from jax.experimental.pallas.ops.gpu.attention_mgpu import TuningConfig, attention

    p = Problem(call.json)
    more = {"block_q_dkv": 64, "block_kv_dkv": 64, "block_q_dq": 64, "block_kv_dq": 64} if call.wants_gradients else {}
    config = TuningConfig(block_q=64, block_kv=64, max_concurrent_steps=2, causal=p.causal, **more)
    factor = jnp.asarray(p.scale, call.q.dtype)

    def forward(q: Any, k: Any, v: Any) -> Any:
        return attention(q * factor, k, v, config)

    o, (lse,) = attention(call.q * factor, call.k, call.v, config, True)
    out = result(o=o, lse=lse)
    if call.wants_gradients:
        _, back = jax.vjp(forward, call.q, call.k, call.v)
        out.dq, out.dk, out.dv = back(call.do)
    return out


KERNEL = Adapter(
    name="jax_mosaic",
    what="JAX's Mosaic attention for Hopper",
    library="jax",
    modules=("jax", "jax.experimental.pallas.ops.gpu.attention_mgpu"),
    run=_run,
    dtypes=("f16",),  # it lets bf16 in and stops at its own scratch memory, which is f16
    features=("causal", "top_left", "gqa", "empty_lse"),
    passes=("forward", "backward"),
    outputs=("o", "lse", "dq", "dk", "dv"),
    lse={"base": "2", "scaled": True, "layout": "as_call", "dtype": "f32", "empty": "any"},
    empty_o="any",
    limits={"head_dim": {"multiple_of": 64, "max": 256}, "seqlen_q": {"multiple_of": 128}, "seqlen_k": {"multiple_of": 64}},
    arithmetic={"name": "wgmma-sm90", "delta": "stored_o", "gqa_partials_rounded": True},
    refuses=_refuses,
    missing=_jax.gpu_missing,
    arrays="jax",
).kernel()
