#!/usr/bin/env python3
"""How many cases a second the customary check makes: PyTorch's attention in float32 as the reference, and allclose.

usage: tests/bench/customary.py [--jobs N] [--seconds T]

Each of N processes draws calls of the size of `fa-verify random --profile rate-gpu` (B <= 2, H <= 4, lengths up to 1,024, D 64 or 128,
bf16 or f16, causal or not), runs scaled_dot_product_attention's flash kernels forward and backward, the same in float32 by its
formula, and compares O, dQ, dK and dV. Nothing else is checked: no bounds, no repeats, no guards. Prints cases a second of all processes,
without the first second of each. Exit: 0, 2 if it cannot run."""
import argparse
import math
import multiprocessing
import random
import sys
import time

TOLERANCE = {"rtol": 1e-2, "atol": 1e-2}


def formula(torch, q, k, v, causal):
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1), -math.inf)
    return torch.softmax(scores, -1) @ v


def gradients(out, d_o, tensors):
    out.backward(d_o.to(out.dtype))
    return [out.detach(), *(t.grad for t in tensors)]


def one_case(torch, draw):
    n, head_dim = draw.randint(1, 1024), draw.choice((64, 128))
    shape = (draw.randint(1, 2), draw.randint(1, 4), n, head_dim)
    dtype, causal = draw.choice((torch.bfloat16, torch.float16)), draw.random() < 0.5
    data = [torch.randn(shape, device="cuda", dtype=dtype) for _ in range(4)]
    ours = [t.clone().requires_grad_() for t in data[:3]]
    wide = [t.float().requires_grad_() for t in data[:3]]
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
        got = gradients(torch.nn.functional.scaled_dot_product_attention(*ours, is_causal=causal), data[3], ours)
    want = gradients(formula(torch, *wide, causal), data[3], wide)
    return all(torch.allclose(g.float(), w, **TOLERANCE) for g, w in zip(got, want))


def process(seed, seconds, results):
    import torch
    draw, n, passed = random.Random(seed), 0, 0
    one_case(torch, draw)
    begin = time.time()
    while time.time() < begin + 1 + seconds:
        said = one_case(torch, draw)
        if time.time() > begin + 1:
            n, passed = n + 1, passed + said
    results.put((n, passed))


def main(words):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--jobs", type=int, default=16)
    p.add_argument("--seconds", type=float, default=8.0)
    a = p.parse_args(words)
    try:
        import torch
    except ImportError:
        torch = None
    if torch is None or not torch.cuda.is_available():
        print("no PyTorch with a GPU", file=sys.stderr)
        return 2
    spawn = multiprocessing.get_context("spawn")
    results = spawn.Queue()
    running = [spawn.Process(target=process, args=(seed, a.seconds, results)) for seed in range(a.jobs)]
    for one in running:
        one.start()
    said = [results.get() for _ in running]
    n, passed = (sum(x) for x in zip(*said))
    print(f"customary check: {n / a.seconds:.0f} cases a second, {a.jobs} processes, {passed} of {n} within rtol {TOLERANCE['rtol']}, atol {TOLERANCE['atol']}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
