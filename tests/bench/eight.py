#!/usr/bin/env python3
"""Times the forward kernels for e4m3 beside FlashAttention 3's and cuDNN's and beside our own of bf16, on the same numbers.

usage: tests/bench/eight.py BENCH_CALL [NAME=]LIBRARY... [--rows REGEX] [--reps N]

BENCH_CALL is build/tests/libbench_call.so, LIBRARY build/gpu/libfa_attention.so, or several builds of it with distinct names, of
which the first has bf16 too and the ratios; FlashAttention 3 comes with the package
tokenspeed-fa3 or fa3-fwd, cuDNN's with nvidia-cudnn-frontend (O is of e4m3 there). Rows, counts, turns and medians are those of tests/bench/cudnn.py; beside each of them is the clock that all else is
measured by, a product of two e4m3 matrices of 8192 x 8192. Printed are TFLOP/s, the ratios to FlashAttention 3, cuDNN and bf16, and
the largest difference from bf16's output, by its largest element: FlashAttention 3 keeps one sum of 13 bits over all keys.
Exit: 0, 1 if ours differs by more than e4m3 explains, 2 if it cannot run."""
import argparse
import random
import re
import statistics
import sys

import cudnn as side_by_side
from cudnn_eight import CudnnEight
from library import Call, Libraries, flash_attention_3, stop

TOLERANCE = 0.05  # P is rounded to 4 bits, and the errors of many keys cancel


def rows():
    for head_dim in (64, 128, 256):
        for seqlen in (2048, 8192, 16384):
            for mask in ("full", "causal"):
                yield f"{head_dim}:{seqlen}:{mask}"


class Row:
    """The tensors of a row, and a function for each participant."""

    def __init__(self, torch, libraries, fa3, cudnn, name):
        head_dim, seqlen, mask = name.split(":")
        self.head_dim, self.seqlen, self.causal = int(head_dim), int(seqlen), mask == "causal"
        self.batch, self.heads = max(1, side_by_side.TOKENS // self.seqlen), side_by_side.CHANNELS // self.head_dim
        shape = (self.batch, self.seqlen, self.heads, self.head_dim)
        eight = [torch.randn(shape, device="cuda").to(torch.float8_e4m3fn) for _ in range(3)]
        sixteen = [t.to(torch.bfloat16) for t in eight]
        self.lse = torch.empty(self.batch, self.heads, self.seqlen, device="cuda")
        names = list(libraries.opened)
        self.outputs = {n: torch.full(shape, float("nan"), device="cuda", dtype=torch.bfloat16) for n in [*names, "bf16"]}
        self.subjects = {n: self.ours(torch, libraries, n, eight, n) for n in names}
        self.subjects["bf16"] = self.ours(torch, libraries, names[0], sixteen, "bf16")
        if fa3:
            self.subjects["FA3"] = lambda: self.outputs.__setitem__("FA3", fa3(*eight, self.causal))
        if cudnn:
            self.subjects["cuDNN"] = cudnn.attention(*eight, self.causal, self.head_dim ** -0.5)

    def ours(self, torch, libraries, library, inputs, name):
        call = Call(self.batch, self.seqlen, self.heads, self.head_dim, self.causal, False, 0.0,
                                 *(t.data_ptr() for t in inputs), None, self.outputs[name].data_ptr(), self.lse.data_ptr(),
                                 stream=torch.cuda.current_stream().cuda_stream, e4m3=name != "bf16")
        return lambda keep=inputs: libraries.run(library, False, call)

    def flops(self):
        pairs = self.seqlen * (self.seqlen + 1) / 2 if self.causal else self.seqlen ** 2
        return 4 * self.batch * self.heads * pairs * self.head_dim

    def difference(self, name):
        want, got = self.outputs["bf16"].float(), self.outputs[name].float()
        off = (got - want).abs().max() / want.abs().max()
        return float(off)  # NaN if an element was not written


def find_cudnn(torch):
    """CudnnEight, or None, and what to say of it."""
    try:
        found = CudnnEight(torch)
    except (ImportError, RuntimeError) as e:
        return None, f"no cuDNN in 8 bits ({e})"
    return found, f"cuDNN {found.cudnn.backend_version()}"


def product(torch):
    """2 * 8192^3 operations in 8 bits."""
    a, b = (torch.randn(8192, 8192, device="cuda").to(torch.float8_e4m3fn) for _ in range(2))
    one = torch.ones((), device="cuda")
    return lambda: torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True)


def times(torch, subjects, reps):
    """{name: median of milliseconds}, by turns in random order; the first two turns do not count."""
    taken = {name: [] for name in subjects}
    for turn in range(reps + 2):
        for name in random.sample(list(subjects), len(subjects)):
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            first.record()
            subjects[name]()
            last.record()
            last.synchronize()
            if turn >= 2:
                taken[name].append(first.elapsed_time(last))
    return {name: statistics.median(t) for name, t in taken.items()}


def ratio(ms, first, to):
    return f"{ms[to] / ms[first]:6.2f}" if to in ms else "     -"


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1])
    parser.add_argument("bench_call")
    parser.add_argument("libraries", nargs="+")
    parser.add_argument("--rows", default="")
    parser.add_argument("--reps", type=int, default=15)
    args = parser.parse_args()
    try:
        import torch
    except ImportError as e:
        stop(e)
    named = dict(l.split("=", 1) if "=" in l else ("e4m3", l) for l in args.libraries)
    libraries, first = Libraries(args.bench_call, named), next(iter(named))
    fa3, what = flash_attention_3(torch)
    cudnn, what_cudnn = find_cudnn(torch)
    print(f"{torch.cuda.get_device_name()}; beside {what}, {what_cudnn}")
    columns, peers = [*named, "FA3", "cuDNN", "bf16", "gemm"], ["FA3", "cuDNN", "bf16"]
    print(f"{'row':18} " + " ".join(f"{n:>6}" for n in columns) + "".join(f" {'to ' + n:>8}" for n in peers) + "   off: ours    FA3")
    wrong = False
    for name in filter(re.compile(args.rows).search, rows()):
        row = Row(torch, libraries, fa3, cudnn, name)
        ms = times(torch, {**row.subjects, "gemm": product(torch)}, args.reps)
        speed = {n: (2 * 8192 ** 3 if n == "gemm" else row.flops()) / t / 1e9 for n, t in ms.items()}
        off = {n: row.difference(n) for n in row.outputs}
        wrong |= not all(off[n] <= TOLERANCE for n in named)
        print(f"{name:18} " + " ".join(f"{speed.get(n, float('nan')):6.0f}" for n in columns) +
              "".join(f" {ratio(ms, first, n):>8}" for n in peers) + f"   {max(off[n] for n in named):9.4f} "
              f"{off.get('FA3', float('nan')):6.4f}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
