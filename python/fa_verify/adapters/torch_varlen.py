"""torch.nn.attention.varlen.varlen_attn: PyTorch's public function for packed sequences, with its own gradients."""

from __future__ import annotations

from typing import Any

from fa_verify.adapters._adapter import Adapter
from fa_verify.adapters._problem import Problem
from fa_verify.adapters._torch import aligned, cuda_missing, with_gradients
from fa_verify.adapters.torch_flash import FLASH


def _refuses(p: Problem, backward: bool) -> str:
    if not p.varlen:
        return "packed sequences only"
    if p.seqlen_q == 0 or p.seqlen_k == 0:
        return "a packed call without any row or key ends in a CUDA error"
    if p.masked and p.top_left and not p.square:
        return "its masks begin at the bottom right"
    return ""


def _run(call: Any) -> Any:
    from torch.nn.attention.varlen import AuxRequest, varlen_attn

    p = Problem(call.json)
    window = (p.left, p.right)  # causal is (-1, 0)

    def forward(inputs: dict[str, Any]) -> Any:
        lengths = (call.cu_seqlens_q, call.cu_seqlens_k, p.seqlen_q, p.seqlen_k)
        return varlen_attn(*(aligned(inputs[name]) for name in "qkv"), *lengths, return_aux=AuxRequest(lse=True), scale=p.scale, window_size=window)

    return with_gradients(call, ("q", "k", "v"), forward, given=aligned)


KERNEL = Adapter(
    name="torch_varlen",
    what="PyTorch varlen_attn",
    library="torch",
    modules=("torch", "torch.nn.attention.varlen"),
    run=_run,
    families=("flash",),
    dtypes=("f16", "bf16"),
    features=("causal", "window", "top_left", "bottom_right", "varlen", "gqa", "empty_lse"),
    passes=("forward", "backward"),
    outputs=("o", "lse", "dq", "dk", "dv"),
    lse={"base": "e", "scaled": True, "layout": "as_call", "dtype": "f32", "empty": "+inf"},
    limits={"head_dim": {"max": 256, "multiple_of": 8}},
    arithmetic=FLASH,
    refuses=_refuses,
    missing=cuda_missing,
    arrays="torch",
    device="cuda:0",
).kernel()
