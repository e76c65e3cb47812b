#!/usr/bin/env python3
"""Times libfa_attention.so, cuDNN's attention and FlashAttention 3's on the same tensors.

usage: tests/bench/cudnn.py BENCH_CALL [NAME=]LIBRARY... [--rows REGEX] [--reps N]

BENCH_CALL is build/tests/libbench_call.so, LIBRARY is build/gpu/libfa_attention.so, or several builds of it with distinct
names. cuDNN comes with PyTorch, FlashAttention 3 (forward without dropout) with the package fa3-fwd; without it the first line
says why its column is left out. Whole calls are timed, in bf16 with 16,384 tokens and 2,048 channels. A chip under load
lowers its clocks, so for every row all participants take turns in random order in one process; the result is the median.
TFLOP/s are counted as 4 B H S^2 D forward (half of it if causal) and 2.5 times that backward. In brackets: the ratio to
cuDNN. Rows are named pass:head_dim:seqlen:mask, optionally followed by :dropout (p = 0.1) or :det (deterministic; cuDNN has
no such backward). Outputs hold NaN before the call and are compared with cuDNN's; with dropout, the libraries' are compared
with each other. Exit: 0, 1 if outputs differ, 2 if it cannot run."""
import argparse
import ctypes
import random
import re
import statistics
import sys

TOKENS, CHANNELS, DROPOUT = 16384, 2048, 0.1
TOLERANCE = 0.02  # of the largest element: two kernels that round P and dS to bf16 differ by less, wrong ones by more


def stop(message):
    print(f"tests/bench/cudnn.py: {message}", file=sys.stderr)
    sys.exit(2)


def default_rows():
    """The rows of docs/notes/results.md."""
    for head_dim in (64, 128, 192, 256):
        for which in ("fwd", "bwd"):
            for seqlen in (512, 2048, 8192, 16384):
                for mask in ("full", "causal"):
                    yield f"{which}:{head_dim}:{seqlen}:{mask}"
            yield f"{which}:{head_dim}:8192:causal:dropout"
        for mask in ("full", "causal"):
            yield f"bwd:{head_dim}:8192:{mask}:det"


class Call(ctypes.Structure):
    """tests/bench/call.c's struct call."""
    _fields_ = ([(n, ctypes.c_int64) for n in ("batch", "seqlen", "heads", "head_dim", "causal", "deterministic")] +
                [("dropout_p", ctypes.c_double)] +
                [(n, ctypes.c_void_p) for n in ("q", "k", "v", "d_o", "o", "lse", "dq", "dk", "dv", "workspace")] +
                [("workspace_bytes", ctypes.c_size_t), ("stream", ctypes.c_void_p), ("scale", ctypes.c_double), ("e4m3", ctypes.c_int64),
                  ("cu_seqlens", ctypes.c_void_p), ("total", ctypes.c_int64)])


class Libraries:
    """The functions of BENCH_CALL, by name."""

    def __init__(self, path, named):
        try:
            self.calls = ctypes.CDLL(path)
        except OSError as e:
            stop(e)
        for name in ("bench_open", "bench_forward", "bench_backward_workspace", "bench_backward"):
            getattr(self.calls, name).restype = ctypes.c_char_p
        self.opened = {name: self.open(file) for name, file in named.items()}

    def open(self, path):
        library = ctypes.c_void_p()
        self.need(self.calls.bench_open(path.encode(), ctypes.byref(library)))
        return library

    @staticmethod
    def need(message):
        if message:
            stop(message.decode())

    def run(self, name, backward, call):
        run = self.calls.bench_backward if backward else self.calls.bench_forward
        self.need(run(self.opened[name], ctypes.byref(call)))

    def workspace(self, name, call):
        size = ctypes.c_size_t()
        self.need(self.calls.bench_backward_workspace(self.opened[name], ctypes.byref(call), ctypes.byref(size)))
        return size.value


def flash_attention_3(torch):
    """FlashAttention 3's forward, or None, and what to say of it. The operator itself: the function around it takes the
    processor as long as the shortest calls take the GPU."""
    try:
        import fa3_fwd_interface  # noqa: F401  registers the operator
    except ImportError as e:
        return None, f"no FlashAttention 3 ({e})"
    return (lambda q, k, v, causal: torch.ops.fa3_fwd.fwd(q, k, v, is_causal=causal, num_splits=1)[0]), "FlashAttention 3"


class Row:
    """One row: the tensors, and a function for each participant."""

    def __init__(self, torch, libraries, fa3, name):
        which, head_dim, seqlen, mask, *more = name.split(":")
        self.torch, self.libraries, self.name = torch, libraries, name
        self.backward, self.causal, self.deterministic = which == "bwd", mask == "causal", "det" in more
        self.dropout = DROPOUT if "dropout" in more else 0.0
        self.head_dim, self.seqlen = int(head_dim), int(seqlen)
        self.batch, self.heads = max(1, TOKENS // self.seqlen), CHANNELS // self.head_dim
        shape = (self.batch, self.seqlen, self.heads, self.head_dim)
        self.q, self.k, self.v, self.d_o = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(4))
        self.outputs = {n: [torch.full_like(self.q, float("nan")) for _ in range(3 if self.backward else 1)]
                        for n in libraries.opened}
        self.keep = []  # keeps alive what calls point to
        self.subjects = {n: self.ours(n) for n in libraries.opened}
        if not (self.backward and self.deterministic):
            self.subjects["cuDNN"] = self.cudnn()
        if fa3 and not self.backward and not self.dropout:
            self.subjects["FA3"] = lambda: fa3(self.q, self.k, self.v, self.causal)

    def empty(self, *shape, dtype):
        self.keep.append(self.torch.empty(*shape, device="cuda", dtype=dtype))
        return self.keep[-1]

    def ours(self, name):
        torch = self.torch
        o = self.empty(self.q.shape, dtype=torch.bfloat16) if self.backward else self.outputs[name][0]
        lse = self.empty(self.batch, self.heads, self.seqlen, dtype=torch.float32)
        call = Call(self.batch, self.seqlen, self.heads, self.head_dim, self.causal, self.deterministic, self.dropout,
                    *(t.data_ptr() for t in (self.q, self.k, self.v, self.d_o, o, lse)),
                    stream=torch.cuda.current_stream().cuda_stream)
        if self.backward:
            self.libraries.run(name, False, call)  # O and LSE are inputs
            call.dq, call.dk, call.dv = (t.data_ptr() for t in self.outputs[name])
            call.workspace_bytes = self.libraries.workspace(name, call)
            call.workspace = self.empty(max(call.workspace_bytes, 1), dtype=torch.uint8).data_ptr()
        return lambda: self.libraries.run(name, self.backward, call)

    def cudnn(self):
        attention = self.torch.nn.functional.scaled_dot_product_attention
        inputs = [t.transpose(1, 2).detach().requires_grad_(self.backward) for t in (self.q, self.k, self.v)]
        options = {"is_causal": self.causal, "dropout_p": self.dropout}
        if not self.backward:
            def forward():
                with self.torch.no_grad():
                    self.theirs = [attention(*inputs, **options)]
            return forward
        out, d_o = attention(*inputs, **options), self.d_o.transpose(1, 2)

        def backward():
            self.theirs = self.torch.autograd.grad(out, inputs, d_o, retain_graph=True)
        return backward

    def times(self, reps):
        return by_turns(self.torch, self.subjects, reps)

    def differences(self):
        """Names of libraries whose outputs are not those of cuDNN, or, where that has none to compare, of the first one.
        What is not a number is different."""
        alike = "cuDNN" in self.subjects and not self.dropout
        wanted = [t.transpose(1, 2) for t in self.theirs] if alike else next(iter(self.outputs.values()))
        return [n for n, got in self.outputs.items()
                if not all((a.float() - b.float()).abs().max() <= TOLERANCE * b.float().abs().max()
                           for a, b in zip(got, wanted))]

    def tflops(self, milliseconds):
        flop = 4 * self.batch * self.heads * self.seqlen ** 2 * self.head_dim
        return flop * (0.5 if self.causal else 1) * (2.5 if self.backward else 1) / milliseconds / 1e9

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
