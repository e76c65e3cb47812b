"""The Pallas attention for GPUs that JAX carries: compiled by Triton on a GPU, line by line in the interpreter without one."""

from __future__ import annotations

from typing import Any

from fa_verify.adapters import _jax
from fa_verify.adapters._adapter import Adapter
from fa_verify.adapters._problem import Problem

SMALLEST = 16  # rows and columns of a matrix product of Triton


def _refuses(p: Problem, backward: bool) -> str:
    if p.nothing_there:
        return "no rows or no keys"
    blocks = [_jax.power_of_two(n, 128) for n in (p.seqlen_q, p.seqlen_k)]
    if min(blocks) < SMALLEST:
        return "lengths that are no multiples of 16"
    if backward and p.seqlen_q // blocks[0] != p.seqlen_k // blocks[1]:
        return "its backward needs as many blocks of keys as of queries"
    return ""


def _sizes(p: Problem) -> Any:
    from jax.experimental.pallas.ops.gpu.attention import BlockSizes

    q, k = (_jax.power_of_two(n, 64 if p.head_dim > 64 else 128) for n in (p.seqlen_q, p.seqlen_k))
    if p.seqlen_q // q != p.seqlen_k // k:
        q, k = (_jax.power_of_two(n, 128) for n in (p.seqlen_q, p.seqlen_k))
    small_q, small_k = min(q, 32), min(k, 32)
    return BlockSizes(block_q=q, block_k=k, block_q_dkv=small_q, block_kv_dkv=small_k, block_q_dq=small_q, block_kv_dq=small_k)


def _run(call: Any) -> Any:
    from jax.experimental.pallas.ops.gpu.attention import mha

    p = Problem(call.json)
    more = {"sm_scale": p.scale, "causal": p.causal, "block_sizes": _sizes(p), "interpret": _jax.interprets()}
    _, lse = mha(call.q, call.k, call.v, None, **more, return_residuals=True)

    def forward(inputs: dict[str, Any]) -> Any:
        return mha(inputs["q"], inputs["k"], inputs["v"], None, **more), lse

    return _jax.with_gradients(call, ("q", "k", "v"), forward)


KERNEL = Adapter(
    name="jax_pallas",
    what="JAX's Pallas attention for GPUs",
    library="jax",
    modules=("jax", "jax.experimental.pallas.ops.gpu.attention"),
    run=_run,
    features=("causal", "top_left", "empty_lse"),
    passes=("forward", "backward"),
    outputs=("o", "lse", "dq", "dk", "dv"),
    lse={"base": "2", "scaled": True, "layout": "as_call", "dtype": "f32", "empty": "any"},
    empty_o="mean_v",
    limits={"head_dim": {"min": 16, "max": 256}},
    arithmetic={"name": "triton", "delta": "stored_o", "delta_rounded": True, "ds_scaled": True},
    refuses=_refuses,
    arrays="jax",
).kernel()
