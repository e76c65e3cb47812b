"""flex_attention of PyTorch, compiled: the Triton kernels that torch.compile writes for a case's expressions, forward and backward.

A kernel is compiled for each combination of element type, heads, head dims and expressions (some 10 to 40 s); lengths
and masks share one. Cases with few combinations judge fastest."""

from __future__ import annotations

import os
from typing import Any

from fa_verify.adapters import _flex
from fa_verify.adapters._adapter import Adapter
from fa_verify.adapters._problem import Problem
from fa_verify.adapters._torch import cuda_missing

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # a pool of workers starts slower than it compiles a kernel or two
_COMPILED: dict[str, Any] = {}
_TILE = {"backward": 0}  # 0: as the compiler likes


def _choose_tiles() -> None:
    """Makes the compiler ask for the tiles of the backward here. Of itself it takes one size for each kind of GPU, and finds no
    kernel where that does not divide the mask's blocks, whatever tile the call's own options name. By the class and not by a
    handler, since handlers belong to a thread, and the backward is compiled in another one."""
    from torch._inductor.choices import InductorChoices
    from torch._inductor.template_heuristics.triton import FlexBwDConfig

    usual = InductorChoices.get_flex_attention_bwd_configs

    def configs(self: Any, head_dim: int, dtype: Any, device_type: str | None = "cuda") -> list[Any]:
        n = _TILE["backward"]
        return [FlexBwDConfig(n, n, n, n, 2, 4)] if n else usual(self, head_dim, dtype, device_type)

    InductorChoices.get_flex_attention_bwd_configs = configs


def compiled(kind: str, dynamic: bool = True) -> Any:
    """flex_attention through torch.compile; one for each kind of call, so that one's recompilations do not use up the others'."""
    import torch
    from torch.nn.attention.flex_attention import flex_attention

    if not _COMPILED:
        _choose_tiles()
    if kind not in _COMPILED:
        torch._dynamo.config.specialize_float = True  # a float that a score_mod reads becomes part of the kernel, or tracing fails
        torch._dynamo.config.recompile_limit = 1 << 20
        torch._dynamo.config.accumulated_recompile_limit = 1 << 20
        _COMPILED[kind] = torch.compile(flex_attention, dynamic=dynamic)
    return _COMPILED[kind]


def tile(block: int, largest: int) -> int:
    """The largest power of two up to `largest` that divides a block."""
    return min(block & -block, largest)


def options_for(p: Problem) -> dict[str, Any]:
    """Tile sizes of the forward that the case's blocks are multiples of; nothing where the compiler's own choice fits."""
    if not p.has_blocks or (p.q_block % 128 == 0 and p.kv_block % 128 == 0):
        return {}
    m, n = tile(p.q_block, 64), tile(p.kv_block, 64)
    return {"fwd_BLOCK_M": m, "fwd_BLOCK_N": n}


def refuses(p: Problem, backward: bool) -> str:
    if p.has_blocks and min(tile(p.q_block, 64), tile(p.kv_block, 64)) < 16:
        return "blocks that are no multiples of 16"
    return _flex.refuses(p, backward)


def _run(call: Any) -> Any:
    p = Problem(call.json)
    options = options_for(p)
    _TILE["backward"] = min(options["fwd_BLOCK_M"], options["fwd_BLOCK_N"]) if options else 0
    kind = f"{p.dtype} {p.score_mod} {p.mask_mod} {sorted(p.buffer_specs)} {p.has_blocks} {call.wants_gradients}"
    return _flex.run(call, compiled(kind), call.wants_gradients, kernel_options={**options, "BACKEND": "TRITON"})


#: Gradients of what a score_mod reads, of a bias too, are added up in memory.
_COMMON = {"delta": "stored_o", "fast_functions": True, "dbuffer_atomic": True, "dbias_atomic": True}

KERNEL = Adapter(
    name="torch_flex",
    what="PyTorch flex_attention, compiled to Triton",
    library="torch",
    modules=("torch", "triton"),
    run=_run,
    families=("flash", "memeff", "flex"),
    features=(*_flex.FEATURES, "bias_grad", "captures_grad", "dlse"),
    passes=("forward", "backward"),
    outputs=("o", "lse", "dq", "dk", "dv", "dbias", "dbuffers"),
    lse={"base": "e", "scaled": True, "layout": "as_call", "dtype": "f32", "empty": "-inf", "alibi": "distance"},
    limits={"head_dim": {"min": 16}, "head_dim_v": {"min": 16}},  # smaller ones end in an error of its compiler
    arithmetic={
        "f32": {"name": "simt-f32", **_COMMON},
        "f16": {"name": "triton", **_COMMON},
        "bf16": {"name": "triton", **_COMMON},
    },
    refuses=refuses,
    missing=cuda_missing,
    arrays="torch",
    device="cuda:0",
).kernel()
