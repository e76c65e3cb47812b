"""A Triton kernel in the style of its tutorial, our own: the worked example of a GPU kernel that is judged. Without a GPU it
runs in Triton's interpreter."""

from __future__ import annotations

import os
from typing import Any

from fa_verify.adapters._adapter import Adapter, has_cuda, result
from fa_verify.adapters._problem import Problem


def _missing() -> str:
    if not has_cuda() and os.environ.get("TRITON_INTERPRET") != "1":
        return "no GPU, and TRITON_INTERPRET=1 is not set"
    return ""


def _refuses(p: Problem, backward: bool) -> str:
    if p.dtype == "bf16" and os.environ.get("TRITON_INTERPRET") == "1":
        return "Triton's interpreter multiplies bf16 by its bits"
    if p.nothing_there:
        return "no rows or no keys"
    if p.causal and p.top_left and not p.square:
        return "its causal mask begins at the bottom right"
    return ""


def _run(call: Any) -> Any:
    from fa_verify.adapters._triton_example import attention

    return result(**attention(call, call.causal))



KERNEL = Adapter(
    name="triton_example",
    what="a Triton kernel of our own, the worked example",
    library="triton",
    modules=("torch", "triton"),
    run=_run,
    features=("causal", "top_left", "bottom_right", "gqa", "head_dim_v", "deterministic", "empty_lse"),
    passes=("forward", "backward"),
    outputs=("o", "lse", "dq", "dk", "dv"),
    lse={"base": "e", "scaled": True, "layout": "as_call", "dtype": "f32", "empty": "+inf"},
    limits={"head_dim": {"max": 256}, "head_dim_v": {"max": 256}},
    arithmetic={"name": "triton", "delta": "stored_o"},
    refuses=_refuses,
    missing=_missing,
    arrays="torch",
    device="auto",
).kernel()
