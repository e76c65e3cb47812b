"""The wheel fa3-fwd: FlashAttention 3's forward for Hopper, over packed sequences and caches too, in bf16 or with queries, keys and
values in e4m3. It is built without float16, windows, pages and a backward."""

from __future__ import annotations

from typing import Any

from fa_verify.adapters._adapter import Adapter, result
from fa_verify.adapters._problem import Problem
from fa_verify.adapters._torch import aligned, cuda_missing


def _refuses(p: Problem, backward: bool) -> str:
    if p.seqlen_q == 0 or p.seqlen_k == 0:
        return "no row or no key at all"
    if p.masked and p.top_left and not p.square:
        return "its masks begin at the bottom right"
    if p.seqused_k is not None and not p.varlen:
        return "seqused_k goes with variable length only"
    if p.cached and p.rotary_dim and (not p.new or p.rotary_dim % 16):
        return "rotary embedding goes with new keys, and with a multiple of 16 columns"
    if p.cached and p.new and p.seqlen_q > p.seqlen_k:
        return "new keys go with no more queries than the cache has slots"
    if p.quantized and (p.quantized != "e4m3" or p.head_dim % 16):
        return "in 8 bits it takes e4m3, and multiples of 16 columns"
    return "" if p.leftpad_k is None else _refuses_padding(p)


def _refuses_padding(p: Problem) -> str:
    """It takes the padding of a cache alone, and writes no new key that is padding itself."""
    if not p.cached:
        return "leftpad_k goes with a cache"
    return "new keys that are padding are not written" if any(n < p.new for n in p.keys) else ""


def _arithmetic(p: Problem) -> dict[str, Any]:
    """Of 8 bits: what sums in float32 keep, which its documentation lets one expect. It has one accumulator of Hopper's for all keys of a
    split (the finding fa3-fp8-one-accumulator), but with accumulator_keys 0 the bound of 32,768 keys would be O itself."""
    return {"name": "fp8-sm90", "max_splits": 128} if p.quantized else {}


def _descales(p: Problem, call: Any) -> dict[str, Any]:
    """Of operands in 8 bits: [B, Hk], the queries' too. One number for a whole tensor is spread by strides of 0."""
    if not p.quantized:
        return {}
    given = {f"{name}_descale": getattr(call, f"{name}_descale") for name in "qkv"}
    return {name: x.expand(p.batch, p.heads_kv) if p.quantized_per == "tensor" else x for name, x in given.items()}


def _run(call: Any) -> Any:
    p = Problem(call.json)
    if p.cached:
        return _cached(p, call)
    import fa3_fwd_interface as fa3

    more = {"softmax_scale": p.scale, "causal": p.causal, "softcap": p.softcap, "return_attn_probs": True, **_descales(p, call)}
    q, k, v = (aligned(x) for x in (call.q, call.k, call.v))
    if p.varlen:
        lengths = (call.cu_seqlens_q, call.cu_seqlens_k, p.seqlen_q, p.seqlen_k)
        o, lse = fa3.flash_attn_varlen_func(q, k, v, *lengths, seqused_k=call.seqused_k, **more)[:2]
    else:
        o, lse = fa3.flash_attn_func(q, k, v, **more)[:2]
    return result(o=o, lse=lse, kernel="fa3_fwd::fwd")


def _cached(p: Problem, call: Any) -> Any:
    import fa3_fwd_interface as fa3

    k, v = aligned(call.k), aligned(call.v)
    k_new, v_new = (None if x is None else aligned(x) for x in (call.k_new, call.v_new))
    o, lse, *_ = fa3.flash_attn_with_kvcache(
        aligned(call.q), k, v, k_new, v_new, rotary_cos=call.rotary_cos, rotary_sin=call.rotary_sin,
        cache_seqlens=call.cache_seqlens, cache_batch_idx=call.cache_batch_idx, cache_leftpad=call.leftpad_k,
        softmax_scale=p.scale, causal=p.causal, softcap=p.softcap, rotary_interleaved=p.rotary_interleaved,
        num_splits=p.splits, return_softmax_lse=True, **_descales(p, call),
    )  # fmt: skip
    if p.new:
        for cache, written in ((call.k, k), (call.v, v)):
            if written is not cache:
                cache.copy_(written)
    return result(o=o, lse=lse, kernel="fa3_fwd::fwd over a cache")


KERNEL = Adapter(
    name="fa3_fwd",
    what="FlashAttention 3, forward",
    library="fa3-fwd",
    modules=("torch", "fa3_fwd_interface"),
    run=_run,
    families=("flash", "kvcache"),
    dtypes=("bf16",),
    features=(
        *("causal", "top_left", "bottom_right", "varlen", "seqused_k", "gqa", "softcap", "append", "batch_idx", "rotary", "leftpad_k"),
        *("splits", "quantized", "empty_lse"),
    ),
    passes=("forward",),
    outputs=("o", "lse"),
    lse={"base": "e", "scaled": True, "layout": "as_call", "dtype": "f32", "empty": "-inf"},
    limits={"head_dim": {"max": 256, "multiple_of": 8}},
    arithmetic={"name": "wgmma-sm90"},
    arithmetic_of=_arithmetic,
    refuses=_refuses,
    missing=cuda_missing,
    arrays="torch",
    device="cuda:0",
).kernel()
