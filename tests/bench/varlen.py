#!/usr/bin/env python3
"""Times packed sequences of many lengths: libfa_attention.so's forward and FlashAttention 3's, beside our fixed-length rate.

usage: tests/bench/varlen.py BENCH_CALL LIBRARY [D ...]

BENCH_CALL and LIBRARY are as for tests/bench/cudnn.py. 64 sequences whose lengths are drawn log-uniformly from 64 to 8,192, causal,
bf16, 2,048 channels. TFLOP/s count the visible pairs alone: 4 D H times the sum of n (n + 1) / 2. "fixed": our rate for
sequences of one length with about as many pairs for each row, whose visible pairs count likewise. All take turns in random
order in one process; medians. FlashAttention 3 comes with the package tokenspeed-fa3 or fa3-fwd; without them the first line says why it is
left out. Exit: 0, 1 if our output differs from FlashAttention 3's, 2 if it cannot run."""
import math
import random
import sys

from cudnn import CHANNELS, TOLERANCE, by_turns
from library import Call, Libraries, flash_attention_3

SEQUENCES, SHORTEST, LONGEST, REPS = 64, 64, 8192, 15


def draw_lengths():
    return [round(math.exp(random.uniform(math.log(SHORTEST), math.log(LONGEST)))) for _ in range(SEQUENCES)]


def pairs(lengths):
    return sum(n * (n + 1) // 2 for n in lengths)


class Problem:
    """Sequences of these lengths, packed; or, all of one length, with a batch axis."""

    def __init__(self, torch, libraries, fa3, head_dim, lengths, packed):
        self.torch, self.lengths, self.total = torch, lengths, sum(lengths)
        heads = CHANNELS // head_dim
        self.flop = 4 * head_dim * heads * pairs(lengths)
        self.q, self.k, self.v = (torch.randn(self.total, heads, head_dim, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        self.o = torch.full_like(self.q, float("nan"))
        self.lse = torch.empty(heads * self.total, device="cuda")
        starts = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
        self.cu = torch.tensor(starts, device="cuda", dtype=torch.int32)
        self.call = Call(len(lengths), max(lengths), heads, head_dim, 1, 0, 0.0,
                         *(t.data_ptr() for t in (self.q, self.k, self.v, self.q, self.o, self.lse)),
                         stream=torch.cuda.current_stream().cuda_stream)
        if packed:
            self.call.cu_seqlens, self.call.total = self.cu.data_ptr(), self.total
        self.libraries, self.peer = libraries, fa3

    def ours(self):
        self.libraries.run("ours", False, self.call)

    def fa3(self):
        longest = max(self.lengths)
        self.theirs = self.peer(self.q, self.k, self.v, True, cu_seqlens_q=self.cu, cu_seqlens_k=self.cu, max_seqlen_q=longest,
                                max_seqlen_k=longest)


def row(torch, libraries, fa3, head_dim, lengths):
    """Its text, and whether outputs are alike."""
    alike = round(2 * pairs(lengths) / sum(lengths))  # keys of as many pairs for each row
    one = [alike] * max(1, sum(lengths) // alike)
    packed, fixed = Problem(torch, libraries, fa3, head_dim, lengths, True), Problem(torch, libraries, fa3, head_dim, one, False)
    subjects = {"ours": packed.ours, "fixed": fixed.ours}
    if fa3:
        subjects["FA3"] = packed.fa3
    rate = {n: (fixed if n == "fixed" else packed).flop / t / 1e9 for n, t in by_turns(torch, subjects, REPS).items()}
    words = [f"D {head_dim:3}  {len(lengths)} sequences, {sum(lengths)} tokens; fixed: {len(one)} of {alike}"]
    words += [f"{n} {x:.0f}" for n, x in rate.items()] + [f"ours/fixed {rate['ours'] / rate['fixed']:.3f}"]
    if not fa3:
        return "  ".join(words), True
    difference = (packed.o.float() - packed.theirs.float()).abs().max()
    return "  ".join(words + [f"ours/FA3 {rate['ours'] / rate['FA3']:.3f}"]), bool(difference <= TOLERANCE * packed.theirs.abs().max())


def main(arguments):
    if len(arguments) < 2:
        sys.exit(__doc__.split("\n\n")[1])
    import torch
    libraries = Libraries(arguments[0], {"ours": arguments[1]})
    random.seed(1)
    torch.manual_seed(1)
    fa3, said = flash_attention_3(torch)
    print(f"{torch.cuda.get_device_name()}, {said}", flush=True)
    lengths, wrong = draw_lengths(), 0
    for head_dim in map(int, arguments[2:] or (64, 128, 256)):
        text, same = row(torch, libraries, fa3, head_dim, lengths)
        wrong += not same
        print(text + ("" if same else "  DIFFERS"), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
