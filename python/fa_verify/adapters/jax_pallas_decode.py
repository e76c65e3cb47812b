"""The Pallas decoding that JAX carries: one query a sequence, the keys in splits. A cache row's first keys count."""

from __future__ import annotations

from typing import Any

from fa_verify.adapters import _jax
from fa_verify.adapters._adapter import Adapter, result
from fa_verify.adapters._problem import Problem


def _splits(p: Problem) -> int:
    """As many splits as it takes by default, fewer where they would have less than 16 keys."""
    return min(16, _jax.power_of_two(p.seqlen_k // 16, 16)) if p.seqlen_k % 16 == 0 else 1


def _refuses(p: Problem, backward: bool) -> str:
    if p.nothing_there:
        return "no rows or no keys"
    share = p.seqlen_k // _splits(p)
    if share < 16 or share & (share - 1):
        return "splits of the keys whose size is no power of two from 16 on"
    if p.masked and p.top_left and not p.square:
        return "its range of keys ends at the last one"
    return ""


def _run(call: Any) -> Any:
    import jax.numpy as jnp
    from jax.experimental.pallas.ops.gpu.decode_attention import gqa

    p = Problem(call.json)
    end = jnp.asarray(p.keys, jnp.int32)
    start = jnp.maximum(end - 1 - p.left, 0) if p.left >= 0 else None
    splits = _splits(p)
    o, (total, top) = gqa(
        call.q[:, 0], call.k, call.v, start, end if p.cached else None, sm_scale=p.scale, k_splits=splits,
        block_k=min(128, p.seqlen_k // splits), return_residuals=True, interpret=_jax.interprets(),
    )  # fmt: skip
    lse = (top.astype(jnp.float32) + jnp.log(total.astype(jnp.float32))).reshape(p.batch, p.heads_q, 1)
    return result(o=o[:, None], lse=lse)


KERNEL = Adapter(
    name="jax_pallas_decode",
    what="JAX's Pallas decoding, split over the keys",
    library="jax",
    modules=("jax", "jax.experimental.pallas.ops.gpu.decode_attention"),
    run=_run,
    families=("flash", "memeff", "flex", "kvcache"),
    features=("causal", "window", "top_left", "bottom_right", "gqa", "empty_lse"),
    outputs=("o", "lse"),
    lse={"base": "e", "scaled": True, "layout": "as_call", "dtype": "f32", "empty": "any"},
    empty_o="any",
    limits={"seqlen_q": {"max": 1}, "head_dim": {"min": 16, "max": 256, "among": [16, 32, 64, 128, 256]}},
    arithmetic={"name": "triton", "max_splits": 16},
    refuses=_refuses,
    arrays="jax",
).kernel()
