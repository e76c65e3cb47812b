#!/usr/bin/env python3
"""Times libfa_attention.so, cuDNN's attention and FlashAttention 3's on the same tensors.

usage: tests/bench/cudnn.py BENCH_CALL [NAME=]LIBRARY... [--rows REGEX] [--reps N]

BENCH_CALL is build/tests/libbench_call.so, LIBRARY is build/gpu/libfa_attention.so, or several builds of it with distinct
names. cuDNN comes with PyTorch, FlashAttention 3 (forward without dropout) with the package tokenspeed-fa3, or with fa3-fwd, which
lacks float16 and windows; without either the first line says why its column is left out. Whole calls are timed, with 16,384
tokens and 2,048 channels. A chip under load lowers its clocks, so for every row all participants take turns in random order in
one process; the result is the median. TFLOP/s are counted as 4 B H S^2 D forward (half of it if causal, and of a window its
pairs) and 2.5 times that backward. In brackets: the ratio to cuDNN. Rows are named pass:head_dim:seqlen:mask, mask being full,
causal or window (causal, 1,024 keys before a row's own; cuDNN has none in PyTorch), optionally followed by :dropout (p = 0.1),
:det (deterministic; cuDNN has no such backward), :gqa (8 query heads on a KV head) or :f16 (all others are bf16). Outputs hold
NaN before the call and are compared with a peer's; where there is none to compare, the libraries' are compared with each other.
Exit: 0, 1 if outputs differ, 2 if it cannot run."""
import argparse
import random
import re
import statistics
import sys

from library import BF16, F16, Call, Libraries, flash_attention_3, stop

TOKENS, CHANNELS, DROPOUT, WINDOW, GROUP = 16384, 2048, 0.1, 1024, 8
TOLERANCE = 0.02  # of the largest element: two kernels that round P and dS to bf16 differ by less, wrong ones by more


def default_rows():
    """The rows of docs/notes/results.md."""
    for head_dim in (64, 128, 192, 256):
        for which in ("fwd", "bwd"):
            for seqlen in (512, 2048, 8192, 16384):
                for mask in ("full", "causal"):
                    yield f"{which}:{head_dim}:{seqlen}:{mask}"
            yield f"{which}:{head_dim}:8192:causal:dropout"
        for seqlen in (2048, 8192, 16384):
            yield f"fwd:{head_dim}:{seqlen}:window"
            for more in ("full:gqa", "causal:gqa", "full:f16", "causal:f16"):
                yield f"fwd:{head_dim}:{seqlen}:{more}"
        for mask in ("full", "causal"):
            yield f"bwd:{head_dim}:8192:{mask}:det"


class Row:
    """One row: the tensors, and a function for each participant."""

    def __init__(self, torch, libraries, fa3, name):
        which, head_dim, seqlen, mask, *more = name.split(":")
        self.torch, self.libraries, self.name = torch, libraries, name
        self.backward, self.causal, self.deterministic = which == "bwd", mask != "full", "det" in more
        self.window = WINDOW if mask == "window" else 0
        self.dropout = DROPOUT if "dropout" in more else 0.0
        self.head_dim, self.seqlen = int(head_dim), int(seqlen)
        self.batch, self.heads = max(1, TOKENS // self.seqlen), CHANNELS // self.head_dim
        if "gqa" in more:
            self.heads -= self.heads % GROUP
        self.heads_kv = self.heads // GROUP if "gqa" in more else self.heads
        self.dtype = torch.float16 if "f16" in more else torch.bfloat16
        self.q, self.d_o = (self.random(self.heads) for _ in range(2))
        self.k, self.v = (self.random(self.heads_kv) for _ in range(2))
        like = (self.q, self.k, self.v) if self.backward else (self.q,)
        self.outputs = {n: [torch.full_like(t, float("nan")) for t in like] for n in libraries.opened}
        self.keep, self.theirs = [], {}  # what calls point to, kept alive; peers' outputs
        self.subjects = {n: self.ours(n) for n in libraries.opened}
        if not (self.backward and self.deterministic) and not self.window:
            self.subjects["cuDNN"] = self.cudnn()
        if fa3 and not self.backward and not self.dropout and (fa3.whole or not (self.window or "f16" in more)):
            self.subjects["FA3"] = self.fa3(fa3)
        self.leave_out()

    def leave_out(self):
        """Peers that do not take the call."""
        for name in [n for n in self.subjects if n not in self.outputs]:
            try:
                self.subjects[name]()
            except RuntimeError as e:
                print(f"    {name}: {str(e).splitlines()[0][:100]}")
                del self.subjects[name]

    def random(self, heads):
        return self.torch.randn(self.batch, self.seqlen, heads, self.head_dim, device="cuda", dtype=self.dtype)

    def empty(self, *shape, dtype):
        self.keep.append(self.torch.empty(*shape, device="cuda", dtype=dtype))
        return self.keep[-1]

    def ours(self, name):
        torch = self.torch
        o = self.empty(self.q.shape, dtype=self.dtype) if self.backward else self.outputs[name][0]
        lse = self.empty(self.batch, self.heads, self.seqlen, dtype=torch.float32)
        call = Call(self.batch, self.seqlen, self.heads, self.head_dim, self.causal, self.deterministic, self.dropout,
                    *(t.data_ptr() for t in (self.q, self.k, self.v, self.d_o, o, lse)), heads_kv=self.heads_kv,
                    window_left=self.window, dtype=F16 if self.dtype == torch.float16 else BF16,
                    stream=torch.cuda.current_stream().cuda_stream)
        if self.backward:
            self.libraries.run(name, False, call)  # O and LSE are inputs
            call.dq, call.dk, call.dv = (t.data_ptr() for t in self.outputs[name])
            call.workspace_bytes = self.libraries.workspace(name, call)
            call.workspace = self.empty(max(call.workspace_bytes, 1), dtype=torch.uint8).data_ptr()
        return lambda: self.libraries.run(name, self.backward, call)

    def fa3(self, fa3):
        more = {"window_size_left": self.window, "window_size_right": 0} if self.window else {}

        def forward():
            self.theirs["FA3"] = [fa3(self.q, self.k, self.v, self.causal and not self.window, **more)]
        return forward

    def cudnn(self):
        attention = self.torch.nn.functional.scaled_dot_product_attention
        inputs = [t.transpose(1, 2).detach().requires_grad_(self.backward) for t in (self.q, self.k, self.v)]
        options = {"is_causal": self.causal, "dropout_p": self.dropout, "enable_gqa": self.heads_kv != self.heads}
        if not self.backward:
            def forward():
                with self.torch.no_grad():
                    self.theirs["cuDNN"] = [attention(*inputs, **options).transpose(1, 2)]
            return forward
        out, d_o = attention(*inputs, **options), self.d_o.transpose(1, 2)

        def backward():
            self.theirs["cuDNN"] = [t.transpose(1, 2) for t in self.torch.autograd.grad(out, inputs, d_o, retain_graph=True)]
        return backward

    def times(self, reps):
        return by_turns(self.torch, self.subjects, reps)

    def differences(self):
        """Names of libraries whose outputs are not those of a peer, or, where there is none to compare, of the first one.
        What is not a number is different."""
        wanted = next(iter(self.outputs.values() if self.dropout or not self.theirs else self.theirs.values()))
        return [n for n, got in self.outputs.items()
                if not all((a.float() - b.float()).abs().max() <= TOLERANCE * b.float().abs().max()
                           for a, b in zip(got, wanted))]

    def tflops(self, milliseconds):
        pairs = self.seqlen ** 2 * (0.5 if self.causal else 1)
        if self.window:
            pairs = sum(min(i, self.window) + 1 for i in range(self.seqlen))
        flop = 4 * self.batch * self.heads * pairs * self.head_dim
        return flop * (2.5 if self.backward else 1) / milliseconds / 1e9

    def text(self, times):
        rates = {name: self.tflops(t) for name, t in times.items()}
        theirs = rates.get("cuDNN")
        words = [f"{name} {rate:.0f}" + (f" ({rate / theirs:.3f})" if theirs and name != "cuDNN" else "")
                 for name, rate in rates.items()]
        return f"{self.name:30} " + "  ".join(words)


def by_turns(torch, subjects, reps):
    """{subject: milliseconds, the median}, each called in random order."""
    events = {name: [] for name in subjects}
    for rep in range(reps + 2):
        for name in random.sample(list(subjects), len(subjects)):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            subjects[name]()
            end.record()
            if rep >= 2:  # the first two warm up
                events[name].append((begin, end))
    torch.cuda.synchronize()
    return {name: statistics.median(b.elapsed_time(e) for b, e in pairs) for name, pairs in events.items()}


def matrix_product(torch):
    """TFLOP/s of a product of 8192^3: what this chip can do at the moment."""
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for rep in range(12):
        if rep == 2:
            begin.record()
        a @ a
    end.record()
    torch.cuda.synchronize()
    return 10 * 2 * 8192 ** 3 / begin.elapsed_time(end) / 1e9


def parse(arguments):
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0], description=__doc__.split("\n\n")[2],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench_call")
    parser.add_argument("library", nargs="+")
    parser.add_argument("--rows", default="", metavar="REGEX")
    parser.add_argument("--reps", type=int, default=21)
    options = parser.parse_args(arguments)
    options.rows = [r for r in default_rows() if re.search(options.rows, r)]
    if not options.rows or options.reps < 1:
        parser.error("--rows: no row has such a name" if not options.rows else "--reps: 1 or more")
    options.named = dict(named(x) for x in options.library)
    return options


def named(text):
    """NAME=LIBRARY, or a path alone."""
    name, _, path = text.rpartition("=")
    return name or "ours", path


def main(arguments):
    options = parse(arguments)
    libraries = Libraries(options.bench_call, options.named)
    try:
        import torch
    except ImportError:
        stop("PyTorch, whose cuDNN is timed, is not installed")
    if not torch.cuda.is_available():
        stop("there is no GPU")
    random.seed(1)
    torch.manual_seed(1)
    fa3, said = flash_attention_3(torch)
    print(f"{torch.cuda.get_device_name()}, cuDNN {torch.backends.cudnn.version()}, {said}, matrix product of 8192^3 "
          f"{matrix_product(torch):.0f} TFLOP/s", flush=True)
    wrong = 0
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.CUDNN_ATTENTION):
        for name in options.rows:
            row = Row(torch, libraries, fa3, name)
            text = row.text(row.times(options.reps))
            different = row.differences()
            wrong += len(different)
            print(text + "".join(f"  {n} DIFFERS" for n in different), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
