#!/usr/bin/env python3
"""Times decoding inside CUDA graphs: ours, cuDNN's and FlashAttention 3's.

usage: tests/bench/decode.py BENCH_KV [D,HQ,HK,KEYS,BATCH ...]

BENCH_KV is build/tests/bench/bench_kv. One row of queries over KEYS keys a sequence, bf16, keys of all heads side by side; 20
calls in a graph, the median of 15 replays, in microseconds a call. Each process takes its turn, ours first and last. cuDNN
comes with PyTorch, FlashAttention 3 with the package fa3-fwd; without it its column says why. The last column is the floor:
bytes of keys and values at 3.02 TB/s, some of which lie in the L2 cache where they are fewer than 50 MB."""
import re
import statistics
import subprocess
import sys

CALLS, REPLAYS, BYTES_PER_US = 20, 15, 3.02e6
ROWS = ["128,32,8,1024,1", "128,32,8,8192,1", "128,32,8,8192,16", "128,32,8,131072,1", "128,32,8,1024,64", "64,32,32,8192,1",
        "64,32,32,8192,16", "256,16,4,8192,1"]


def in_graph(torch, call):
    """Microseconds of one call among CALLS."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(CALLS):
                call()
        times = []
        for rep in range(REPLAYS + 2):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end) * 1000 / CALLS)
    return statistics.median(times[2:])


def ours(bench_kv, row):
    """Its time in a row, and the kernel's name."""
    said = subprocess.run([bench_kv, row], check=True, capture_output=True, text=True).stdout
    return float(re.search(r"in a row +([\d.]+) us", said).group(1)), said.split()[-1]


def peers(torch, row):
    """{name: a function that makes the call}"""
    d, hq, hk, keys, batch = row
    q = torch.randn(batch, 1, hq, d, device="cuda", dtype=torch.bfloat16)
    k, v = (torch.randn(batch, keys, hk, d, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    heads_first = [t.transpose(1, 2) for t in (q, k, v)]
    attention = torch.nn.functional.scaled_dot_product_attention
    calls = {"cuDNN": lambda: attention(*heads_first, enable_gqa=hq != hk)}
    try:
        import fa3_fwd_interface  # noqa: F401  registers the operator
        calls["FA3"] = lambda: torch.ops.fa3_fwd.fwd(q, k, v, is_causal=True, num_splits=0)[0]
    except ImportError as e:
        print(f"no FlashAttention 3 ({e})")
    return calls


def main(arguments):
    if not arguments:
        sys.exit(__doc__.split("\n\n")[1])
    import torch
    print(f"{torch.cuda.get_device_name()}, cuDNN {torch.backends.cudnn.version()}")
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.CUDNN_ATTENTION), torch.no_grad():
        for text in arguments[1:] or ROWS:
            row = [int(x) for x in text.split(",")]
            first, _ = ours(arguments[0], text)
            times = {}
            for name, call in peers(torch, row).items():
                try:
                    times[name] = f"{in_graph(torch, call):.1f}"
                except RuntimeError as e:
                    times[name] = str(e).splitlines()[0][:60]
            last, kernel = ours(arguments[0], text)
            floor = 2 * row[2] * row[3] * row[4] * row[0] * 2 / BYTES_PER_US
            print(f"{text:20} ours {first:.1f} / {last:.1f} ({kernel})", *(f"{n} {t}" for n, t in times.items()),
                  f"floor {floor:.1f}", sep="  ", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
