"""What the scripts of this folder share: libfa_attention.so through tests/bench/call.c, and FlashAttention 3's operator."""
import ctypes
import os
import sys

F16, BF16, F32, I32 = range(4)  # fa_dtype


def stop(message):
    print(f"{os.path.relpath(sys.argv[0])}: {message}", file=sys.stderr)
    sys.exit(2)


class Call(ctypes.Structure):
    """tests/bench/call.c's struct call. Of bf16 unless it says otherwise."""
    _fields_ = ([(n, ctypes.c_int64) for n in ("batch", "seqlen", "heads", "head_dim", "causal", "deterministic")] +
                [("dropout_p", ctypes.c_double)] +
                [(n, ctypes.c_void_p) for n in ("q", "k", "v", "d_o", "o", "lse", "dq", "dk", "dv", "workspace")] +
                [("workspace_bytes", ctypes.c_size_t), ("stream", ctypes.c_void_p), ("scale", ctypes.c_double), ("e4m3", ctypes.c_int64),
                  ("cu_seqlens", ctypes.c_void_p)] +
                [(n, ctypes.c_int64) for n in ("total", "heads_kv", "window_left", "head_dim_v", "dtype", "linear_dropout")] +
                [("bias", ctypes.c_void_p), ("dbias", ctypes.c_void_p), ("bias_of_each", ctypes.c_int64)] +
                [(n, ctypes.c_void_p) for n in ("program", "buffer", "dbuffer")] + [("lists", ctypes.c_void_p * 4)])

    def __init__(self, *fields, **named):
        super().__init__(*fields, **{"dtype": BF16, **named})


class Libraries:
    """The functions of BENCH_CALL, by name."""

    def __init__(self, path, named):
        try:
            self.calls = ctypes.CDLL(path)
        except OSError as e:
            stop(e)
        for name in ("bench_open", "bench_forward", "bench_backward_workspace", "bench_backward", "bench_flex_prepare", "bench_flex_blocks"):
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

    def program(self, name, score_mod, mask_mod, buffer=(None, F32, 1)):
        """Of expressions (None: without), and of a buffer's name, type and elements."""
        out = ctypes.c_void_p()
        texts = [t.encode() if t else None for t in (score_mod, mask_mod, buffer[0])]
        self.need(self.calls.bench_flex_prepare(self.opened[name], *texts, ctypes.c_int64(buffer[1]), ctypes.c_int64(buffer[2]),
                                                ctypes.byref(out)))
        return out

    def blocks(self, name, call):
        self.need(self.calls.bench_flex_blocks(self.opened[name], ctypes.byref(call)))


class FlashAttention3:
    """Its forward: the operator itself, since the function around it takes the processor as long as the shortest calls take the
    GPU. whole: with float16, windows and pages."""

    def __init__(self, op, package, whole):
        self.op, self.package, self.whole = op, package, whole

    def __call__(self, q, k, v, causal, **more):
        return self.op(q, k, v, is_causal=causal, num_splits=1, **more)[0]


def flash_attention_3(torch):
    """FlashAttention3, or None, and what to say of it."""
    try:
        import flash_attn_3._C  # noqa: F401  registers the operator
        found = FlashAttention3(torch.ops.flash_attn_3.fwd, "tokenspeed-fa3", True)
    except ImportError:
        try:
            import fa3_fwd_interface  # noqa: F401  the same
        except ImportError as e:
            return None, f"no FlashAttention 3 ({e})"
        found = FlashAttention3(torch.ops.fa3_fwd.fwd, "fa3-fwd", False)
    return found, f"FlashAttention 3 of {found.package}"
