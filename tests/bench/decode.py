#!/usr/bin/env python3
"""Times decoding inside CUDA graphs: ours, cuDNN's, FlashAttention 3's and FlashInfer's.

usage: tests/bench/decode.py BENCH_KV [--prepare] [D,HQ,HK,KEYS,BATCH[,PAGE[,0[,ROWS[,0[,16[,NEW]]]]]] ...]

BENCH_KV is build/tests/bench/bench_kv, whose rows these are. ROWS (1) rows of queries over KEYS keys a sequence, bf16, keys of all
heads side by side, in a cache or in pages; NEW: so many of the keys are appended in the call, and they and the queries rotated.
20 calls in a graph, the median of 15 replays, in microseconds a call. Ours are timed before all others and after them. cuDNN
comes with PyTorch (and has no pages and appends nothing here), FlashAttention 3 with the package tokenspeed-fa3, or fa3-fwd, which has
no pages; FlashInfer with flashinfer-python (one row, pages). Who is not there is left out, and the first line says why. The last
column is the floor: bytes of keys and values at 3.02 TB/s, some of which lie in the L2 cache where they are fewer than 50 MB.
--prepare: only compiles what FlashInfer needs."""
import re
import statistics
import subprocess
import sys

from library import flash_attention_3

CALLS, REPLAYS, BYTES_PER_US = 20, 15, 3.02e6
ROWS = ["128,32,8,1024,1", "128,32,8,8192,1", "128,32,8,8192,16", "128,32,8,131072,1", "128,32,8,1024,64", "64,32,32,8192,1",
        "64,32,32,8192,16", "256,16,4,8192,1", "128,32,8,8192,16,0,0,8", "128,32,8,1024,1,16", "128,32,8,8192,1,16", "128,32,8,8192,16,16",
        "128,32,8,8192,1,256", "128,32,8,8192,16,256", "64,32,32,8192,16,16", "256,16,4,8192,1,16", "128,32,8,8192,1,0,0,1,0,16,1",
        "128,32,8,8192,16,0,0,1,0,16,1"]


def in_graph(torch, call):
    """Microseconds of one call among CALLS."""
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()  # the tensors, page tables among them, are there
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


def ours(bench_kv, rows):
    """For each row its time and the kernel's name."""
    said = subprocess.run([bench_kv, *rows], check=True, capture_output=True, text=True).stdout.splitlines()
    found = [(re.search(r"in a row +([\d.]+) us", line), line.split()[-1]) for line in said if line.strip()]
    return [(float(time.group(1)), kernel) for time, kernel in found if time]


class Problem:
    """A row's tensors for the peers."""

    def __init__(self, torch, text):
        numbers = [int(x) for x in text.split(",")]
        self.d, self.hq, self.hk, self.keys, self.batch, self.page, _, self.rows, _, _, self.new = (
            numbers + [0, 0, 1, 0, 16, 0][len(numbers) - 5:])
        self.q = torch.randn(self.batch, self.rows, self.hq, self.d, device="cuda", dtype=torch.bfloat16)
        rows, slots = (self.batch * self.keys // self.page, self.page) if self.page else (self.batch, self.keys)
        self.k, self.v = (torch.randn(rows, slots, self.hk, self.d, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        self.order = torch.randperm(rows, device="cuda", dtype=torch.int32)

    def bytes(self):
        return 2 * self.hk * self.keys * self.batch * self.d * 2


def cudnn(torch, p):
    if p.page or p.new:
        return None
    attention, (q, k, v) = torch.nn.functional.scaled_dot_product_attention, (t.transpose(1, 2) for t in (p.q, p.k, p.v))
    return lambda: attention(q, k, v, enable_gqa=p.hq != p.hk)


def fa3(torch, p, found):
    if not found or (p.page and not found.whole):
        return None
    more = {}
    if p.page or p.new:
        more["seqused_k"] = torch.full((p.batch,), p.keys - p.new, device="cuda", dtype=torch.int32)
    if p.page:
        more["page_table"] = p.order.view(p.batch, -1)
    if p.new:
        more.update({n: torch.randn(p.batch, p.new, p.hk, p.d, device="cuda", dtype=torch.bfloat16) for n in ("k_new", "v_new")})
        more.update({n: torch.randn(p.keys, p.d // 2, device="cuda", dtype=torch.bfloat16) for n in ("rotary_cos", "rotary_sin")})
    return lambda: found.op(p.q, p.k, p.v, is_causal=True, num_splits=0, **more)[0]


def flashinfer(torch, p, module):
    if not module or not p.page or p.rows > 1 or p.new:
        return None
    wrapper = module.BatchDecodeWithPagedKVCacheWrapper(torch.zeros(128 << 20, dtype=torch.uint8, device="cuda"), "NHD",
                                                        use_tensor_cores=p.hq // p.hk >= 4)
    starts = torch.arange(p.batch + 1, dtype=torch.int32) * (p.keys // p.page)
    last = torch.full((p.batch,), p.page, dtype=torch.int32)
    wrapper.plan(starts, p.order, last, p.hq, p.hk, p.d, p.page, q_data_type=p.q.dtype, kv_data_type=p.k.dtype)
    q = p.q[:, 0].contiguous()
    return lambda: wrapper.run(q, (p.k, p.v))


def find_flashinfer():
    sys.modules["cudnn"] = None  # it looks for a package of that name, and would find cudnn.py of this folder
    try:
        import flashinfer as module
    except ImportError as e:
        return None, f"no FlashInfer ({e})"
    return module, f"FlashInfer {module.__version__}"


def time_of(torch, make):
    """In a graph; None where the peer has no such call, and what went wrong if it cannot."""
    try:
        call = make()
        return call and f"{in_graph(torch, call):.1f}"
    except Exception as e:  # of other libraries: any
        return str(e).splitlines()[0][:60] if str(e) else type(e).__name__


def main(arguments):
    if not arguments:
        sys.exit(__doc__.split("\n\n")[1])
    import torch
    prepare, rows = "--prepare" in arguments, [a for a in arguments[1:] if a != "--prepare"] or ROWS
    found, said = flash_attention_3(torch)
    module, said_too = find_flashinfer()
    print(f"{torch.cuda.get_device_name()}, cuDNN {torch.backends.cudnn.version()}, {said}, {said_too}", flush=True)
    if prepare:
        for text in {tuple(r.split(",")[:3]): r for r in rows if r.count(",") >= 5 and r.split(",")[5] != "0"}.values():
            print(text, time_of(torch, lambda: flashinfer(torch, Problem(torch, text), module)), flush=True)
        return 0
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.CUDNN_ATTENTION), torch.no_grad():
        for text, (before, kernel) in zip(rows, ours(arguments[0], rows)):
            p = Problem(torch, text)
            times = {"cuDNN": time_of(torch, lambda: cudnn(torch, p)), "FA3": time_of(torch, lambda: fa3(torch, p, found)),
                     "FlashInfer": time_of(torch, lambda: flashinfer(torch, p, module))}
            print(f"{text:30} ours {before:.1f} ({kernel})", *(f"{n} {t}" for n, t in times.items() if t),
                  f"floor {p.bytes() / BYTES_PER_US:.1f}", sep="  ", flush=True)
        print("ours again", *(f"{time:.1f}" for time, _ in ours(arguments[0], rows)), sep="  ")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
