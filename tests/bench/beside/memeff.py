#!/usr/bin/env python3
"""Times libfa_attention.so beside PyTorch's memory-efficient kernels: float32, a bias with its gradient, linear dropout.

usage: tests/bench/beside/memeff.py BENCH_CALL LIBRARY [--rows REGEX] [--reps N]

BENCH_CALL and LIBRARY are as for tests/bench/cudnn.py. Rows are named type:head_dim:seqlen:what; what is full, causal, dropout (0.1),
bias (each sequence's own, with its gradient), shared (one bias for all sequences, whose gradient is summed). float32: 4,096 tokens and
2,048 channels, or 8,192 and 512 at S = 8192; with a bias 16,384 tokens and 512 channels; else 16,384 and 2,048. Theirs are the
operators themselves, with the sum over sequences where a bias is shared. Turns, medians and TFLOP/s as in cudnn.py. Exit: 0, 1 if
outputs differ, 2 if it cannot run."""
import argparse
import os
import random
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from cudnn import DROPOUT, TOLERANCE, by_turns  # noqa: E402
from library import BF16, F32, Call, Libraries, stop  # noqa: E402


def rows():
    for head_dim in (64, 128):
        for seqlen in (2048, 8192):
            for mask in ("full", "causal"):
                yield f"f32:{head_dim}:{seqlen}:{mask}"
        yield from (f"bf16:{head_dim}:2048:{what}" for what in ("bias", "shared", "dropout"))
        yield f"bf16:{head_dim}:8192:dropout"


class Row:
    def __init__(self, torch, libraries, name):
        dtype, head_dim, seqlen, self.what = name.split(":")
        self.torch, self.libraries, self.name = torch, libraries, name
        self.head_dim, self.seqlen, self.causal = int(head_dim), int(seqlen), self.what == "causal"
        self.dropout = DROPOUT if self.what == "dropout" else 0.0
        biased, f32 = self.what in ("bias", "shared"), dtype == "f32"
        tokens, channels = (16384, 512) if biased else (16384, 2048) if not f32 else (4096, 2048) if self.seqlen == 2048 else (8192, 512)
        self.batch, self.heads = tokens // self.seqlen, channels // self.head_dim
        self.dtype = torch.float32 if f32 else torch.bfloat16
        self.q, self.k, self.v, self.d_o = (self.random(self.batch, self.seqlen, self.heads, self.head_dim) for _ in range(4))
        of = self.batch if self.what == "bias" else 1
        self.bias = self.random(of, self.heads, self.seqlen, self.seqlen) if biased else None
        self.o, *self.gradients = (torch.full_like(t, float("nan")) for t in (self.q, self.q, self.k, self.v))
        if biased:
            self.gradients.append(torch.full_like(self.bias, float("nan")))

    def random(self, *shape):
        return self.torch.randn(shape, device="cuda", dtype=self.dtype)

    def ours(self):
        torch = self.torch
        self.lse = torch.empty(self.batch, self.heads, self.seqlen, device="cuda")
        call = Call(self.batch, self.seqlen, self.heads, self.head_dim, self.causal, 0, self.dropout,
                    *(t.data_ptr() for t in (self.q, self.k, self.v, self.d_o, self.o, self.lse)),
                    dtype=F32 if self.dtype == torch.float32 else BF16, linear_dropout=1, stream=torch.cuda.current_stream().cuda_stream)
        if self.bias is not None:
            call.bias, call.bias_of_each = self.bias.data_ptr(), self.what == "bias"
            call.dbias = self.gradients[3].data_ptr()
        call.dq, call.dk, call.dv = (t.data_ptr() for t in self.gradients[:3])
        call.workspace_bytes = self.libraries.workspace("ours", call)
        self.room = torch.empty(max(call.workspace_bytes, 1), device="cuda", dtype=torch.uint8)
        call.workspace = self.room.data_ptr()
        run = self.libraries.run
        run("ours", False, call)
        return (lambda: run("ours", False, call)), (lambda: run("ours", True, call))

    def pytorch(self):
        aten, n = self.torch.ops.aten, (None, None)
        bias = self.bias if self.bias is None else self.bias.expand(self.batch, -1, -1, -1)
        kind = 1 if self.causal else 0

        def forward():
            self.theirs = aten._efficient_attention_forward(self.q, self.k, self.v, bias, *n, *n, self.dropout, kind, True)
            return self.theirs

        def backward():
            o, lse, seed, offset, most_q, most_k = self.theirs
            found = list(aten._efficient_attention_backward(self.d_o, self.q, self.k, self.v, bias, o, *n, most_q, most_k, lse,
                                                            self.dropout, seed, offset, kind, bias is not None))
            if self.what == "shared":
                found[3] = found[3].sum(0, keepdim=True)
            self.their_gradients = found
        forward()
        return forward, backward

    def differs(self):
        if self.dropout:
            return False
        pairs = zip((self.o, *self.gradients), (self.theirs[0], *self.their_gradients))
        return not all((a.float() - b.float()).abs().max() <= TOLERANCE * b.float().abs().max() for a, b in pairs)

    def text(self, reps):
        calls, words = {"ours": self.ours(), "PyTorch": self.pytorch()}, []
        for backward in (0, 1):
            flop = 4 * self.batch * self.heads * self.seqlen ** 2 * self.head_dim * (0.5 if self.causal else 1) * (2.5 if backward else 1)
            rate = {n: flop / t / 1e9 for n, t in by_turns(self.torch, {n: c[backward] for n, c in calls.items()}, reps).items()}
            words.append(f"{'bwd' if backward else 'fwd'} {rate['ours']:.1f} / {rate['PyTorch']:.1f} ({rate['ours'] / rate['PyTorch']:.2f})")
        return f"{self.name:24} " + "  ".join(words)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("bench_call")
    parser.add_argument("library")
    parser.add_argument("--rows", default="")
    parser.add_argument("--reps", type=int, default=9)
    args = parser.parse_args()
    libraries = Libraries(args.bench_call, {"ours": args.library})
    try:
        import torch
    except ImportError as e:
        stop(e)
    if not torch.cuda.is_available():
        stop("there is no GPU")
    random.seed(1)
    torch.manual_seed(1)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; TFLOP/s, ours / PyTorch's", flush=True)
    wrong = 0
    for name in filter(re.compile(args.rows).search, rows()):
        row = Row(torch, libraries, name)
        text, different = row.text(args.reps), row.differs()
        wrong += different
        print(text + ("  DIFFERS" if different else ""), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
