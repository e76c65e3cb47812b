"""PyTorch's flash attention for processors, the operator under scaled_dot_product_attention there."""

from __future__ import annotations

from typing import Any

from fa_verify.adapters._adapter import Adapter, result
from fa_verify.adapters._problem import Problem
from fa_verify.adapters._torch import additive, swap


def _refuses(p: Problem, backward: bool) -> str:
    if p.nothing_there:
        return "the operator itself ends the process without rows or keys; the public function returns before it"
    return ""


def _run(call: Any) -> Any:
    import torch

    p = Problem(call.json)
    native = p.causal and (p.square or p.top_left)  # its own causal mask begins at the top left
    extra = additive(torch, p, call, mask=not native)
    q, k, v = swap(call.q), swap(call.k), swap(call.v)
    given = {"attn_mask": extra, "scale": p.scale}
    o, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, native, **given)
    out = result(o=swap(o), lse=lse)
    if "backward" in call.passes:
        grads = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(swap(call.do), q, k, v, o, lse, 0.0, native, **given)
        out.dq, out.dk, out.dv = (swap(x) for x in grads)
    return out


def _half(kind: str) -> dict[str, Any]:
    """Of 16-bit elements: an exponential of few digits, and gradients of keys that are added up in the element type, 32
    rows or more at a time, and so over the heads of a group."""
    return {
        "name": "simt-f32",
        "block_n": 512,
        "eps_exp": 1.2e-4,
        "accumulator_dk": kind,
        "accumulator_dv": kind,
        "mma_block": 32,
        "gqa_partials_rounded": True,
        "library_products": True,
    }


KERNEL = Adapter(
    name="torch_cpu",
    what="PyTorch flash attention on the processor",
    library="torch",
    modules=("torch",),
    run=_run,
    families=("flash", "memeff", "flex"),
    features=("causal", "window", "top_left", "bottom_right", "gqa", "alibi", "bias", "empty_lse"),
    passes=("forward", "backward"),
    outputs=("o", "lse", "dq", "dk", "dv"),
    lse={"base": "e", "scaled": True, "layout": "as_call", "dtype": "f32", "empty": "0"},
    empty_o="0",
    arithmetic={"f32": {"name": "simt-f32", "block_n": 512, "library_products": True}, "f16": _half("f16"), "bf16": _half("bf16")},
    refuses=_refuses,
    arrays="torch",
).kernel()
