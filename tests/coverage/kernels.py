#!/usr/bin/env python3
"""Lines and conditions of the kernels that the named cases execute, from the top of the source tree. Needs clang, llvm-cov and llvm-profdata.

    kernels.py build FOLDER                         configures and builds fa-verify with counters, without code for devices, in FOLDER
    kernels.py run FOLDER [--jobs N] [--parts N]    runs the named cases on it
    kernels.py table FOLDER                         prints what is not executed, by file, and each way out of a condition that no case takes

untaken.txt says why ways are not taken: reasons.py says what a line is, and its text is "CONDITION never true", "never false" or
"never asked". table fails below --lines or --branches percent, with more than --no-reason ways without a reason, and where a reason is
about none."""
import argparse
import glob
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import conditions  # noqa: E402
import reasons  # noqa: E402
import table as tables  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "mutate"))
import cases_suite  # noqa: E402

SOURCES = ("gpu/kernels/",)
UNTAKEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "untaken.txt")
PASSED = (0, 4, 77)


def build(a):
    subprocess.run(["cmake", "-S", ".", "-B", a.folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_COMPILER=clang",
                    "-DCMAKE_CXX_COMPILER=clang++", "-DFA_CUDA=OFF", "-DFA_WERROR=OFF", "-DFA_TESTS=OFF", f"-DCMAKE_CXX_FLAGS={conditions.FLAGS}",
                    "-DCMAKE_EXE_LINKER_FLAGS=-fprofile-instr-generate"], check=True, stdout=subprocess.DEVNULL)
    return subprocess.run(["ninja", "-C", a.folder, f"-j{a.jobs}", "fa-verify"], check=False, stdout=subprocess.DEVNULL).returncode


def files_of(backend):
    """All of cases/ on the host as it is and as an H100; what others are for on those."""
    every = sorted(os.path.basename(path)[:-5] for path in glob.glob("cases/*.json"))
    return every if backend in ("host", "host:hopper") else cases_suite.FILES[backend]


def commands(a):
    """Every command by itself: words."""
    return [[program(a), "run", "--backend", backend, "--no-isolate", "--jobs", "1", "-q", "--no-progress", "--shard", f"{i}/{a.parts}",
             "--cases", f"cases/{name}.json"]
            for backend in cases_suite.FILES for name in files_of(backend) if name != "schema" for i in range(a.parts)]


def program(a):
    return os.path.join(a.folder, "fa-verify")


def run(a):
    for file in conditions.profiles(a.folder):
        os.remove(file)
    os.environ["LLVM_PROFILE_FILE"] = conditions.pattern(a.folder)
    with ThreadPoolExecutor(a.jobs) as pool:
        codes = list(pool.map(lambda words: run_one(words, a.longest), commands(a)))
    print(f"{len(codes)} commands, {sum(c not in PASSED for c in codes)} failed", flush=True)
    return 0 if all(c in PASSED for c in codes) else 1


def run_one(words, seconds):
    """What takes longer counts nothing."""
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                              errors="replace", check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        print(f"{' '.join(words)}: left out after {seconds:.0f} s", flush=True)
        return 0
    if done.returncode not in PASSED:
        print(f"{' '.join(words)}: exit {done.returncode}: {done.stdout[-300:]}", flush=True)
    return done.returncode


def is_kernel(path):
    """Not what a compiler or the host executor gives them, nor what the host says of them."""
    return path.endswith(".cuh") and "/machine/" not in path


def table(a):
    files, places = conditions.read(a.folder, program(a), SOURCES)
    files = {path: f for path, f in files.items() if is_kernel(path)}
    places = {place: n for place, n in places.items() if is_kernel(place.path)}
    lines, branches = tables.totals(files)
    known, ways = reasons.load(UNTAKEN), conditions.untaken(places)
    unexcused, stale = reasons.compare(known, ways)
    print(tables.text_of(files))
    print(reasons.text_of(known, ways))
    print(f"kernels: {lines:.1f} % of the lines, {branches:.1f} % of the branches; {unexcused} of {len(ways)} ways not taken have no reason")
    for one in stale:
        print(f"a reason for a way that is taken or is not there: {one.path}: {one.text}")
    return 0 if files and lines >= a.lines and branches >= a.branches and unexcused <= a.no_reason and not stale else 1


def main(words):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("verb", choices=("build", "run", "table"))
    p.add_argument("folder")
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--parts", type=int, default=8, help="of a case file, each a process")
    p.add_argument("--longest", type=float, default=3600.0, help="a process that takes longer, in seconds, counts nothing")
    p.add_argument("--lines", type=float, default=0.0)
    p.add_argument("--branches", type=float, default=0.0)
    p.add_argument("--no-reason", type=int, default=10 ** 9)
    a = p.parse_args(words)
    return {"build": build, "run": run, "table": table}[a.verb](a) or 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
