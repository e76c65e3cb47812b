"""SageAttention 1: queries and keys in int8 with a scale for each block, P and its sums in f16, in Triton.

It subtracts the keys' mean in place, from the caller's own tensor; the adapter hands it a copy, so that what it computes
can be judged too."""

from __future__ import annotations

from typing import Any

from fa_verify.adapters._adapter import Adapter, result
from fa_verify.adapters._problem import Problem
from fa_verify.adapters._torch import cuda_missing


def _refuses(p: Problem, backward: bool) -> str:
    if p.nothing_there:
        return "no rows or no keys"
    if p.causal and not p.square:
        return "its causal mask goes with as many keys as queries"
    return ""


def _run(call: Any) -> Any:
    from sageattention import sageattn

    p = Problem(call.json)
    o = sageattn(call.q, call.k.clone(), call.v, tensor_layout="NHD", is_causal=p.causal, sm_scale=p.scale)
    return result(o=o)


KERNEL = Adapter(
    name="sageattention",
    what="SageAttention 1, int8 scores",
    library="sageattention",
    modules=("torch", "triton", "sageattention"),
    run=_run,
    features=("causal", "top_left", "gqa", "empty_lse"),
    limits={"head_dim": {"among": [64, 96, 128]}},
    arithmetic={"name": "triton", "operand_qk": "int8", "p": "f16", "operand_pv": "f16", "accumulator_pv": "f16"},
    refuses=_refuses,
    missing=cuda_missing,
    arrays="torch",
    device="cuda:0",
).kernel()
