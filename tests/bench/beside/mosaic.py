#!/usr/bin/env python3
"""Times libfa_attention.so beside JAX's attention on Mosaic GPU, and beside FlashAttention 3's forward and backward.

usage: tests/bench/beside/mosaic.py BENCH_CALL LIBRARY [--rows REGEX] [--reps N]

BENCH_CALL and LIBRARY are as for tests/bench/cudnn.py. Mosaic's kernels (jax.experimental.pallas.ops.gpu.attention_mgpu) come with
JAX; they have no scale, so that all calls here are with a scale of 1, and no mask backward. Of their tile sizes the fastest counts,
among those that its own benchmark tries. FlashAttention 3's forward comes with tokenspeed-fa3, or with fa3-fwd, which is given
bf16 where others have f16; its backward (head dim 128) with flash-attn3-jax. 16,384 tokens, 2,048 channels. What is timed are
CALLS calls one behind the other, until all have ended, by the processor's clock, since JAX's streams take no events; all
participants take turns in random order in one process, and the median counts. Rows are named pass:type:head_dim:seqlen:mask.
TFLOP/s count as in cudnn.py. Outputs are compared with ours. A participant that is not there, or refuses, says why. Exit: 0, 1 if outputs differ, 2 if it cannot run."""
import argparse
import concurrent.futures
import functools
import os
import random
import re
import statistics
import sys
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from cudnn import CHANNELS, TOKENS, TOLERANCE  # noqa: E402
from library import BF16, F16, Call, Libraries, flash_attention_3, stop  # noqa: E402

CALLS = 8
TYPES = {"f16": F16, "bf16": BF16}
# By head dim: rows of a warpgroup, keys, stages. Others need more shared memory than there is, or fewer keys than are worth it.
FORWARD_TILES = {64: [(64, 256, 2), (64, 128, 2), (64, 128, 4)], 128: [(64, 128, 2), (64, 64, 4), (64, 64, 2)], 256: [(64, 64, 2)]}
BACKWARD_TILES = [(64, 64, 64, 64), (64, 128, 64, 128), (128, 64, 128, 64)]


def rows():
    for head_dim in (64, 128, 256):
        for mask in ("full", "causal"):
            yield f"fwd:f16:{head_dim}:8192:{mask}"
    for name in ("fwd:f16:128:2048:full", "fwd:f16:128:2048:causal", "fwd:bf16:128:8192:full", "bwd:f16:64:8192:full", "bwd:f16:128:8192:full"):
        yield name
    for seqlen in (2048, 8192, 16384):
        for mask in ("full", "causal"):
            yield f"bwd:bf16:128:{seqlen}:{mask}"


class Mosaic:
    """One call for each size of tiles that compiles."""

    def __init__(self, jax):
        from jax.experimental.pallas.ops.gpu import attention_mgpu
        self.jax, self.module = jax, attention_mgpu

    def forward(self, q, k, v, causal):
        calls = {}
        for rows_, keys, stages in FORWARD_TILES[q.shape[-1]]:
            config = self.module.TuningConfig(block_q=rows_, block_kv=keys, max_concurrent_steps=stages, causal=causal)
            calls[f"{rows_} x {keys}, {stages} stages"] = functools.partial(self.jax.jit(self.of(config)), q, k, v)
        return calls

    def of(self, config):
        return lambda q, k, v: self.module.attention(q, k, v, config)

    def backward(self, q, k, v, d_o):
        calls, run = {}, self.jax.jit(lambda back, d_o: back(d_o))
        for tiles in BACKWARD_TILES:
            names = ("block_q_dkv", "block_kv_dkv", "block_q_dq", "block_kv_dq")
            config = self.module.TuningConfig(block_q=64, block_kv=64, max_concurrent_steps=2, **dict(zip(names, tiles)))
            _, back = self.jax.vjp(self.of(config), q, k, v)
            calls[" x ".join(map(str, tiles))] = functools.partial(run, back, d_o)
        return calls


def flash_attention_3_jax(jax, row, q, k, v, d_o, o, lse):
    from flash_attn3_jax.flash import _flash_mha_bwd
    options = {"softmax_scale": 1.0, "is_causal": row.causal, "window_size": (-1, -1)}
    return functools.partial(jax.jit(lambda *x: _flash_mha_bwd(*x, **options)), d_o, q, k, v, o, lse)


class Row:
    def __init__(self, torch, jax, libraries, fa3, name):
        which, dtype, head_dim, seqlen, mask = name.split(":")
        self.torch, self.jax, self.name, self.libraries, self.fa3 = torch, jax, name, libraries, fa3
        self.backward, self.causal, self.dtype = which == "bwd", mask == "causal", dtype
        self.head_dim, self.seqlen = int(head_dim), int(seqlen)
        self.batch, self.heads = TOKENS // self.seqlen, CHANNELS // self.head_dim
        kind = torch.float16 if dtype == "f16" else torch.bfloat16
        shape = (self.batch, self.seqlen, self.heads, self.head_dim)
        self.q, self.k, self.v, self.d_o = (torch.randn(shape, device="cuda", dtype=kind) for _ in range(4))
        self.q *= self.head_dim ** -0.5
        self.o = torch.full_like(self.q, float("nan"))
        self.lse = torch.empty(self.batch, self.heads, self.seqlen, device="cuda")
        self.got = [torch.full_like(t, float("nan")) for t in (self.q, self.k, self.v)] if self.backward else [self.o]
        self.run_ours = self.ours()
        self.run_ours()  # O and LSE are inputs of the backward
        torch.cuda.synchronize()
        self.said = []

    def ours(self):
        call = Call(self.batch, self.seqlen, self.heads, self.head_dim, self.causal, 0, 0.0,
                    *(t.data_ptr() for t in (self.q, self.k, self.v, self.d_o, self.o, self.lse)), dtype=TYPES[self.dtype], scale=1.0,
                    stream=self.torch.cuda.current_stream().cuda_stream)
        if self.backward:
            self.libraries.run("ours", False, call)
            call.dq, call.dk, call.dv = (t.data_ptr() for t in self.got)
            call.workspace_bytes = self.libraries.workspace("ours", call)
            self.workspace = self.torch.empty(max(call.workspace_bytes, 1), device="cuda", dtype=self.torch.uint8)
            call.workspace = self.workspace.data_ptr()
        return lambda: self.libraries.run("ours", self.backward, call)

    def in_jax(self, *tensors):
        return [self.jax.dlpack.from_dlpack(t) for t in tensors]

    def subjects(self):
        """{name: (call, whether its outputs are JAX's)}, and in self.said why others are not there."""
        found = {"ours": (self.run_ours, False)}
        if self.fa3 and not self.backward:
            whole = self.fa3.whole or self.dtype == "bf16"
            given = [t if whole else t.to(self.torch.bfloat16) for t in (self.q, self.k, self.v)]
            self.add(found, "FA3" if whole else "FA3-bf16", lambda: {"": lambda: [self.fa3(*given, self.causal, softmax_scale=1.0)]}, False)
        if self.backward and self.head_dim == 128:
            self.add(found, "FA3", lambda: {"": flash_attention_3_jax(self.jax, self, *self.in_jax(self.q, self.k, self.v, self.d_o, self.o, self.lse))})
        if not (self.backward and self.causal):
            inputs = self.in_jax(self.q, self.k, self.v)
            make = (lambda: Mosaic(self.jax).backward(*inputs, *self.in_jax(self.d_o))) if self.backward else (
                lambda: Mosaic(self.jax).forward(*inputs, self.causal))
            self.add(found, "Mosaic", make)
        return found

    def add(self, found, name, make, is_jax=True):
        """The calls that `make` returns, if they work."""
        try:
            calls = make()
        except Exception as e:  # whatever another library says
            self.said.append(f"{name}: {text_of(e)}")
            return
        with concurrent.futures.ThreadPoolExecutor() as pool:  # what is compiled takes seconds each
            done = {tiles: pool.submit(lambda c=call: self.jax.block_until_ready(c()) if is_jax else c()) for tiles, call in calls.items()}
        for tiles, call in calls.items():
            if done[tiles].exception():
                self.said.append(f"{name} {tiles}: {text_of(done[tiles].exception())}")
            else:
                found[f"{name} {tiles}".strip()] = (call, is_jax)

    def seconds(self, call, is_jax):
        begin = time.perf_counter()
        last = [call() for _ in range(CALLS)][-1]
        if is_jax:
            self.jax.block_until_ready(last)
        else:
            self.torch.cuda.synchronize()
        return (time.perf_counter() - begin) / CALLS, last

    def times(self, reps):
        """{name: median of seconds}, and what each returned last."""
        found = self.subjects()
        taken, outputs = {name: [] for name in found}, {}
        for rep in range(reps + 1):
            for name in random.sample(list(found), len(found)):
                seconds, outputs[name] = self.seconds(*found[name])
                if rep:  # the first warms up
                    taken[name].append(seconds)
        return {name: statistics.median(t) for name, t in taken.items()}, outputs

    def differs(self, theirs):
        outputs = theirs if isinstance(theirs, (list, tuple)) else [theirs]
        tensors = [t if isinstance(t, self.torch.Tensor) else self.torch.from_dlpack(t) for t in outputs]
        return not all((a.float() - b.float()).abs().max() <= TOLERANCE * b.float().abs().max() for a, b in zip(self.got, tensors))

    def tflops(self, seconds):
        flop = 4 * self.batch * self.heads * self.seqlen ** 2 * self.head_dim
        return flop * (0.5 if self.causal else 1) * (2.5 if self.backward else 1) / seconds / 1e12


def text_of(error):
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__} {lines[0][:100] if lines else ''}"


def best_of(seconds):
    """Of a peer's sizes of tiles the fastest: {peer: (seconds, tiles)}"""
    best = {}
    for name, t in seconds.items():
        peer, _, tiles = name.partition(" ")
        if peer not in best or t < best[peer][0]:
            best[peer] = (t, tiles)
    return best


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("bench_call")
    parser.add_argument("library")
    parser.add_argument("--rows", default="")
    parser.add_argument("--reps", type=int, default=5)
    args = parser.parse_args()
    libraries = Libraries(args.bench_call, {"ours": args.library})
    try:
        import jax
        import jax.dlpack
        import torch
    except ImportError as e:
        stop(e)
    if not torch.cuda.is_available() or not any(d.platform == "gpu" for d in jax.devices()):
        stop("PyTorch and JAX need a GPU here")
    random.seed(1)
    torch.manual_seed(1)
    fa3, said = flash_attention_3(torch)
    print(f"{torch.cuda.get_device_name()}, JAX {jax.__version__}, {said}", flush=True)
    wrong = False
    for name in filter(re.compile(args.rows).search, rows()):
        row = Row(torch, jax, libraries, fa3, name)
        seconds, outputs = row.times(args.reps)
        words = [f"{peer} {row.tflops(t):.0f}" + (f" [{tiles}]" if tiles else "") for peer, (t, tiles) in best_of(seconds).items()]
        different = [n for n in outputs if n != "ours" and row.differs(outputs[n])]
        wrong |= bool(different)
        print(f"{name:26} " + "  ".join(words + [f"{n} DIFFERS" for n in different]), flush=True)
        for line in row.said:
            print(f"    {line}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
