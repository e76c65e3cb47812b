#!/usr/bin/env python3
"""How many small cases a second exec:CMD verifies: version 1 of the protocol, through files, beside version 2, through memory.

usage: exec.py FA-VERIFY [--shape BxHxSQxSKxD] [--count N] [--jobs N ...] [--rounds N] [--judge NAME] [--forward] [--python]

The child computes nothing: it replays outputs that were made once (all cases have the same data), so that what is left is the
way to it and the harness's own work: data, copies, checks, the reference, comparing. Both versions are declared alike, run in
turn, and a median counts. It prints

- whole runs of FA-VERIFY: cases a second, and processor time a case of all processes, which other load on the machine hardly
  changes;
- a case's time by stage, in one process without other cases beside it and judged on the CPU: elapsed, and of that process on a processor. The
  subject's stage is the child's own time and transport: the rest, both ways, for the two runs of a case.

$TMPDIR decides where version 1 has its files. --python: the child is this file instead of bench_exec_child."""

import argparse
import json
import math
import mmap
import os
import re
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import time

DECLARED = {"arithmetic": {"name": "recorded"}}
CONVENTIONS = {"lse": {"base": "e", "scaled": True, "empty": "as_case"}, "empty_o": "0"}
SUBJECT = "the subject, twice"


# ---- a child in Python ----


def read_tensors(data):
    """The header of a safetensors file, and where its values begin."""
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + length]), 8 + length


def load_answers(path):
    with open(path, "rb") as f:
        data = f.read()
    tensors, start = read_tensors(data)
    return {name: data[start + t["data_offsets"][0] : start + t["data_offsets"][1]] for name, t in tensors.items() if name != "__metadata__"}


def write_file(request, answers, cache):
    """Over the values of the file that stands there, whose header, always the same one, says where they are."""
    with open(request["outputs"], "r+b") as f:
        if not cache:
            tensors, start = read_tensors(f.read())
            values = bytearray(max(t["data_offsets"][1] for t in tensors.values()))
            for name, t in tensors.items():
                values[slice(*t["data_offsets"])] = answers[name]
            cache.update(start=start, values=bytes(values))
        f.seek(cache["start"])
        f.write(cache["values"])


def write_memory(request, answers, cache):
    key = request["memory"], request["bytes"]
    if cache.get("key") != key:
        with open(key[0], "r+b") as f:
            cache.update(key=key, map=mmap.mmap(f.fileno(), key[1]))
    for name, t in request["tensors"].items():
        if t["access"] == "write":
            cache["map"][t["offset"] : t["offset"] + len(answers[name])] = answers[name]


def child(version, path):
    answers, cache, own = load_answers(path), {}, []
    for line in sys.stdin:
        start = time.perf_counter()
        request = json.loads(line)
        answer = {"id": request["id"], "state": "ok"}
        if request["type"] == "hello":
            answer = {"id": request["id"], "fa_exec": version, "name": "replay"} | DECLARED | (CONVENTIONS if version == 2 else {})
        else:
            (write_file if version == 1 else write_memory)(request, answers, cache)
        print(json.dumps(answer), flush=True)
        own.append(time.perf_counter() - start)
    print(f"bench_exec_child: {version} {len(own)} {statistics.median(own) * 1e6:.1f}", file=sys.stderr)


# ---- whole runs, and stages ----


def cases(shape, count, forward):
    b, h, sq, sk, d = (int(n) for n in shape.split("x"))
    case = {"family": "flash", "dtype": "f16", "batch": b, "heads_q": h, "seqlen_q": sq, "seqlen_k": sk, "head_dim": d, "data_seed": "1"}
    if forward:
        case["backward"] = False
    return {"fa_cases": 1, "defaults": case, "cases": [{"name": f"c{i}"} for i in range(count)]}


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(verify, backend, path, args, jobs, folder):
    """Cases a second of one run, and processor milliseconds a case."""
    report = os.path.join(folder, "report.json")
    before = processor_seconds()
    done = subprocess.run([verify, "run", "--backend", backend, "--cases", path, "--jobs", str(jobs), "--judge", args.judge, "--no-progress", "-q",
                           "--report", report], capture_output=True, text=True)
    used = processor_seconds() - before
    if done.returncode != 0 or not re.search(rf"passed:{args.count} ", done.stdout):
        sys.exit(f"exec.py: not every case passed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    with open(report, encoding="utf-8") as f:
        return args.count / json.load(f)["seconds"], used * 1e3 / args.count


def print_runs(verify, backends, path, args, folder):
    for jobs in args.jobs:
        seen = {version: [] for version in backends}
        for _ in range(args.rounds):
            for version, backend in backends.items():
                seen[version].append(run(verify, backend, path, args, jobs, folder))
        rate, used = ({v: statistics.median(x[i] for x in seen[v]) for v in seen} for i in (0, 1))
        print(f"{args.shape} jobs {jobs}: cases/s: version 1 {rate[1]:.0f}, version 2 {rate[2]:.0f}, {rate[2] / rate[1]:.2f} times as many; "
              f"processor ms a case: {used[1]:.2f}, {used[2]:.2f}, {used[1] / used[2]:.2f} times as many", flush=True)


def print_stages(tool, backends, path, rounds):
    done = subprocess.run([tool, path, str(rounds), *backends.values()], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"exec.py: {done.stderr[-2000:]}")
    table = json.loads(done.stdout)
    own = {int(v): 2 * float(us) for v, n, us in re.findall(r"^bench_exec_child: (\d) (\d+) ([\d.]+)$", done.stderr, re.M) if int(n) > 1}
    stages = {v: table[b] for v, b in backends.items()}
    rows = {"transport, twice": {v: (stages[v][SUBJECT][0] - own[v], stages[v][SUBJECT][1]) for v in stages}}
    rows["the child itself, twice"] = {v: (own[v], math.nan) for v in stages}
    rows |= {name: {v: stages[v][name] for v in stages} for name in stages[1] if name != SUBJECT}
    print(f"{'microseconds a case':34}{'version 1: elapsed, processor':>32}{'version 2: elapsed, processor':>32}")
    for name, us in rows.items():
        print(f"{name:34}" + "".join(f"{elapsed:21.0f}{cpu:11.0f}".replace("nan", "   ") for elapsed, cpu in (us[1], us[2])))
    for how, name in enumerate(("elapsed", "processor")):
        whole, moved = ({v: rows[row][v][how] for v in stages} for row in ("all", "transport, twice"))
        print(f"{name}: transport {moved[1] / moved[2]:.1f} times as fast, a case {whole[1] / whole[2]:.2f} times; "
              f"{whole[1] / (whole[1] - moved[1]):.2f} times if transport cost nothing")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("verify")
    parser.add_argument("--shape", default="1x2x64x64x64")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--judge", default="cpu")
    parser.add_argument("--forward", action="store_true")
    parser.add_argument("--python", action="store_true")
    args = parser.parse_args()
    tools = os.path.dirname(os.path.realpath(args.verify))
    with tempfile.TemporaryDirectory() as folder:
        path, answers = os.path.join(folder, "cases.json"), os.path.join(folder, "answers.safetensors")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(cases(args.shape, args.count, args.forward), f)
        subprocess.run([f"{tools}/bench_exec", path, answers], check=True)
        command = f"{sys.executable} {os.path.abspath(__file__)} child" if args.python else f"{tools}/bench_exec_child"
        backends = {version: f"exec:{command} {version} {answers}" for version in (1, 2)}
        print_runs(args.verify, backends, path, args, folder)
        print_stages(f"{tools}/bench_exec", backends, path, args.rounds)


if __name__ == "__main__":
    child(int(sys.argv[2]), sys.argv[3]) if sys.argv[1:2] == ["child"] else main()
