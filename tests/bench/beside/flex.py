#!/usr/bin/env python3
"""Times libfa_attention.so's calls with expressions and block lists beside PyTorch's compiled flex_attention, on the same tensors.

usage: tests/bench/beside/flex.py BENCH_CALL LIBRARY [--rows REGEX] [--reps N] [--prepare]

BENCH_CALL and LIBRARY are as for tests/bench/cudnn.py; bf16, 8,192 rows, 16,384 tokens, 2,048 channels. Block lists are made before,
of 128 rows and keys. Rows are named head_dim:kind, or head_dim-head_dim_v:kind; forward and backward are timed apart, ours also
beside our plain kernel without an expression ("plain"). TFLOP/s count the pairs that are visible, and 2.5 times that backward. All
take turns in random order in one process; medians between events. --prepare: only compiles; PyTorch keeps what it has compiled
(TORCHINDUCTOR_CACHE_DIR), so that several processes can do it at once. Exit: 0, 1 if outputs differ, 2 if it cannot run."""
import argparse
import os
import random
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from cudnn import CHANNELS, TOKENS, TOLERANCE, by_turns  # noqa: E402
from library import F32, I32, Call, Libraries, stop  # noqa: E402

SEQLEN, DOCUMENTS = 8192, 16
CAUSAL = "q_idx >= kv_idx"
# kind: score_mod, mask_mod, buffer
KINDS = {"full": (None, None, None), "causal": (None, CAUSAL, None),
         "alibi": ("score + slopes[h] * (kv_idx - q_idx)", CAUSAL, "slopes"),
         "slopes_grad": ("score + slopes[h] * (kv_idx - q_idx)", CAUSAL, "slopes"),
         "softcap": ("20 * tanh(score / 20)", None, None),
         "document": (None, "doc[q_idx] == doc[kv_idx] && q_idx >= kv_idx", "doc")}
DIMS = ("64", "128", "192", "256", "192-128")


def rows():
    for dims in DIMS:
        for kind in KINDS if dims in ("64", "128") else ("causal", "alibi", "document"):
            yield f"{dims}:{kind}"


class Row:
    def __init__(self, torch, libraries, name):
        dims, self.kind = name.split(":")
        self.torch, self.libraries, self.name = torch, libraries, name
        self.d, self.dv = (int(x) for x in (dims.split("-") if "-" in dims else (dims, dims)))
        self.batch, self.heads = TOKENS // SEQLEN, CHANNELS // self.d
        self.q, self.k = (self.random(self.d) for _ in range(2))
        self.v, self.d_o = (self.random(self.dv) for _ in range(2))
        self.slopes = torch.exp2(-8.0 * torch.arange(1, self.heads + 1, device="cuda") / self.heads)
        self.doc = torch.sort(torch.randint(DOCUMENTS, (SEQLEN,), device="cuda", dtype=torch.int32)).values
        self.keep = []

    def random(self, columns):
        return self.torch.randn(self.batch, SEQLEN, self.heads, columns, device="cuda", dtype=self.torch.bfloat16)

    def empty(self, *shape, dtype):
        self.keep.append(self.torch.full(shape, -1 if dtype == self.torch.int32 else float("nan"), device="cuda", dtype=dtype))
        return self.keep[-1]

    # ---- ours ----

    def call(self, plain=False):
        torch, bf16 = self.torch, self.torch.bfloat16
        o = self.empty(*self.d_o.shape, dtype=bf16)
        lse = self.empty(self.batch, self.heads, SEQLEN, dtype=torch.float32)
        call = Call(self.batch, SEQLEN, self.heads, self.d, plain and self.masked(), 0, 0.0,
                    *(t.data_ptr() for t in (self.q, self.k, self.v, self.d_o, o, lse)), head_dim_v=self.dv,
                    stream=torch.cuda.current_stream().cuda_stream)
        outputs = [o, *(self.empty(*t.shape, dtype=bf16) for t in (self.q, self.k, self.v))]
        call.dq, call.dk, call.dv = (t.data_ptr() for t in outputs[1:])
        if not plain:
            outputs += self.expressions(call)
        call.workspace_bytes = self.libraries.workspace("ours", call)
        self.keep.append(torch.empty(max(call.workspace_bytes, 1), device="cuda", dtype=torch.uint8))
        call.workspace = self.keep[-1].data_ptr()
        return call, outputs

    def masked(self):
        return KINDS[self.kind][1] is not None

    def expressions(self, call):
        """Writes them, with their lists, into the call; returns what it has to write besides."""
        score_mod, mask_mod, buffer = KINDS[self.kind]
        tensor = {"slopes": self.slopes, "doc": self.doc, None: None}[buffer]
        if not (score_mod or mask_mod):
            return []
        given = (buffer, F32 if buffer == "slopes" else I32, tensor.numel()) if buffer else (None, F32, 1)
        call.program = self.libraries.program("ours", score_mod, mask_mod, given)
        call.buffer = tensor.data_ptr() if buffer else None
        more = []
        if self.kind == "slopes_grad":
            more.append(self.empty(self.heads, dtype=self.torch.float32))
            call.dbuffer = more[0].data_ptr()
        if mask_mod:
            n = SEQLEN // 128
            lists = [self.empty(n, dtype=self.torch.int32) if i % 2 == 0 else self.empty(n, n, dtype=self.torch.int32) for i in range(4)]
            call.lists[:] = [t.data_ptr() for t in lists]
            room = self.torch.empty(1 << 22, device="cuda", dtype=self.torch.uint8)
            self.keep.append(room)
            call.workspace, call.workspace_bytes = room.data_ptr(), room.numel()
            self.libraries.blocks("ours", call)
        return more

    # ---- PyTorch's ----

    def flex(self):
        """(forward, backward)"""
        torch, slopes, doc = self.torch, self.slopes, self.doc
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        learnt = self.kind == "slopes_grad"
        slopes = slopes.detach().requires_grad_(learnt)
        score_mod = {"alibi": lambda s, b, h, i, j: s + slopes[h] * (j - i), "slopes_grad": lambda s, b, h, i, j: s + slopes[h] * (j - i),
                     "softcap": lambda s, b, h, i, j: 20 * torch.tanh(s / 20)}.get(self.kind)
        mask_mod = {"full": None, "softcap": None, "document": lambda b, h, i, j: (doc[i] == doc[j]) & (i >= j)}.get(
            self.kind, lambda b, h, i, j: i >= j)
        mask = create_block_mask(mask_mod, None, None, SEQLEN, SEQLEN, device="cuda") if mask_mod else None
        inputs = [t.transpose(1, 2).detach().requires_grad_() for t in (self.q, self.k, self.v)]
        wanted = inputs + ([slopes] if learnt else [])
        compiled, d_o = torch.compile(flex_attention, dynamic=False), self.d_o.transpose(1, 2)
        out = compiled(*inputs, score_mod=score_mod, block_mask=mask)

        def forward():  # as it is trained: without gradients it would be compiled once more
            self.theirs = compiled(*inputs, score_mod=score_mod, block_mask=mask).detach()

        def backward():
            self.gradients = torch.autograd.grad(out, wanted, d_o, retain_graph=True)
        return forward, backward

    def pairs(self):
        if not self.masked():
            return SEQLEN ** 2
        if self.kind != "document":
            return SEQLEN * (SEQLEN + 1) / 2
        counts = self.torch.bincount(self.doc.long()).tolist()
        return sum(n * (n + 1) / 2 for n in counts)

    def differs(self, outputs):
        theirs = [t.transpose(1, 2) if t.dim() == 4 else t for t in (self.theirs, *self.gradients)]
        return not all((a.float() - b.float()).abs().max() <= TOLERANCE * b.float().abs().max() for a, b in zip(outputs, theirs))

    def measure(self, reps):
        """{(name, backward): milliseconds}, and whether outputs differ."""
        run = self.libraries.run
        calls, outputs = {}, None
        for name, plain in (("ours", False), ("plain", True)):
            if plain and self.kind == "document":
                continue  # has no plain call
            try:
                call, made = self.call(plain)
                run("ours", False, call)  # O and LSE are inputs
            except SystemExit:  # has said why
                continue
            outputs = outputs or made
            calls[name] = [lambda c=call: run("ours", False, c), lambda c=call: run("ours", True, c)]
        try:
            calls["flex"] = self.flex()
        except Exception as e:
            print(f"    flex_attention: {type(e).__name__} {str(e).splitlines()[0][:120] if str(e) else ''}")
        times = {}
        for backward in (0, 1):
            subjects = {name: functions[backward] for name, functions in calls.items()}
            try:
                times.update({(name, backward): t for name, t in by_turns(self.torch, subjects, reps).items()})
            except RuntimeError as e:
                print(f"    {type(e).__name__} {str(e).splitlines()[0][:120]}")
        there = hasattr(self, "theirs") and hasattr(self, "gradients")
        return times, there and outputs is not None and self.differs(outputs)

    def text(self, times):
        words = []
        for backward in (0, 1):
            flop = 2 * self.batch * self.heads * self.pairs() * (self.d + self.dv) * (2.5 if backward else 1)
            rates = {name: flop / t / 1e9 for (name, b), t in times.items() if b == backward}
            ours = rates.get("ours", float("nan"))
            words += ["bwd" if backward else "fwd", f"ours {ours:.0f}"]
            words += [f"{name} {rate:.0f} ({ours / rate:.2f})" for name, rate in rates.items() if name != "ours"]
        return f"{self.name:20} " + "  ".join(words)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("bench_call")
    parser.add_argument("library")
    parser.add_argument("--rows", default="")
    parser.add_argument("--reps", type=int, default=11)
    parser.add_argument("--prepare", action="store_true")
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
    torch._dynamo.config.recompile_limit = 1000
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}", flush=True)
    wrong = 0
    for name in filter(re.compile(args.rows).search, rows()):
        row = Row(torch, libraries, name)
        times, different = row.measure(1 if args.prepare else args.reps)
        wrong += different
        print(row.text(times) + ("  DIFFERS" if different else ""), flush=True)
        torch._dynamo.reset()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
