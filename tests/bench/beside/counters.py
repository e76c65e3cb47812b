#!/usr/bin/env python3
"""What Nsight Compute counts in our forward kernel and in FlashAttention 3's, side by side, as a table.

usage: tests/bench/beside/counters.py BENCH_CALL LIBRARY [--rows REGEX] [--raw FILE.csv]

BENCH_CALL and LIBRARY are as for tests/bench/cudnn.py, whose forward rows these are. Needs ncu and the right to read the counters.
Clocks stay as they are. --raw: keeps all that ncu printed. Exit: 0, 2 if it cannot run."""
import argparse
import csv
import io
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cudnn as side_by_side  # noqa: E402
from library import Libraries, flash_attention_3, stop  # noqa: E402

SECTIONS = ["SpeedOfLight", "ComputeWorkloadAnalysis", "SchedulerStats", "WarpStateStats", "MemoryWorkloadAnalysis",
            "MemoryWorkloadAnalysis_Tables", "LaunchStats", "Occupancy", "InstructionStats"]
# What a line of the table shows: the first counter of such a name.
LINES = [("time", r"gpu__time_duration\.(sum|avg)"), ("registers a thread", r"launch__registers_per_thread"),
         ("threads a block", r"launch__block_size"), ("blocks", r"launch__grid_size"), ("waves", r"launch__waves_per_multiprocessor"),
         ("cluster", r"launch__cluster_size"), ("shared memory a block", r"launch__shared_mem_per_block_dynamic"),
         ("cycles active", r"sm__cycles_active\.avg"), ("instructions", r"smsp__inst_executed\.sum"),
         ("issue slots busy, %", r"smsp__issue_active\.avg\.pct_of_peak_sustained_active"),
         ("tensor pipe, %", r"sm__pipe_tensor_cycles_active\.avg\.pct_of_peak_sustained_active"),
         ("XU pipe, %", r"sm__inst_executed_pipe_xu\.avg\.pct_of_peak_sustained_active"),
         ("ALU pipe, %", r"sm__inst_executed_pipe_alu\.avg\.pct_of_peak_sustained_active"),
         ("FMA pipe, %", r"sm__pipe_fma_cycles_active\.avg\.pct_of_peak_sustained_active"),
         ("L2 sectors", r"lts__t_sectors\.sum"), ("L2 hit rate, %", r"lts__t_sector_hit_rate\.pct"), ("DRAM read", r"dram__bytes_read\.sum"), ("DRAM written", r"dram__bytes_write\.sum")]
STALL = re.compile(r"smsp__average_warps_issue_stalled_(\w+?)_per_issue_active\.ratio")
N_STALLS = 5


def child(options):
    """Calls each participant once where the profiler looks."""
    import torch
    libraries = Libraries(options.bench_call, {"ours": options.library})
    fa3, _ = flash_attention_3(torch)
    for name in rows(options):
        row = side_by_side.Row(torch, libraries, fa3, name)
        for who in ("ours", "FA3"):
            if who in row.subjects:
                row.subjects[who]()  # its kernels are loaded
                torch.cuda.synchronize()
                torch.cuda.profiler.start()
                row.subjects[who]()
                torch.cuda.synchronize()
                torch.cuda.profiler.stop()


def rows(options):
    return [r for r in side_by_side.default_rows() if r.startswith("fwd:") and re.search(options.rows, r)]


def profile(options):
    """Of each kernel {metric: (value, unit)}."""
    command = ["ncu", "--clock-control", "none", "--profile-from-start", "off", "--csv", "--page", "raw"]
    for section in SECTIONS:
        command += ["--section", section]
    command += [sys.executable, __file__, options.bench_call, options.library, "--rows", options.rows, "--child"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as e:
        stop(e)
    if options.raw:
        with open(options.raw, "w", encoding="utf-8") as f:
            f.write(done.stdout + done.stderr)
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    if len(lines) < 3:
        stop(f"ncu counted nothing: {(done.stdout + done.stderr)[-400:]}")
    table = list(csv.reader(io.StringIO("\n".join(lines))))
    return read(table)


def read(table):
    """Without what only prepares a kernel: one block."""
    kernels = [{n: (value, unit) for n, unit, value in zip(table[0], table[1], found)} for found in table[2:]]
    return [k for k in kernels if number(k["launch__grid_size"][0]) > 1]


def number(text):
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return 0.0


def cells(kernels, pattern):
    for name in kernels[0]:
        if re.fullmatch(pattern, name):
            return [" ".join(x for x in k.get(name, ("", "")) if x and x != "%") for k in kernels]
    return ["" for _ in kernels]


def stalls(kernel):
    found = {STALL.fullmatch(n).group(1): number(v) for n, (v, _) in kernel.items() if STALL.fullmatch(n)}
    largest = sorted(found.items(), key=lambda pair: -pair[1])[:N_STALLS]
    return ", ".join(f"{name} {x:.2f}" for name, x in largest)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("bench_call")
    parser.add_argument("library")
    parser.add_argument("--rows", default="^fwd:128:8192:(full|causal)$")
    parser.add_argument("--raw", default="")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(options)
    kernels = profile(options)
    print("| | " + " | ".join(re.sub(r"[(<].*", "", k["Kernel Name"][0]) for k in kernels) + " |")
    print("|---|" + "---|" * len(kernels))
    for title, pattern in LINES:
        print(f"| {title} | " + " | ".join(cells(kernels, pattern)) + " |")
    print("| largest waits, warps an issue | " + " | ".join(stalls(k) for k in kernels) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
