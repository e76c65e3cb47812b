"""PyTorch's memory-efficient attention (CUTLASS), the raw operator: windows, both corners, bias and its gradient, dropout, f32."""

from __future__ import annotations

from typing import Any

from fa_verify.adapters._adapter import Adapter, result
from fa_verify.adapters._problem import Problem
from fa_verify.adapters._torch import aligned, cuda_missing, padded, seeded, unusable_seed


def _refuses(p: Problem, backward: bool) -> str:
    if p.seqlen_q == 0 or p.seqlen_k == 0 or (p.nothing_there and not p.varlen):
        return "PyTorch returns before the kernel when there are no rows or keys"
    if p.mask == "window" and (p.right != 0 or p.left < 0):
        return "its window ends at the diagonal and has a left edge"
    if p.varlen and p.has_bias:
        return "no bias with packed sequences"
    if p.dropout and p.family != "memeff":
        return "it draws other random numbers than flash kernels"
    if backward and p.has_bias_grad and p.dtype != "f32" and _sums(p):
        return "the parts of a summed dBias are rounded to 16 bits"
    return unusable_seed(p)


def _sums(p: Problem) -> bool:
    """True if the bias lacks an axis that the kernel's own gradient has."""
    full = (p.batch, p.heads_q, p.seqlen_q)
    return any(given == 1 and n > 1 for given, n in zip(p.bias_spec["shape"], full))


def _bias(torch: Any, p: Problem, call: Any) -> Any:
    """The bias for every pair, its rows a multiple of 16 bytes apart."""
    if call.bias is None:
        return None
    wide = -(-p.seqlen_k // 8) * 8
    room = torch.zeros((p.batch, p.heads_q, p.seqlen_q, wide), dtype=call.bias.dtype, device=call.bias.device)
    room[..., : p.seqlen_k] = call.bias
    return room[..., : p.seqlen_k]


def _summed(x: Any, like: Any) -> Any:
    """A gradient of every pair, summed over the axes that the bias has not, in f32."""
    for axis in range(3):
        if like.shape[axis] == 1 and x.shape[axis] > 1:
            x = x.float().sum(axis, keepdim=True)
    return x


def _gathered(x: Any, p: Problem) -> Any:
    """Gradients of repeated heads [..., Hq, D], summed to [..., Hk, D]."""
    return x if p.group == 1 else x.unflatten(-2, (p.heads_kv, p.group)).float().sum(-2)


def _run(call: Any) -> Any:
    import torch

    p = Problem(call.json)
    if p.dropout:
        seeded(torch, p)
    lanes = 4 if p.dtype == "f32" else 8
    packed = (lambda x: x[None]) if p.varlen else (lambda x: x)
    q, k, v = (packed(aligned(padded(torch, getattr(call, name), lanes))) for name in "qkv")
    if p.group > 1:  # the kernel has no groups; PyTorch's public function repeats the heads too
        k, v = k.repeat_interleave(p.group, 2), v.repeat_interleave(p.group, 2)
    kind = 0 if not p.masked else 1 if p.top_left else 2
    window = p.left + 1 if p.left >= 0 else None
    bias = _bias(torch, p, call)
    lengths = (call.cu_seqlens_q, call.cu_seqlens_k, p.seqlen_q if p.varlen else None, p.seqlen_k if p.varlen else None)
    o, lse, seed, offset, most_q, most_k = torch.ops.aten._efficient_attention_forward(
        q, k, v, bias, *lengths, p.dropout, kind, True, scale=p.scale, window_size=window
    )
    out = result(o=(o[0] if p.varlen else o)[..., : p.head_dim_v], lse=lse[..., : p.seqlen_q], kernel="aten::_efficient_attention_forward")
    if call.wants_gradients:
        do = packed(aligned(padded(torch, call.do, lanes)))
        grads = torch.ops.aten._efficient_attention_backward(
            do, q, k, v, bias, o, *lengths[:2], most_q, most_k, lse, p.dropout, seed, offset, kind, p.has_bias_grad, scale=p.scale, window_size=window
        )
        dq, dk, dv = (x[0] if p.varlen else x for x in grads[:3])
        out.dq, out.dk, out.dv = dq[..., : p.head_dim], _gathered(dk, p)[..., : p.head_dim], _gathered(dv, p)[..., : p.head_dim_v]
        if p.has_bias_grad:
            out.dbias = _summed(grads[3], call.bias)
    return out


#: P goes through shared memory in 16 bits, also on its way to dS; dropout's factor as well. dS times the scale is what is rounded.
NARROW = {"name": "mma-sm80", "delta": "stored_o", "gqa_partials_rounded": True, "p_in_ds": True, "dropout_rounded": True, "ds_scaled": True}

KERNEL = Adapter(
    name="torch_efficient",
    what="PyTorch memory-efficient attention",
    library="torch",
    modules=("torch",),
    run=_run,
    families=("memeff", "flash", "flex"),
    features=("causal", "window", "top_left", "bottom_right", "varlen", "gqa", "head_dim_v", "bias", "bias_grad", "dropout", "empty_lse"),
    passes=("forward", "backward"),
    outputs=("o", "lse", "dq", "dk", "dv", "dbias"),
    lse={"base": "e", "scaled": True, "layout": "padded", "dtype": "f32", "empty": "any"},
    limits={"head_dim": {"max": 512}, "head_dim_v": {"max": 512}},
    arithmetic={
        "f32": {"name": "3xtf32", "delta": "stored_o"},
        "f16": NARROW,
        "bf16": NARROW,
    },
    refuses=_refuses,
    missing=cuda_missing,
    arrays="torch",
    device="cuda:0",
).kernel()
