#!/usr/bin/env python3
"""Lines and branches of the kernels that the named cases execute, and of the judge that its tests do. Needs gcc and gcov.

    measure.py build kernels FOLDER              configures and builds a copy of the project that counts, in FOLDER
    measure.py run kernels FOLDER [--jobs N] [--parts N]     runs the cases (kernels) or the tests (judge) on it
    measure.py table kernels FOLDER              prints what is not executed, by file

Lines and branches are those of the source: one is executed if any instantiation executes it. table fails below --lines or
--branches percent."""
import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import counts  # noqa: E402
import table as tables  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "mutate"))
import cases_suite  # noqa: E402
import programs  # noqa: E402

SOURCES = {"kernels": ("gpu/kernels/",), "judge": ("ref/", "cases/")}
FLAGS = "--coverage -O1 -fno-exceptions -fprofile-update=single"


def build(a):
    flags = [f"-DCMAKE_{x}_FLAGS={FLAGS if x == 'CXX' else FLAGS.replace(' -fno-exceptions', '')}" for x in ("C", "CXX")]
    subprocess.run(["cmake", "-S", ".", "-B", a.folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=None", "-DFA_CUDA=OFF", "-DFA_WERROR=OFF", *flags],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", a.folder, f"-j{a.jobs}", *targets(a.what)], check=True, stdout=subprocess.DEVNULL)


def targets(what):
    if what == "kernels":
        return ["fa-verify"]
    return sorted({t for p in tests() for t in p.targets()})


def tests():
    return list({p.name: p for w in ("ref", "cases") for p in programs.chosen(w)}.values())


def commands(a):
    """Every command by itself: words."""
    verify = os.path.join(a.folder, "fa-verify")
    if a.what == "judge":
        return [[os.path.join(a.folder, w[1:]) if w.startswith("@") else w for w in p.words] for p in tests()]
    return [[verify, "run", "--backend", backend, "--no-isolate", "--jobs", "1", "-q", "--no-progress", "--shard", f"{i}/{a.parts}",
             "--cases", f"cases/{name}.json"]
            for backend, names in cases_suite.FILES.items() for name in names for i in range(a.parts)]


def run(a):
    for file in counts.data_files(a.folder):
        os.remove(file)
    with ThreadPoolExecutor(a.jobs) as pool:
        codes = list(pool.map(lambda words: run_one(words, a.longest), commands(a)))
    print(f"{len(codes)} commands, {sum(c not in (0, 4, 77) for c in codes)} failed", flush=True)
    return 0 if all(c in (0, 4, 77) for c in codes) else 1


def run_one(words, seconds):
    """What takes longer counts nothing."""
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                              errors="replace", check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        print(f"{' '.join(words)}: left out after {seconds:.0f} s", flush=True)
        return 0
    if done.returncode not in (0, 4, 77):
        print(f"{' '.join(words)}: exit {done.returncode}: {done.stdout[-300:]}", flush=True)
    return done.returncode


def table(a):
    files = counts.read(a.folder, SOURCES[a.what], a.jobs)
    lines, branches = tables.totals(files)
    print(tables.text_of(files))
    print(f"{a.what}: {lines:.1f} % of the lines, {branches:.1f} % of the branches")
    return 0 if files and lines >= a.lines and branches >= a.branches else 1


def main(words):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("verb", choices=("build", "run", "table"))
    p.add_argument("what", choices=sorted(SOURCES))
    p.add_argument("folder")
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--parts", type=int, default=8, help="of a case file, each a process")
    p.add_argument("--longest", type=float, default=3600.0, help="a process that takes longer, in seconds, counts nothing")
    p.add_argument("--lines", type=float, default=0.0)
    p.add_argument("--branches", type=float, default=0.0)
    a = p.parse_args(words)
    return {"build": build, "run": run, "table": table}[a.verb](a) or 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
