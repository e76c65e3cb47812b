"""PyTorch's cuDNN attention, what scaled_dot_product_attention takes first on Hopper; dense and packed."""

from __future__ import annotations

from typing import Any

from fa_verify.adapters._adapter import Adapter, result
from fa_verify.adapters._problem import Problem
from fa_verify.adapters._torch import additive, aligned, cuda_missing, swap


def _refuses(p: Problem, backward: bool) -> str:
    if p.nothing_there and not p.varlen or p.seqlen_q == 0 or p.seqlen_k == 0:
        return "PyTorch returns before the kernel when there are no rows or keys"
    if p.seqlen_k == 1:
        return "it refuses a single key"
    if p.causal and p.top_left is False and not p.square and p.varlen:
        return "its causal mask begins at the top left"
    if p.varlen and (p.has_bias or p.mask == "window"):
        return "no bias and no window with packed sequences"
    return ""


def _run(call: Any) -> Any:
    import torch

    p = Problem(call.json)
    if p.varlen:
        return _run_packed(torch, p, call)
    own = p.causal and (p.square or p.top_left)
    bias = additive(torch, p, call, mask=not own)
    if bias is not None:
        bias = bias.to(call.q.dtype).expand(p.batch, p.heads_q, p.seqlen_q, p.seqlen_k).contiguous()
    q, k, v = (swap(aligned(getattr(call, name))) for name in "qkv")
    found = torch.ops.aten._scaled_dot_product_cudnn_attention(q, k, v, bias, True, 0.0, own, False, scale=p.scale)
    o, lse, cu_q, cu_k, most_q, most_k, seed, offset, _ = found
    out = result(o=swap(o), lse=lse.squeeze(-1) if lse.dim() == 4 else lse, kernel="aten::_scaled_dot_product_cudnn_attention")
    if call.wants_gradients:
        grads = torch.ops.aten._scaled_dot_product_cudnn_attention_backward(
            swap(aligned(call.do)), q, k, v, o, lse, seed, offset, bias, cu_q, cu_k, most_q, most_k, 0.0, own, scale=p.scale
        )
        out.dq, out.dk, out.dv = (swap(x) for x in grads)
    return out


def _run_packed(torch: Any, p: Problem, call: Any) -> Any:
    lengths = (call.cu_seqlens_q, call.cu_seqlens_k, p.seqlen_q, p.seqlen_k)
    q, k, v = (aligned(getattr(call, name)) for name in "qkv")
    found = torch.ops.aten._cudnn_attention_forward(q, k, v, None, *lengths, True, 0.0, p.causal, False, scale=p.scale)
    o, lse, cu_q, cu_k, most_q, most_k, seed, offset, _ = found
    out = result(o=o, lse=lse.squeeze(-1).transpose(0, 1), kernel="aten::_cudnn_attention_forward")  # it is [T, H, 1]
    if call.wants_gradients:
        out.dq, out.dk, out.dv = torch.ops.aten._cudnn_attention_backward(
            aligned(call.do), q, k, v, o, lse, seed, offset, None, cu_q, cu_k, most_q, most_k, 0.0, p.causal, scale=p.scale
        )
    return out


KERNEL = Adapter(
    name="torch_cudnn",
    what="PyTorch cuDNN attention, dense and packed",
    library="torch",
    modules=("torch",),
    run=_run,
    dtypes=("f16", "bf16"),
    features=("causal", "window", "top_left", "bottom_right", "varlen", "gqa", "head_dim_v", "bias", "empty_lse"),
    passes=("forward", "backward"),
    outputs=("o", "lse", "dq", "dk", "dv"),
    lse={"base": "e", "scaled": True, "layout": "as_call", "dtype": "f32", "empty": "any"},
    empty_o="any",
    limits={"head_dim": {"max": 256, "multiple_of": 8}, "head_dim_v": {"max": 256, "multiple_of": 8}},
    arithmetic={"name": "wgmma-sm90", "delta": "stored_o", "ds_scaled": True, "dq_atomic": True, "dkv_atomic": True, "gqa_partials_rounded": True},
    refuses=_refuses,
    missing=cuda_missing,
    arrays="torch",
    device="cuda:0",
).kernel()
