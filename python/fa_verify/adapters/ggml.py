"""llama.cpp's flash attention on the processor: ggml_flash_attn_ext, called in the library that xllamacpp carries.

Queries are float32 there, keys and values of the call's type; what it returns in float32 is rounded to the call's type.
Masks are given as an additive tensor of every pair. With values in f16 and few rows it adds up O in f16."""

from __future__ import annotations

import ctypes
import functools
import glob
import os
from typing import Any

import numpy as np

from fa_verify._dtypes import f32_to_bf16
from fa_verify.adapters._adapter import Adapter, result
from fa_verify.adapters._problem import Problem

_KIND = {"f32": 0, "f16": 1, "bf16": 30}  # ggml_type


class _Init(ctypes.Structure):
    """ggml_init_params."""

    _fields_ = [("mem_size", ctypes.c_size_t), ("mem_buffer", ctypes.c_void_p), ("no_alloc", ctypes.c_bool)]


@functools.lru_cache(maxsize=1)
def _library() -> Any:
    import xllamacpp

    (path,) = glob.glob(os.path.join(os.path.dirname(xllamacpp.__file__), "*.so"))
    lib = ctypes.CDLL(path)
    pointer, real = ctypes.c_void_p, ctypes.c_float
    for name, kinds in (
        ("ggml_init", [_Init]),
        ("ggml_new_tensor_4d", [pointer, ctypes.c_int] + [ctypes.c_int64] * 4),
        ("ggml_get_data", [pointer]),
        ("ggml_flash_attn_ext", [pointer] * 5 + [real] * 3),
        ("ggml_flash_attn_ext_set_prec", [pointer, ctypes.c_int]),
        ("ggml_new_graph", [pointer]),
        ("ggml_build_forward_expand", [pointer] * 2),
        ("ggml_graph_compute_with_ctx", [pointer, pointer, ctypes.c_int]),
        ("ggml_free", [pointer]),
    ):
        function = getattr(lib, name)
        function.argtypes, function.restype = kinds, pointer
    return lib


def _tensor(lib: Any, context: Any, x: Any, kind: str) -> Any:
    """A tensor of ggml with the values of a numpy array of four axes, whose last is ggml's first."""
    stored = f32_to_bf16(np.asarray(x, np.float32)) if kind == "bf16" else np.asarray(x, {"f32": np.float32, "f16": np.float16}[kind])
    dense = np.ascontiguousarray(stored)
    t = lib.ggml_new_tensor_4d(context, _KIND[kind], *reversed(dense.shape))
    ctypes.memmove(lib.ggml_get_data(t), dense.ctypes.data, dense.nbytes)
    return t


def _mask(p: Problem) -> Any:
    """0 or -inf for every pair, [1, 1, Sq, Sk]; None if every pair is seen."""
    if not p.masked:
        return None
    away = np.arange(p.seqlen_k)[None, :] - np.arange(p.seqlen_q)[:, None] - p.shift()
    hidden = ((p.right >= 0) & (away > p.right)) | ((p.left >= 0) & (away < -p.left))
    return np.where(hidden, -np.inf, 0)[None, None]


def run(call: Any, precision: int = 0) -> Any:
    """One call; precision: a ggml_prec, 0 for what the library takes by itself."""
    p, lib = Problem(call.json), _library()
    q, k, v = (np.swapaxes(getattr(call, name), 1, 2) for name in "qkv")
    room = 4 * (q.size + k.size + v.size + 2 * p.batch * p.seqlen_q * p.heads_q * p.head_dim_v + p.seqlen_q * p.seqlen_k)
    context = lib.ggml_init(_Init(2 * room + (64 << 20), None, False))
    try:
        shown = _mask(p)
        mask = None if shown is None else _tensor(lib, context, shown, "f16")
        inputs = [_tensor(lib, context, q, "f32"), _tensor(lib, context, k, p.dtype), _tensor(lib, context, v, p.dtype)]
        node = lib.ggml_flash_attn_ext(context, *inputs, mask, p.scale, 0.0, p.softcap)
        lib.ggml_flash_attn_ext_set_prec(node, precision)
        graph = lib.ggml_new_graph(context)
        lib.ggml_build_forward_expand(graph, node)
        lib.ggml_graph_compute_with_ctx(context, graph, 1)
        shape = (p.batch, p.seqlen_q, p.heads_q, p.head_dim_v)
        found = (ctypes.c_float * int(np.prod(shape))).from_address(lib.ggml_get_data(node))
        return result(o=np.frombuffer(found, np.float32).reshape(shape).copy())
    finally:
        lib.ggml_free(context)


def refuses(p: Problem, backward: bool) -> str:
    return "no rows or no keys" if p.nothing_there else ""


FEATURES = ("causal", "window", "top_left", "bottom_right", "gqa", "softcap", "empty_lse")
LIMITS = {"head_dim": {"multiple_of": 8}}

KERNEL = Adapter(
    name="ggml",
    what="llama.cpp's flash attention on the processor",
    library="xllamacpp",
    modules=("xllamacpp",),
    run=run,
    features=FEATURES,
    limits=LIMITS,
    arithmetic={
        "f32": {"name": "simt-f32"},
        "f16": {"name": "simt-f32", "p": "f16", "accumulator_pv": "f16", "mma_block": 1},
        "bf16": {"name": "simt-f32"},
    },
    refuses=refuses,
).kernel()
