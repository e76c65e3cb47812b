"""FlashInfer's prefill of one sequence."""

from __future__ import annotations

from typing import Any

from fa_verify.adapters import _flashinfer
from fa_verify.adapters._adapter import Adapter, result
from fa_verify.adapters._problem import Problem
from fa_verify.adapters._torch import aligned


def _refuses(p: Problem, backward: bool) -> str:
    if p.masked and p.seqlen_q > p.seqlen_k:
        return "its masks go with no more rows than keys"
    return "no rows or no keys" if p.nothing_there else _flashinfer.refuses_mask(p)


def _run(call: Any) -> Any:
    import flashinfer

    p = Problem(call.json)
    q, k, v = (aligned(x[0]) for x in (call.q, call.k, call.v))
    o, lse = flashinfer.single_prefill_with_kv_cache(q, k, v, return_lse=True, backend=_flashinfer.BACKEND, **_flashinfer.options(p))
    return result(o=o[None], lse=lse[None])


def _warm(torch: Any, dtype: Any, keys: Any, head_dim: int, options: dict[str, Any]) -> None:
    import flashinfer

    q = torch.zeros((64, 1, head_dim), dtype=dtype, device="cuda")
    flashinfer.single_prefill_with_kv_cache(q, q, q, return_lse=True, backend=_flashinfer.BACKEND, **options)


KERNEL = Adapter(
    name="flashinfer_single",
    what="FlashInfer prefill of one sequence",
    library="flashinfer-python",
    modules=("torch", "flashinfer"),
    run=_run,
    dtypes=("f16", "bf16"),
    features=("causal", "window", "top_left", "bottom_right", "gqa", "softcap", "empty_lse"),
    outputs=("o", "lse"),
    lse=_flashinfer.LSE,
    limits={**_flashinfer.LIMITS, "batch": {"max": 1}},
    arithmetic=_flashinfer.ARITHMETIC,
    refuses=_refuses,
    missing=_flashinfer.missing,
    prepare=lambda: _flashinfer.prepare(_warm),
    arrays="torch",
    device="cuda:0",
).kernel()
