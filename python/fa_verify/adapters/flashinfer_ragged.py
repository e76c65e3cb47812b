"""FlashInfer's prefill of packed sequences, keys and values without pages."""

from __future__ import annotations

from typing import Any

from fa_verify.adapters import _flashinfer
from fa_verify.adapters._adapter import Adapter, result
from fa_verify.adapters._problem import Problem
from fa_verify.adapters._torch import aligned


def _refuses(p: Problem, backward: bool) -> str:
    if not p.varlen:
        return "packed sequences only"
    if p.seqlen_q == 0 or p.seqlen_k == 0:
        return "no row or no key at all"
    return _flashinfer.refuses_mask(p)


def _run(call: Any) -> Any:
    import flashinfer

    p = Problem(call.json)
    wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(_flashinfer.workspace(), "NHD", backend=_flashinfer.BACKEND)
    wrapper.plan(
        call.cu_seqlens_q, call.cu_seqlens_k, p.heads_q, p.heads_kv, p.head_dim,
        q_data_type=call.q.dtype, kv_data_type=call.k.dtype, **_flashinfer.options(p),
    )  # fmt: skip
    o, lse = wrapper.run(*(aligned(x) for x in (call.q, call.k, call.v)), return_lse=True)
    return result(o=o, lse=lse)


def _warm(torch: Any, dtype: Any, keys: Any, head_dim: int, options: dict[str, Any]) -> None:
    import flashinfer

    wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(_flashinfer.workspace(), "NHD", backend=_flashinfer.BACKEND)
    ends = torch.tensor([0, 64], dtype=torch.int32, device="cuda")
    wrapper.plan(ends, ends, 1, 1, head_dim, q_data_type=dtype, kv_data_type=dtype, **options)


KERNEL = Adapter(
    name="flashinfer_ragged",
    what="FlashInfer prefill of packed sequences",
    library="flashinfer-python",
    modules=("torch", "flashinfer"),
    run=_run,
    dtypes=("f16", "bf16"),
    features=("causal", "window", "top_left", "bottom_right", "varlen", "gqa", "softcap", "empty_lse"),
    outputs=("o", "lse"),
    lse=_flashinfer.LSE,
    limits=_flashinfer.LIMITS,
    arithmetic=_flashinfer.ARITHMETIC,
    refuses=_refuses,
    missing=_flashinfer.missing,
    prepare=lambda: _flashinfer.prepare(_warm),
    arrays="torch",
    device="cuda:0",
).kernel()
