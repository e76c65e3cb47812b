"""FlashInfer's decoding over a cache in pages, one query a sequence; a cache without pages has one page for each row."""

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
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(_flashinfer.workspace(), "NHD")
    options = {key: value for key, value in _flashinfer.options(p).items() if key != "causal"}
    wrapper.plan(
        offsets, numbers, last, p.heads_q, p.heads_kv, p.head_dim, size, q_data_type=call.q.dtype, kv_data_type=call.k.dtype, **options
    )
    o, lse = wrapper.run(aligned(call.q[:, 0].contiguous()), _flashinfer.caches(call), return_lse=True, **_flashinfer.scales(p, call))
    return result(o=o[:, None], lse=lse[:, None])


def _warm(torch: Any, dtype: Any, keys: Any, head_dim: int, options: dict[str, Any]) -> None:
    import flashinfer

    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(_flashinfer.workspace(), "NHD")
    ends, pages, last = (torch.tensor(x, dtype=torch.int32, device="cuda") for x in ([0, 1], [0], [16]))
    options = {key: value for key, value in options.items() if key != "causal"}
    wrapper.plan(ends, pages, last, 1, 1, head_dim, 16, q_data_type=dtype, kv_data_type=keys, **options)


KERNEL = Adapter(
    name="flashinfer_decode",
    what="FlashInfer decoding over pages",
    library="flashinfer-python",
    modules=("torch", "flashinfer"),
    run=_run,
    families=("kvcache",),
    dtypes=("f16", "bf16"),
    features=("causal", "bottom_right", "window", "gqa", "softcap", "paged", "batch_idx", "quantized_keys", "empty_lse"),
    outputs=("o", "lse"),
    lse=_flashinfer.LSE,
    limits={**_flashinfer.LIMITS, "seqlen_q": {"max": 1}, "group": {"among": [1, 2, 3, 4, 8]}},
    arithmetic={"name": "simt-f32", **_flashinfer.COMMON},
    refuses=_refuses,
    missing=_flashinfer.missing,
    prepare=lambda: _flashinfer.prepare(_warm, _flashinfer.CACHED),
    arrays="torch",
    device="cuda:0",
).kernel()
