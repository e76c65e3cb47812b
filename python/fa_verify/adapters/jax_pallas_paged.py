"""The Pallas decoding over a paged cache that JAX carries. It has no scale: queries are multiplied by it before the
call, and only scales that do so without a rounding are taken."""

from __future__ import annotations

import math
from typing import Any

from fa_verify.adapters import _jax
from fa_verify.adapters._adapter import Adapter, result
from fa_verify.adapters._problem import Problem


def _refuses(p: Problem, backward: bool) -> str:
    if p.nothing_there:
        return "no rows or no keys"
    if not p.page_size or p.page_size & (p.page_size - 1):
        return "pages whose size is no power of two"
    if math.frexp(p.scale)[0] != 0.5:
        return "it has no scale; only powers of two multiply the queries exactly"
    if p.left >= 0 or (p.top_left and p.masked):
        return "no window, and no mask from the top left"
    return ""


def _run(call: Any) -> Any:
    import jax.numpy as jnp
    from jax.experimental.pallas.ops.gpu.paged_attention import paged_attention

    p = Problem(call.json)
    pages = call.block_table.shape[1]
    splits = _jax.power_of_two(pages, 16)
    o = paged_attention(
        call.q[:, 0] * jnp.asarray(p.scale, call.q.dtype), call.k.transpose(2, 0, 1, 3), call.v.transpose(2, 0, 1, 3), call.block_table,
        jnp.asarray(p.keys, jnp.int32), k_splits=splits, pages_per_compute_block=_jax.power_of_two(pages // splits, 8),
        interpret=_jax.interprets(), attn_logits_soft_cap=p.softcap or None,
    )  # fmt: skip
    return result(o=o[:, None])


KERNEL = Adapter(
    name="jax_pallas_paged",
    what="JAX's Pallas decoding over pages",
    library="jax",
    modules=("jax", "jax.experimental.pallas.ops.gpu.paged_attention"),
    run=_run,
    families=("kvcache",),
    features=("causal", "bottom_right", "gqa", "softcap", "paged", "empty_lse"),
    empty_o="any",
    limits={"seqlen_q": {"max": 1}, "head_dim": {"among": [16, 32, 64, 128, 256]}, "page_size": {"min": 1}},
    arithmetic={"name": "triton", "max_splits": 16},
    refuses=_refuses,
    arrays="jax",
).kernel()
