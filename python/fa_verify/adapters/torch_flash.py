"""PyTorch's FlashAttention 2, the operator under scaled_dot_product_attention, dense and packed."""

from __future__ import annotations

from typing import Any

from fa_verify.adapters._adapter import Adapter, result
from fa_verify.adapters._problem import Problem
from fa_verify.adapters._torch import aligned, cuda_missing, padded, seeded, unusable_seed

FLASH = {"name": "mma-sm80", "block_n": 64}


def _refuses(p: Problem, backward: bool) -> str:
    if not p.varlen and p.nothing_there:
        return "PyTorch returns before the kernel when there are no rows or keys"
    if p.varlen and (p.seqlen_q == 0 or p.seqlen_k == 0):
        return "a packed call without any row or key ends in a CUDA error"
    if p.seqused_k is not None and not p.varlen:
        return "seqused_k goes with variable length only"
    if p.masked and p.top_left and not p.square:
        return "its masks begin at the bottom right"
    if backward and p.seqused_k is not None:
        return "its backward has no seqused_k"
    return unusable_seed(p)


def _run(call: Any) -> Any:
    import torch

    p = Problem(call.json)
    if p.dropout:
        seeded(torch, p)
    q, k, v = (aligned(padded(torch, getattr(call, name), 8)) for name in "qkv")
    lengths = (call.cu_seqlens_q, call.cu_seqlens_k, p.seqlen_q, p.seqlen_k)
    window = {"window_size_left": p.left, "window_size_right": p.right} if p.mask == "window" else {}
    common = {"scale": p.scale, **window}
    o, lse, rng, unused, _ = torch.ops.aten._flash_attention_forward(q, k, v, *lengths, p.dropout, p.causal, False, seqused_k=call.seqused_k, **common)
    out = result(o=o[..., : p.head_dim], lse=lse, kernel="aten::_flash_attention_forward")
    if call.wants_gradients:
        do = aligned(padded(torch, call.do, 8))
        torch.use_deterministic_algorithms(p.deterministic)
        try:
            grads = torch.ops.aten._flash_attention_backward(do, q, k, v, o, lse, *lengths, p.dropout, p.causal, rng, unused, **common)
        finally:
            torch.use_deterministic_algorithms(False)
        out.dq, out.dk, out.dv = (x[..., : p.head_dim] for x in grads)
    return out


KERNEL = Adapter(
    name="torch_flash",
    what="PyTorch FlashAttention 2, dense and packed",
    library="torch",
    modules=("torch",),
    run=_run,
    dtypes=("f16", "bf16"),
    features=("causal", "window", "top_left", "bottom_right", "varlen", "seqused_k", "gqa", "dropout", "deterministic", "empty_lse"),
    families=("flash",),
    passes=("forward", "backward"),
    outputs=("o", "lse", "dq", "dk", "dv"),
    lse={"base": "e", "scaled": True, "layout": "as_call", "dtype": "f32", "empty": "+inf"},
    limits={"head_dim": {"max": 256}},
    arithmetic=FLASH,
    refuses=_refuses,
    missing=cuda_missing,
    arrays="torch",
    device="cuda:0",
).kernel()
