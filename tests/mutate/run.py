#!/usr/bin/env python3
"""Mutates the project's sources by machine, and asks what kills each mutant. From the top of the source tree, with a
build folder made by ninja; needs the packages tree-sitter, tree-sitter-c and tree-sitter-cpp.

    run.py --what kernels --sample 200 --seed 7       200 of the kernels' mutants, chosen by the seed
    run.py --what kernels --shard 2/8 --resume        all of an eighth of them, going on where the journal ends
    run.py --what kernels --one 0a1b2c3d4e            one mutant, by its key
    run.py --what kernels --judge host                the GPU's judge, on the processor, beside the CPU's
    run.py --what kernels --table docs/notes/detection.md     the journal's table,
                                                       of what the sources still have

Exit: 0 all are killed or in equivalent.txt, 1 some survive (an ERROR kills nothing: it is the judge's), 77 the packages are not there."""
import argparse
import os
import random
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import both_suites  # noqa: E402
import cases_suite  # noqa: E402
import compiling  # noqa: E402
import equivalents  # noqa: E402
import journal  # noqa: E402
import killing  # noqa: E402
import programs  # noqa: E402
import programs_suite  # noqa: E402
import rivals  # noqa: E402
import source  # noqa: E402
import subjects  # noqa: E402
import table  # noqa: E402


def say(text):
    print(text, flush=True)


def arguments(words):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--what", choices=sorted(subjects.SUBJECTS), default="kernels")
    p.add_argument("--build", default="build", help="the build folder")
    p.add_argument("--only", help="only sources whose path holds this text")
    p.add_argument("--units", default="", help="mutate only in units whose path holds this text, such as flash/backward.cu")
    p.add_argument("--sample", type=int, help="so many mutants, chosen at random")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--shard", default="1/1", help="i/n: the i-th of n parts")
    p.add_argument("--one", help="one mutant, by its key, again; several with commas, or @FILE")
    p.add_argument("--rivals", metavar="FILE", help="then ask other projects' rules about those with these keys")
    p.add_argument("--resume", action="store_true", help="keep what the journal holds, and go on")
    p.add_argument("--journal", help="default: BUILD/mutate/WHAT.jsonl")
    p.add_argument("--folder", help="of the mutated sources and programs, below BUILD/mutate; default: WHAT")
    p.add_argument("--batch", type=int, default=1000, help="so many are compiled together")
    p.add_argument("--budget", type=float, nargs="+", default=[1e9],
                   help="seconds of the processor for one mutant; several: more for those that the first left alive, when all were asked")
    p.add_argument("--dearest", type=float, default=60.0, help="cases that take longer, in seconds, are left out")
    p.add_argument("--slowest", type=float, default=600.0, help="test programs that take longer, in seconds, are left out")
    p.add_argument("--cases", nargs="*", help="case files in place of all")
    p.add_argument("--backends", nargs="*", help="in place of all")
    p.add_argument("--judge", default="cpu", choices=("cpu", "host"), help="who judges cases; host: both, and they must agree")
    p.add_argument("--programs", nargs="*", help="test programs in place of all; without a name: none")
    p.add_argument("--jobs", type=int, default=os.cpu_count(), help="so many compilers, and mutants, at once")
    p.add_argument("--list", action="store_true", help="print the mutants and stop")
    p.add_argument("--table", metavar="PAGE", help="write the journal's table into the page and stop; -: print it")
    p.add_argument("--floor", type=float, help="exit 0 if at least this share (percent) of those that are reached and not equivalent is killed")
    return p.parse_args(words)


def keys_of(text):
    """Of KEY,KEY,... or @FILE, which has one in the beginning of a line."""
    if not text.startswith("@"):
        return set(text.split(","))
    with open(text[1:]) as f:
        return {line.split()[0] for line in f if line.strip()}


def chosen(found, a):
    """The mutants that the options choose, in the order of the files."""
    index, of = (int(x) for x in a.shard.split("/"))
    if a.one:
        keys = keys_of(a.one)
        found = [m for m in found if m.key in keys]
    elif a.sample:
        found = random.Random(a.seed).sample(found, min(a.sample, len(found)))
    picked = sorted(found, key=lambda m: m.number)
    return picked[index - 1::of]


def suite_of(a, batch, objects):
    tests = programs_suite.Suite(batch, objects, programs.chosen(a.what, a.programs), a.slowest, a.jobs)
    if subjects.SUBJECTS[a.what].suite == "tests":
        return tests
    return both_suites.Suite(cases_suite.Suite(batch.link("mutate_serve", objects), a.cases, a.backends, a.dearest, a.jobs, a.judge),
                             tests)


def batch_of(a, some):
    folder = os.path.join(a.build, "mutate", a.folder or a.what)
    tests = [target for p in programs.chosen(a.what, a.programs) for target in p.targets()]
    return compiling.Batch(a.build, folder, subjects.SUBJECTS[a.what].target, some, a.jobs, tests, a.units)


def run_batch(a, some, book, known):
    batch = batch_of(a, some)
    began = time.time()
    objects = batch.compile()
    say(f"{len(batch.mutants)} mutants compiled in {time.time() - began:.0f} s, {len(batch.left_out)} are no program")
    if a.rivals:
        ask_rivals(a, batch, objects, book)
    suite = suite_of(a, batch, objects)
    try:
        suite.reach(say)
        ready = time.time()
        say(f"reached in {ready - began:.0f} s")
        killing.judge_all(batch, suite, book, a.budget, say, a.jobs, known)
    finally:
        suite.close()
    now = time.time()
    say(f"{len(some)} mutants in {now - began:.0f} s, {60 * len(some) / (now - began):.0f} a minute; "
        f"{60 * len(batch.mutants) / max(now - ready, 1e-9):.0f} a minute without compiling and looking what is reached")


def ask_rivals(a, batch, objects, book):
    began = time.time()
    found = rivals.ask(batch, objects, keys_of("@" + a.rivals), a.jobs)
    rivals.write(book.path + ".rivals.json", found)
    say(f"{len(found)} asked of other rules in {time.time() - began:.0f} s")


def conclude(a, rows, known):
    text = table.summary(rows, known, a.what)
    say(text.rstrip())
    open_ones = [r for r in rows if table.word(r, known) in table.OPEN]
    for r in open_ones:
        say(f"{r.outcome.upper()} {r.key} {r.path}:{r.line} {r.kind}: {r.change} {r.reason}")
    judged = [r for r in rows if table.word(r, known) not in ("equivalent", "no program", "unreached")]
    if a.floor is not None:
        return 0 if judged and 100 * sum(r.killed for r in judged) >= a.floor * len(judged) else 1
    return 1 if open_ones else 0


def print_table(a, path, known):
    """Of the journal's rows about mutants that there still are."""
    there = {m.key for m in subjects.find(subjects.SUBJECTS[a.what], a.only)}
    rows = [r for r in journal.Journal(path, True).rows.values() if r.key in there and (not a.one or r.key in keys_of(a.one))]
    text = table.text_of(rows, known, a.what, len(rows) if a.table == "-" else table.MOST_LISTED)
    print(text) if a.table == "-" else table.write(a.table, a.what, text)
    if os.path.exists(path + ".rivals.json"):
        print(rivals.text_of(rivals.read(path + ".rivals.json"), {r.key: r for r in rows}, known))
    return 0


def main(words):
    a = arguments(words)
    if source.tree_sitter is None:
        say(f"skipped: {source.WHY_ABSENT}")
        return 77
    known = equivalents.load()
    path = a.journal or os.path.join(a.build, "mutate", f"{a.what}.jsonl")
    if a.table:
        return print_table(a, path, known)
    found = subjects.find(subjects.SUBJECTS[a.what], a.only)
    picked = chosen(found, a)
    say(f"{a.what}: {len(found)} mutants, {len(picked)} chosen, seed {a.seed}, shard {a.shard}")
    if a.list:
        for m in picked:
            say(f"{m.key} {m.label()}")
        return 0
    book = journal.Journal(path, a.resume or a.one)
    waiting = [m for m in picked if a.one or m.key not in book.rows]
    for i in range(0, len(waiting), a.batch):
        run_batch(a, waiting[i:i + a.batch], book, known)
    return conclude(a, [book.rows[m.key] for m in picked], known)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
