#!/usr/bin/env python3
"""Lines and branches of the judge (ref/, cases/) that its tests execute, in one command, from the top of the source tree:

    judge.py BUILD                counts, prints a table and each line that no test executes, with its reason
    judge.py BUILD --again        of what was counted before
    judge.py BUILD --more NAME... runs these tests besides, on what was compiled and counted before
    judge.py BUILD --lines 99.5 --branches 88 --no-reason 0      fails below that, or with more lines without a reason

BUILD is made by ninja and gcc. Only the judge is compiled again, with counters, into BUILD/counted; test programs are linked with
that before the build's own libraries, as mutants are. Tests: those of tests/mutate/programs.py for ref and cases,
and some more.
reasons.txt says why lines are not executed; a reason that no such line has is an error."""
import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import counts  # noqa: E402
import reasons  # noqa: E402
import table as tables  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "mutate"))
import compiling  # noqa: E402
import programs  # noqa: E402

TARGETS = {"fa_ref": "ref/libfa_ref.a", "fa_cases": "cases/libfa_cases.a"}
SOURCES = ("ref/", "cases/")
# Tests of what nobody mutates: base, arithmetic, vocabulary, expressions.
BESIDES = ("arithmetic", "dtype", "dtype_eight", "rng", "atomic_file", "expr", "contract_blocks", "contract_hello", "contract_lse",
           "fuzz_draws", "explain_hypotheses", "generate", "ref_largest", "processors", "bulk", "judge_every_kernel", "judge_together",
           "judge_canaries", "judge_process")
# Warnings are for the build: at -O1 the compiler sees less, and warns of more.
FLAGS = ["--coverage", "-Wno-error", "-O1", "-g0", "-fprofile-update=single"]
PASSED = (0, 77)


def tests(names=None):
    """Those of these names; None: all."""
    found = {p.name: p for p in [*programs.chosen("ref"), *programs.chosen("cases"), *programs.tests(*BESIDES)]}
    return [p for name, p in found.items() if names is None or name in names]


def compile_one(command, source, out):
    words = [w for i, w in enumerate(command) if w not in ("-o", "-c") and command[i - 1] != "-o" and not w.endswith(source)]
    subprocess.run([*words, *FLAGS, "-c", "-o", out, source], check=True)


def compile_all(build, folder, jobs, again):
    """{library: objects that stand before it}. again: also those that are there."""
    found = {library: [] for library in TARGETS.values()}
    work = []
    for (target, source), command in sorted(compiling.database(build).items()):
        if target in TARGETS and source.startswith(SOURCES):
            out = os.path.join(folder, source.replace("/", "_") + ".o")
            found[TARGETS[target]].append(out)
            if again or not os.path.exists(out):
                work.append((command, source, out))
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda one: compile_one(*one), work))
    return found


def link(build, folder, program, objects):
    batch = compiling.Batch(build, folder, "fa_ref", [], 1)
    words = batch.link_words(program, [], [], os.path.join(folder, program))
    at = words.index("-o") + 2
    words[at:at] = ["--coverage", *(o for library, some in objects.items() if library in words for o in some)]
    subprocess.run(words, cwd=build, check=True)


def run_one(words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                          errors="replace", check=False)
    if done.returncode not in PASSED:
        print(f"{' '.join(words)}: exit {done.returncode}: {done.stdout[-300:]}", flush=True)
    return done.returncode in PASSED


def count(build, folder, jobs, names):
    """Compiles, links and runs; whether all tests passed."""
    os.makedirs(folder, exist_ok=True)
    for file in counts.data_files(folder) if names is None else []:
        os.remove(file)
    objects, chosen = compile_all(build, folder, jobs, names is None), tests(names)
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda t: link(build, folder, t, objects), sorted({t for p in chosen for t in p.targets()})))
        commands = [[os.path.join(folder, w[1:]) if w.startswith("@") else w for w in p.words] for p in chosen]
        passed = list(pool.map(run_one, commands))
    print(f"{len(passed)} tests, {passed.count(False)} failed", flush=True)
    return all(passed)


def conclude(files, a):
    lines, branches = tables.totals(files)
    known = reasons.load(reasons.PATH)
    unexcused, stale = reasons.compare(known, reasons.unexecuted(files))
    print(tables.text_of(files))
    print(reasons.text_of(known, reasons.unexecuted(files)))
    print(f"judge: {lines:.1f} % of the lines, {branches:.1f} % of the branches; {unexcused} lines not executed have no reason")
    for one in stale:
        print(f"a reason for a line that is executed or is not there: {one.path}: {one.text}")
    return 0 if lines >= a.lines and branches >= a.branches and unexcused <= a.no_reason and not stale else 1


def main(words):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--again", action="store_true")
    p.add_argument("--more", nargs="+")
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--lines", type=float, default=0.0)
    p.add_argument("--branches", type=float, default=0.0)
    p.add_argument("--no-reason", type=int, default=10 ** 9)
    a = p.parse_args(words)
    folder = os.path.abspath(os.path.join(a.build, "counted"))
    passed = a.again or count(a.build, folder, a.jobs, a.more)
    return conclude(counts.read(folder, SOURCES, a.jobs), a) if passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
