"""Attention kernels as children for tests/bench/foreign.py: `python3 -m fa_verify.serve tests/bench/foreign_kernels.py:NAME`.

ours     libfa_attention.so, through $FA_BENCH_CALL (build/tests/libbench_call.so) and $FA_BENCH_LIBRARY
cudnn    PyTorch's scaled_dot_product_attention, held to cuDNN
fa3      FlashAttention 3 of the package fa3-fwd or tokenspeed-fa3
math, flash_cpu    PyTorch's on the processor: to try all this without a GPU

Tensors are [B, S, H, D]; only O is delivered."""
import ctypes
import functools
import importlib
import os
import sys

import torch

import fa_verify

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cudnn as side_by_side  # noqa: E402  tests/bench/cudnn.py

GPU = {"arrays": "torch", "device": "cuda:0", "dtypes": ["bf16"], "causal": True, "bottom_right": True, "arithmetic": "wgmma-sm90"}
CPU = {"arrays": "torch", "device": "cpu", "causal": True, "bottom_right": False, "arithmetic": "recorded"}


def swapped(*tensors):
    return [t.transpose(1, 2) for t in tensors]


@functools.lru_cache(maxsize=1)
def library():
    return side_by_side.Libraries(os.environ["FA_BENCH_CALL"], {"ours": os.environ["FA_BENCH_LIBRARY"]})


@fa_verify.kernel(name="ours", head_dim={"among": [64, 128, 192, 256]}, **GPU)
def ours(call):
    batch, seqlen, heads, head_dim = call.q.shape
    q, k, v = (t.contiguous() for t in (call.q, call.k, call.v))
    o = torch.empty_like(q)
    lse = torch.empty(batch, heads, seqlen, device=q.device, dtype=torch.float32)
    pointers = {name: ctypes.c_void_p(t.data_ptr()) for name, t in (("q", q), ("k", k), ("v", v), ("o", o), ("lse", lse))}
    record = side_by_side.Call(batch, seqlen, heads, head_dim, call.causal, False, 0.0, **pointers, scale=call.scale,
                               stream=torch.cuda.current_stream().cuda_stream)
    library().run("ours", False, record)
    return o


@fa_verify.kernel(name="cudnn", head_dim={"max": 256, "multiple_of": 8}, **GPU)
def cudnn(call):
    q, k, v = swapped(call.q, call.k, call.v)
    with torch.no_grad(), torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.CUDNN_ATTENTION):
        o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=call.causal, scale=call.scale)
    return o.transpose(1, 2)


@functools.lru_cache(maxsize=1)
def flash_attention_3():
    """Its function, or None where neither package is installed."""
    for module in ("fa3_fwd_interface", "flash_attn_interface"):
        try:
            return importlib.import_module(module).flash_attn_func
        except ImportError:
            continue
    return None


@fa_verify.kernel(name="fa3", head_dim={"among": [64, 128, 192, 256]}, **GPU)
def fa3(call):
    out = flash_attention_3()(call.q, call.k, call.v, softmax_scale=call.scale, causal=call.causal)
    return out[0] if isinstance(out, tuple) else out


def on_processor(call, backend):
    q, k, v = swapped(call.q, call.k, call.v)
    with torch.no_grad(), torch.nn.attention.sdpa_kernel(backend):
        o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=call.causal, scale=call.scale)
    return o.transpose(1, 2)


@fa_verify.kernel(name="math", **CPU)
def math(call):
    return on_processor(call, torch.nn.attention.SDPBackend.MATH)


@fa_verify.kernel(name="flash_cpu", **CPU)
def flash_cpu(call):
    return on_processor(call, torch.nn.attention.SDPBackend.FLASH_ATTENTION)
