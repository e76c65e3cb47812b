"""The package flash-attn (FlashAttention 2): what PyTorch's copy of its kernels leaves out too: ALiBi, softcap, KV caches."""

from __future__ import annotations

from typing import Any

from fa_verify.adapters._adapter import Adapter, result
from fa_verify.adapters._problem import Problem
from fa_verify.adapters._torch import cuda_missing
from fa_verify.adapters.torch_flash import FLASH


def _refuses(p: Problem, backward: bool) -> str:
    if p.seqlen_q == 0 or p.seqlen_k == 0:
        return "no row or no key at all"
    if p.masked and p.top_left and not p.square:
        return "its masks begin at the bottom right"
    if p.page_size % 256:
        return "pages of a multiple of 256 keys"
    if backward and p.softcap and p.dropout:
        return "softcap does not go with dropout"
    return ""


def _run(call: Any) -> Any:
    p = Problem(call.json)
    return _cached(p, call) if p.cached else _trained(p, call)


def _trained(p: Problem, call: Any) -> Any:
    import flash_attn
    import torch

    inputs = [getattr(call, name).detach().requires_grad_(call.wants_gradients) for name in "qkv"]
    more = {"softmax_scale": p.scale, "causal": p.causal, "softcap": p.softcap, "alibi_slopes": call.alibi_slopes, "return_attn_probs": True}
    more |= {"window_size": (p.left, p.right) if p.mask == "window" else (-1, -1), "deterministic": p.deterministic}
    with torch.set_grad_enabled(call.wants_gradients):
        if p.varlen:
            lengths = (call.cu_seqlens_q, call.cu_seqlens_k, p.seqlen_q, p.seqlen_k)
            o, lse, _ = flash_attn.flash_attn_varlen_func(*inputs, *lengths, **more)
        else:
            o, lse, _ = flash_attn.flash_attn_func(*inputs, **more)
    out = result(o=o.detach(), lse=lse.detach())
    if call.wants_gradients:
        out.dq, out.dk, out.dv = torch.autograd.grad(o, inputs, call.do)
    return out


def _cached(p: Problem, call: Any) -> Any:
    from flash_attn import flash_attn_with_kvcache

    o, lse = flash_attn_with_kvcache(
        call.q, call.k, call.v, call.k_new, call.v_new, rotary_cos=call.rotary_cos, rotary_sin=call.rotary_sin,
        cache_seqlens=call.cache_seqlens, cache_batch_idx=call.cache_batch_idx, cache_leftpad=call.leftpad_k, block_table=call.block_table,
        softmax_scale=p.scale, causal=p.causal, window_size=(p.left, p.right) if p.mask == "window" else (-1, -1), softcap=p.softcap,
        rotary_interleaved=p.rotary_interleaved, alibi_slopes=call.alibi_slopes, num_splits=p.splits, return_softmax_lse=True,
    )  # fmt: skip
    return result(o=o, lse=lse)


KERNEL = Adapter(
    name="flash_attn",
    what="flash-attn 2, with caches",
    library="flash-attn",
    modules=("torch", "flash_attn"),
    run=_run,
    families=("flash", "kvcache"),
    dtypes=("f16", "bf16"),
    features=(
        *("causal", "window", "top_left", "bottom_right", "varlen", "gqa", "softcap", "alibi", "deterministic", "append", "paged", "batch_idx", "rotary", "leftpad_k"),
        *("splits", "empty_lse"),
    ),
    passes=("forward", "backward"),
    outputs=("o", "lse", "dq", "dk", "dv"),
    lse={"base": "e", "scaled": True, "layout": "as_call", "dtype": "f32", "empty": "+inf", "alibi": "column"},
    limits={"head_dim": {"max": 256, "multiple_of": 8}},
    arithmetic=FLASH,
    refuses=_refuses,
    missing=cuda_missing,
    arrays="torch",
    device="cuda:0",
).kernel()
