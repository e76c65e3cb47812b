"""flex_attention of PyTorch, compiled for few queries: its split-K Triton kernel, forced."""

from __future__ import annotations

import re
from typing import Any

from fa_verify.adapters import _flex
from fa_verify.adapters._adapter import Adapter
from fa_verify.adapters._problem import Problem
from fa_verify.adapters._torch import cuda_missing
from fa_verify.adapters.torch_flex import compiled, options_for, refuses


def _refuses(p: Problem, backward: bool) -> str:
    if p.group & (p.group - 1):
        return "groups of heads that are no power of two"
    if "h" in re.findall(r"[A-Za-z_]\w*", p.mask_mod or ""):
        return "a mask that differs between heads"
    return refuses(p, backward)


def _run(call: Any) -> Any:
    p = Problem(call.json)
    kind = f"decode {p.dtype} {p.score_mod} {p.mask_mod} {sorted(p.buffer_specs)} {p.has_blocks}"
    rows = max(128, 1 << (p.seqlen_q * p.group - 1).bit_length())  # all rows of a group are one tile, which must divide the mask's blocks
    options = {**options_for(p), "BACKEND": "TRITON_DECODE"}
    return _flex.run(call, compiled(kind, dynamic=False), False, rows, kernel_options=options)  # it asks for a fixed batch


KERNEL = Adapter(
    name="torch_flex_decode",
    what="PyTorch flex_attention for few queries: split-K Triton",
    library="torch",
    modules=("torch", "triton"),
    run=_run,
    families=("flash", "memeff", "flex"),
    features=tuple(word for word in _flex.FEATURES if word != "block_sparse"),
    outputs=("o", "lse"),
    lse={"base": "e", "scaled": True, "layout": "as_call", "dtype": "f32", "empty": "-inf", "alibi": "distance"},
    limits={"seqlen_q": {"max": 127}, "head_dim": {"min": 16}, "head_dim_v": {"min": 16}},  # as compiled: smaller ones end in an error
    arithmetic={
        "f32": {"name": "simt-f32", "max_splits": 128, "fast_functions": True},
        "f16": {"name": "triton", "max_splits": 128, "fast_functions": True},
        "bf16": {"name": "triton", "max_splits": 128, "fast_functions": True},
    },
    refuses=_refuses,
    missing=cuda_missing,
    arrays="torch",
    device="cuda:0",
).kernel()
