#!/usr/bin/env python3
"""Holds `fa-verify bench --backend exec:...` against times that are taken without it: the same kernels, the same shapes.

usage: tests/bench/foreign.py FA_VERIFY [--call BENCH_CALL --library LIBRARY] [--rows REGEX] [--kernels NAME,...] [--reps N] [--cpu]

BENCH_CALL is build/tests/libbench_call.so, LIBRARY build/gpu/libfa_attention.so. For every row (as of tests/bench/cudnn.py,
forward only) the kernels of tests/bench/foreign_kernels.py are timed in this process by turns, as cudnn.py does, before and after
`fa-verify bench` has timed them, each in a process of its own. Printed are TFLOP/s: directly (both times), as bench counts them,
by bench's own clock, and the ratios to the direct ones. --cpu: two kernels for processors and small rows, which only shows that
all this works. fa_verify must be importable (PYTHONPATH=python). Exit: 0, 1 if a kernel got no speed or differs by more than 5 %
(not with --cpu), 2 if it cannot run."""
import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROWS = ["fwd:128:8192:full", "fwd:128:8192:causal", "fwd:128:16384:full", "fwd:64:8192:full", "fwd:64:16384:causal", "fwd:256:8192:full"]
CPU_ROWS = ["fwd:64:256:full", "fwd:64:256:causal"]
TOKENS, CHANNELS = 16384, 2048
MOST_DIFFERENCE = 0.05
KERNELS = "tests/bench/foreign_kernels.py"
HEADER = f"\n{'TFLOP/s':22} {'':10} {'before':>8} {'after':>8} {'bench':>9} {'ratio':>7} {'clock':>9} {'ratio':>7}"


class Row:
    def __init__(self, name, cpu):
        _, head_dim, seqlen, mask = name.split(":")
        self.name, self.cpu, self.head_dim, self.seqlen, self.causal = name, cpu, int(head_dim), int(seqlen), mask == "causal"
        self.batch = 1 if cpu else max(1, TOKENS // self.seqlen)
        self.heads = 4 if cpu else CHANNELS // self.head_dim

    def case(self):
        mask = {"mask": {"type": "causal"}} if self.causal else {}
        return {"name": self.name, "dtype": "f32" if self.cpu else "bf16", "batch": self.batch, "heads_q": self.heads,
                "seqlen_q": self.seqlen, "seqlen_k": self.seqlen, "head_dim": self.head_dim, "backward": False, **mask}

    def flops(self):
        pairs = self.seqlen * (self.seqlen + 1) / 2 if self.causal else self.seqlen ** 2
        return 4 * self.batch * self.heads * pairs * self.head_dim


class Direct:
    """The call that a kernel function gets, made without the package's session."""

    def __init__(self, torch, row):
        shape = (row.batch, row.seqlen, row.heads, row.head_dim)
        where = {"dtype": torch.float32} if row.cpu else {"device": "cuda", "dtype": torch.bfloat16}
        self.q, self.k, self.v = (torch.randn(shape, **where) for _ in range(3))
        self.causal, self.scale = row.causal, row.head_dim ** -0.5


def direct_times(torch, row, kernels, reps):
    """{name: median of seconds}, by turns in random order; the first two turns do not count."""
    call, seconds = Direct(torch, row), {name: [] for name in kernels}
    for rep in range(reps + 2):
        for name in random.sample(list(kernels), len(kernels)):
            if row.cpu:
                begin = time.perf_counter()
                kernels[name].function(call)
                seconds[name].append(time.perf_counter() - begin)
                continue
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            kernels[name].function(call)
            end.record()
            seconds[name].append((begin, end))
    if not row.cpu:
        torch.cuda.synchronize()
        seconds = {name: [b.elapsed_time(e) * 1e-3 for b, e in pairs] for name, pairs in seconds.items()}
    return {name: statistics.median(s[2:]) for name, s in seconds.items()}


def bench(program, row, names):
    """{name: its entry of the report}"""
    specs = {name: f"exec:exec {sys.executable} -m fa_verify.serve {KERNELS}:{name}" for name in names}
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        command = [program, "bench", "--backend", specs[names[0]], "--case", json.dumps(row.case()), "--report", report]
        for name in names[1:]:
            command += ["--rival", specs[name]]
        print(f"# {row.name}: " + " ".join(command[:1] + ["bench ..."]), flush=True)
        subprocess.run(command, check=False)
        if not os.path.exists(report):
            return {}, {}
        with open(report) as file:
            case = json.load(file)["bench"]["cases"][0]
    return {p["backend"].rpartition(":")[2]: p for p in case["participants"]}, case["gpu"]


def line(row, name, entry, before, after):
    """A row of the table, and whether it is as it should be."""
    if "time" not in entry:
        return f"{row.name:22} {name:10} no speed: {entry.get('no_speed', entry)}", False
    rate = {key: row.flops() / (entry[key]["median_us"] * 1e6) for key in ("time", "clock")}
    direct = [row.flops() / x * 1e-12 for x in (before, after)]
    middle = statistics.mean(direct)
    ratio = rate["time"] / middle
    fine = abs(ratio - 1) <= MOST_DIFFERENCE
    return (f"{row.name:22} {name:10} {direct[0]:8.3g} {direct[1]:8.3g} {rate['time']:9.3g} {ratio:7.3f} {rate['clock']:9.3g} "
            f"{rate['clock'] / middle:7.3f}  {entry['judged_outputs']} of {entry['timed_outputs']} judged{'' if fine or row.cpu else '  DIFFERS'}"), fine or row.cpu


def stop(message):
    print(f"tests/bench/foreign.py: {message}", file=sys.stderr)
    sys.exit(2)


def parse(arguments):
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--call", default="build/tests/libbench_call.so")
    parser.add_argument("--library", default="build/gpu/libfa_attention.so")
    parser.add_argument("--rows", default="", metavar="REGEX")
    parser.add_argument("--kernels", default="")
    parser.add_argument("--reps", type=int, default=21)
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args(arguments)
    options.rows = [r for r in (CPU_ROWS if options.cpu else ROWS) if re.search(options.rows, r)]
    return options if options.rows else parser.error("--rows: no row has such a name")


def find_kernels(options):
    """{name: kernel} of those that can run here."""
    os.environ["FA_BENCH_CALL"], os.environ["FA_BENCH_LIBRARY"] = os.path.abspath(options.call), os.path.abspath(options.library)
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import foreign_kernels

    names = options.kernels.split(",") if options.kernels else ["flash_cpu", "math"] if options.cpu else ["ours", "cudnn", "fa3"]
    if "fa3" in names and not foreign_kernels.flash_attention_3():
        print("fa3 is left out: neither fa3-fwd nor tokenspeed-fa3 is installed")
        names.remove("fa3")
    return {name: getattr(foreign_kernels, name) for name in names}


def main(arguments):
    options = parse(arguments)
    try:
        import torch
    except ImportError:
        stop("PyTorch is not installed")
    if not options.cpu and not torch.cuda.is_available():
        stop("there is no GPU; --cpu tries it without one")
    kernels = find_kernels(options)
    wrong = 0
    for row in (Row(name, options.cpu) for name in options.rows):
        before = direct_times(torch, row, kernels, options.reps)
        entries, gpu = bench(options.program, row, list(kernels))
        after = direct_times(torch, row, kernels, options.reps)
        print(HEADER)
        for name in kernels:
            text, fine = line(row, name, entries.get(name, {}), before[name], after[name])
            print(text)
            wrong += not fine
        if not options.cpu:
            torch.cuda.empty_cache()
            print(f"{'':22} GPU {gpu}")
        sys.stdout.flush()  # a row takes minutes, and a run may be cut short
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
