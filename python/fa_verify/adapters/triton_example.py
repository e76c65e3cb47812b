"""A Triton kernel in the style of its tutorial, our own: the worked example of a GPU kernel that is judged. Without a GPU it
runs in Triton's interpreter."""

from __future__ import annotations

import os
from typing import Any

from fa_verify.adapters._adapter import Adapter, has_cuda, result
from fa_verify.adapters._problem import Problem


#: It multiplies bf16 by its bits, as if they were whole numbers.
_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


def _missing() -> str:
    return "" if has_cuda() or _INTERPRETED else "no GPU, and TRITON_INTERPRET=1 is not set"


def _run(call: Any) -> Any:
    from fa_verify.adapters._triton_example import attention

    return result(**attention(call, call.causal, Problem(call.json).shift()))



KERNEL = Adapter(
    name="triton_example",
    what="a Triton kernel of our own, the worked example",
    library="triton",
    modules=("torch", "triton"),
    run=_run,
    dtypes=("f16", "f32") if _INTERPRETED else ("f16", "bf16", "f32"),
    features=("causal", "top_left", "bottom_right", "gqa", "head_dim_v", "deterministic", "empty_lse"),
    passes=("forward", "backward"),
    outputs=("o", "lse", "dq", "dk", "dv"),
    lse={"base": "e", "scaled": True, "layout": "as_call", "dtype": "f32", "empty": "+inf"},
    limits={"batch": {"min": 1}, "seqlen_q": {"min": 1}, "seqlen_k": {"min": 1}, "head_dim": {"max": 256}, "head_dim_v": {"max": 256}},
    arithmetic={"name": "triton", "delta": "stored_o"},
    missing=_missing,
    arrays="torch",
    device="auto",
).kernel()
