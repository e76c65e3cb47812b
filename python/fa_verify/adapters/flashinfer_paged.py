"""FlashInfer's prefill over a cache in pages; a cache without pages has one page for each row."""

from __future__ import annotations

from typing import Any

from fa_verify.adapters import _flashinfer
from fa_verify.adapters._adapter import Adapter, result
from fa_verify.adapters._problem import Problem
from fa_verify.adapters._torch import aligned


def _refuses(p: Problem, backward: bool) -> str:
    return _flashinfer.refuses_cache(p)


def _run(call: Any) -> Any:
    import flashinfer
    import torch

    p = Problem(call.json)
    offsets, numbers, last, size = _flashinfer.pages(torch, p, call)
    rows = torch.arange(p.batch + 1, dtype=torch.int32, device=call.q.device) * p.seqlen_q
    wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(_flashinfer.workspace(), "NHD", backend=_flashinfer.BACKEND)
    wrapper.plan(
        rows, offsets, numbers, last, p.heads_q, p.heads_kv, p.head_dim, size,
        q_data_type=call.q.dtype, kv_data_type=call.k.dtype, **_flashinfer.options(p),
    )  # fmt: skip
    o, lse = wrapper.run(aligned(call.q.flatten(0, 1)), _flashinfer.caches(call), return_lse=True, **_flashinfer.scales(p, call))
    return result(o=o.unflatten(0, (p.batch, p.seqlen_q)), lse=lse.unflatten(0, (p.batch, p.seqlen_q)))


def _warm(torch: Any, dtype: Any, keys: Any, head_dim: int, options: dict[str, Any]) -> None:
    import flashinfer

    wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(_flashinfer.workspace(), "NHD", backend=_flashinfer.BACKEND)
    ends, pages, last = (torch.tensor(x, dtype=torch.int32, device="cuda") for x in ([0, 1], [0], [16]))
    wrapper.plan(ends, ends, pages, last, 1, 1, head_dim, 16, q_data_type=dtype, kv_data_type=keys, **options)


KERNEL = Adapter(
    name="flashinfer_paged",
    what="FlashInfer prefill over pages",
    library="flashinfer-python",
    modules=("torch", "flashinfer"),
    run=_run,
    families=("kvcache",),
    dtypes=("f16", "bf16"),
    features=("causal", "bottom_right", "window", "gqa", "softcap", "paged", "batch_idx", "quantized_keys", "empty_lse"),
    outputs=("o", "lse"),
    lse=_flashinfer.LSE,
    limits=_flashinfer.LIMITS,
    arithmetic=_flashinfer.ARITHMETIC,
    refuses=_refuses,
    missing=_flashinfer.missing,
    prepare=lambda: _flashinfer.prepare(_warm, _flashinfer.CACHED),
    arrays="torch",
    device="cuda:0",
).kernel()
