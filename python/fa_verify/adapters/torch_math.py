"""PyTorch's "math" attention, the one that scaled_dot_product_attention falls back on, with automatic gradients."""

from __future__ import annotations

from typing import Any

from fa_verify.adapters._adapter import Adapter
from fa_verify.adapters._problem import Problem
from fa_verify.adapters._torch import additive, swap, with_gradients


def _refuses(p: Problem, backward: bool) -> str:
    if p.seqlen_q == 0 or p.seqlen_k == 0:
        return "no rows or no keys"
    if p.scale == 0:
        return "it takes the root of the scale, and divides by none"
    return ""


def _run(call: Any) -> Any:
    import torch

    p = Problem(call.json)
    native = p.causal and (p.square or p.top_left) and not (p.has_bias or p.has_alibi)

    def forward(inputs: dict[str, Any]) -> Any:
        call.bias = inputs.get("bias", call.bias)
        if p.has_bias and not native:
            call.bias = call.bias.float()  # so that its gradient is not rounded before the rows are added that the mask spreads it over
        extra = additive(torch, p, call, mask=not native)
        q, k, v = (swap(inputs[name]) for name in "qkv")
        o, _ = torch.ops.aten._scaled_dot_product_attention_math(q, k, v, extra, 0.0, native, None, scale=p.scale, enable_gqa=p.group > 1)
        return swap(o), None

    return with_gradients(call, ("q", "k", "v", "bias") if p.has_bias_grad else ("q", "k", "v"), forward)


KERNEL = Adapter(
    name="torch_math",
    what="PyTorch math attention, gradients by autograd",
    library="torch",
    modules=("torch",),
    run=_run,
    features=("causal", "window", "top_left", "bottom_right", "gqa", "head_dim_v", "alibi", "bias", "bias_grad", "empty_lse"),
    passes=("forward", "backward"),
    outputs=("o", "dq", "dk", "dv", "dbias"),
    arithmetic={"name": "torch-math", "delta": "sum_p_dp", "p_kept": True},
    refuses=_refuses,
    arrays="torch",
    device="auto",
).kernel()
