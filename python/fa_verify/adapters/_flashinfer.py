"""What the adapters of FlashInfer share. Its kernels are compiled when a combination of types, head dim and options is first asked for."""

from __future__ import annotations

import concurrent.futures
import functools
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

from fa_verify.adapters._problem import Problem
from fa_verify.adapters._torch import aligned, copied, cuda_missing

os.environ.setdefault("FLASHINFER_WORKSPACE_BASE", os.path.join(tempfile.gettempdir(), "fa-verify-flashinfer"))
os.environ.setdefault("FLASHINFER_DISABLE_VERSION_CHECK", "1")

#: Base 2, [tokens, heads]; rows without keys as its documentation has them, -inf.
LSE = {"base": "2", "scaled": True, "layout": "tokens_heads", "dtype": "f32", "empty": "-inf"}
LIMITS = {"head_dim": {"among": [64, 128, 256]}}
#: "fa2": mma.sync kernels, compiled in less than a minute. "fa3": Hopper's, which take several; what FlashInfer takes there of itself.
BACKEND = os.environ.get("FA_VERIFY_FLASHINFER", "fa2")
#: What splits of the keys leave of O is rounded to its type, and over a cache of 8 bits the scale of V multiplies an O that is rounded already.
COMMON = {"fast_functions": True, "max_splits": 128, "partials": "io", "o_descaled_late": True}
#: fa2 adds up a row's P after their rounding to 16 bits, so that its LSE may be off by as much.
ARITHMETIC: dict[str, Any] = (
    {"name": "wgmma-sm90", **COMMON}
    if BACKEND == "fa3"
    else {dtype: {"name": "mma-sm80", "eps_log": 2.0**-bits + 2.0**-21, **COMMON} for dtype, bits in (("f16", 11), ("bf16", 8))}
)
WORKSPACE = 128 << 20


def missing() -> str:
    return cuda_missing()


@functools.lru_cache(maxsize=1)
def workspace() -> Any:
    """Zeroed bytes for its plans."""
    import torch

    return torch.zeros(WORKSPACE, dtype=torch.uint8, device="cuda")


#: (element type, that of keys and values, head dim, whether there is a window) of most cases. Each is a module of its own, for every wrapper.
VARIANTS = (
    ("float16", "float16", 64, False), ("bfloat16", "bfloat16", 64, False), ("bfloat16", "bfloat16", 128, False), ("float16", "float16", 64, True),
)  # fmt: skip
#: The same of those over a cache, which may have 8 bits.
CACHED = (*VARIANTS, *((name, "float8_e4m3fn", head_dim, False) for name, _, head_dim, window in VARIANTS if not window))


def prepare(call: Callable[[Any, Any, Any, int, dict[str, Any]], Any], variants: Sequence[tuple[str, str, int, bool]] = VARIANTS) -> None:
    """call(torch, dtype, keys' dtype, head_dim, options) for every variant, all at the same time: the compiler takes some minutes for each."""
    import torch

    def one(variant: tuple[str, str, int, bool]) -> None:
        name, keys, head_dim, window = variant
        started = time.monotonic()
        try:
            options = {"causal": True, "sm_scale": 1.0, "window_left": 16 if window else -1}
            call(torch, getattr(torch, name), getattr(torch, keys), head_dim, options)
            said = "ready"
        except Exception as e:  # the cases will say it, too
            said = f"{type(e).__name__}: {str(e)[-600:]}"
        print(f"flashinfer {name} {keys} {head_dim}{' window' if window else ''}: {said} after {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)

    workspace()
    with concurrent.futures.ThreadPoolExecutor(len(variants)) as pool:
        list(pool.map(one, variants))


def refuses_mask(p: Problem) -> str:
    if p.masked and p.top_left and not p.square:
        return "its masks begin at the bottom right"
    if p.mask == "window" and p.right != 0:
        return "its window ends at the diagonal"
    return ""


def options(p: Problem) -> dict[str, Any]:
    """Arguments of plan(), and of the single call."""
    return {"causal": p.right == 0, "sm_scale": p.scale, "window_left": p.left, "logits_soft_cap": p.softcap or None}


def pages(torch: Any, p: Problem, call: Any) -> tuple[Any, Any, Any, int]:
    """(offsets, page numbers, keys of the last page, page size) of every sequence's keys; a cache without pages has one
    page for each row."""
    size = p.page_size or p.seqlen_k
    used = [-(-n // size) for n in p.keys]
    offsets = [sum(used[:b]) for b in range(p.batch + 1)]
    if p.page_size:
        numbers = torch.cat([call.block_table[b, :n] for b, n in enumerate(used)])
    elif p.cache_batch_idx is not None:
        numbers = call.cache_batch_idx
    else:
        numbers = torch.arange(p.batch, device=call.q.device)
    last = [n - (u - 1) * size for n, u in zip(p.keys, used)]
    ints = {"dtype": torch.int32, "device": call.q.device}
    return torch.tensor(offsets, **ints), numbers.to(torch.int32), torch.tensor(last, **ints), size


def caches(call: Any) -> tuple[Any, Any]:
    """K and V, copied if they are not aligned, or if their strides differ: its kernels over pages have one set for both. The
    stride of an axis of one element counts, too."""
    k, v = aligned(call.k), aligned(call.v)
    return (k, v) if k.stride() == v.stride() else (copied(k), copied(v))


def scales(p: Problem, call: Any) -> dict[str, Any]:
    """Arguments of run() over a cache of 8 bits: one number for all keys, and one for all values."""
    return {"k_scale": float(call.k_descale[0]), "v_scale": float(call.v_descale[0])} if p.quantized else {}


def refuses_cache(p: Problem) -> str:
    if min(p.keys, default=1) <= 0 or p.seqlen_q == 0:
        return "no rows or no keys"
    if p.quantized and p.quantized_per != "tensor":
        return "one number scales all keys of a cache in 8 bits"
    if p.quantized == "i8":
        return "its caches of 8 bits are of e4m3 or e5m2"
    return refuses_mask(p)
