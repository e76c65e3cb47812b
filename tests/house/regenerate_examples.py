#!/usr/bin/env python3
"""Runs the examples of README.md and docs/ and puts what they print into the pages.

usage: regenerate_examples.py BUILD [--check] [--cxx g++] [--cc gcc]   (from the top of the source tree)

An example is a fenced block behind a line `<!-- example -->`. Its lines that begin with `$ ` are commands (one that ends in a
backslash goes on in the next line); everything else in it is what they print on stdout, and is replaced. `<!-- example: 12 lines -->`
keeps the first 12 lines of what each prints, `<!-- example: 200 columns -->` so much of each line, and both can be said.
Commands run in a folder of their own that has the repository's folders and BUILD as `build`; `ninja -C build mutants/NAME.so` builds
that mutant for the examples alone.

--check changes nothing: exit status 1 if a page does not show what its commands print. Times and counts of runs may differ, other
numbers by 1 %, as they do from one processor to another. Afterwards pages with one fault each are checked, and every fault must be
found. It tries a share of the examples where it is asked to (tests/support/share.h)."""
import argparse
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from share import share  # noqa: E402

PAGES = ["README.md", *sorted(str(p) for p in pathlib.Path("docs").rglob("*.md"))]
EXAMPLE = re.compile(r"^<!-- example(?:: (?P<options>[^>]*))? -->\n```\n(?P<block>.*?)^```$", re.M | re.S)
MUTANT = re.compile(r"^ninja -C build mutants/(\w+)\.so$")
VARIES = re.compile(r"\b\d+(?:\.\d+)? (?:ms|s|runs)\b")  # how many runs it takes depends on how many run at once
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")


class Machine:
    """Where the commands run."""

    def __init__(self, build, cxx, cc):
        self.build, self.cxx, self.cc = build.resolve(), cxx, cc
        self.mutants = self.build / "examples"  # kept, with the objects that did not change
        self.mutants.mkdir(exist_ok=True)
        self.folder = tempfile.TemporaryDirectory(prefix="fa-examples-")
        for name in ("cases", "tests", "docs", "gpu"):
            os.symlink(pathlib.Path(name).resolve(), self.path / name)
        os.symlink(self.build, self.path / "build")

    @property
    def path(self):
        return pathlib.Path(self.folder.name)

    def output(self, command):
        mutant = MUTANT.match(command)
        if mutant:
            patch = f"tests/mutants/{mutant.group(1)}.patch"
            done = run(["python3", "tests/mutants/build.py", patch, self.mutants / f"{mutant.group(1)}.so", "--cxx", self.cxx, "--cc", self.cc])
        else:
            environment = {**os.environ, "FA_MUTANT_DIR": str(self.mutants), "NO_COLOR": "1"}
            done = run(["bash", "-c", command], cwd=self.path, env=environment)
        if done.returncode not in (0, 1):
            sys.exit(f"{command}\nexit status {done.returncode}\n{done.stdout}{done.stderr}")
        return "" if mutant else done.stdout


def run(words, **how):
    return subprocess.run(words, capture_output=True, text=True, check=False, **how)


def commands(block):
    """The commands of a block, as they stand there."""
    found = []
    for line in block.splitlines():
        if found and found[-1].endswith("\\"):
            found[-1] += "\n" + line
        elif line.startswith("$ "):
            found.append(line)
    return found


def shortened(text, options):
    """What is shown of what a command printed."""
    wanted = {unit: int(n) for n, unit in re.findall(r"(\d+) (lines|columns)", options or "")}
    lines, columns = text.splitlines(), wanted.get("columns")
    if "lines" in wanted and len(lines) > wanted["lines"]:
        lines = [*lines[:wanted["lines"]], "..."]
    return "".join((f"{line[:columns]}..." if columns and len(line) > columns else line) + "\n" for line in lines)


def rewritten(page, machine, report, wanted):
    """The page with what its commands print now, of the blocks of examples that are wanted. report(old block, new block) is called for each."""
    def again(example):
        if example["block"] not in wanted:
            return example[0]
        block = ""
        for command in commands(example["block"]):
            block += command + "\n" + shortened(machine.output(command[2:]), example["options"])
        report(example["block"], block)
        return example[0].replace(example["block"], block)
    return EXAMPLE.sub(again, page)


def without_times(shown, printed):
    """Both blocks with one word for each time. A line that is cut short ends elsewhere if its times are longer, so two such lines are
    cut again, where the shorter one has its last whole word."""
    pairs = [[VARIES.sub("VARIES", line) for line in pair] for pair in itertools.zip_longest(shown.splitlines(), printed.splitlines(), fillvalue="")]
    for pair in pairs:
        if all(line.endswith("...") and len(line) > 3 for line in pair):
            n = min(map(len, pair)) - 3
            n = pair[0].rfind(" ", 0, n) if " " in pair[0][:n] else n
            pair[:] = [line[:n] for line in pair]
    return ["\n".join(lines) for lines in zip(*pairs)]


def alike(shown, printed):
    """Whether two blocks say the same, but for times and small differences of numbers."""
    a, b = without_times(shown, printed)
    if NUMBER.sub("N", a) != NUMBER.sub("N", b):
        return False
    numbers = zip(NUMBER.findall(a), NUMBER.findall(b))
    return all(abs(x - y) <= 0.01 * max(abs(x), abs(y)) for x, y in ((value(p), value(q)) for p, q in numbers))


def value(text):
    return float(text.replace(",", ""))


def faults(block):
    """Copies of a block, each with a fault that must be found."""
    lines = block.splitlines(keepends=True)
    yield block.replace(lines[-1], "")
    yield block + "a line that nothing prints\n"
    yield block.replace(" bad", " wrong", 1) if " bad" in block else block.replace(":", ";", 1)
    number = next((n for n in NUMBER.finditer(block, len(lines[0])) if value(n[0]) != 0 and not VARIES.match(block, n.start())), None)
    if number:
        yield block[:number.start()] + f"{1.5 * value(number[0]):g}" + block[number.end():]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--cc", default="cc")
    options = parser.parse_args()
    machine = Machine(options.build, options.cxx, options.cc)
    stale, found = [], []
    pages = {name: pathlib.Path(name).read_text(encoding="utf-8") for name in PAGES}
    wanted = [example["block"] for page in pages.values() for example in EXAMPLE.finditer(page)]
    n_all = len(wanted)
    if options.check:
        wanted = share(wanted)  # of a short list some days have nothing
    for name, page in pages.items():
        blocks = []
        new = rewritten(page, machine, lambda old, now: blocks.append((old, now)), set(wanted))
        stale += [(name, old, now) for old, now in blocks if not alike(old, now)]
        found += blocks
        if not options.check and any(not alike(old, now) for old, now in blocks):
            pathlib.Path(name).write_text(new, encoding="utf-8")
    for name, old, now in stale:
        print(f"{name} shows\n{old}\nbut it is\n{now}" if options.check else f"{name}: {commands(now)[-1]}")
    missed = [fault for _, now in found for fault in faults(now) if alike(fault, now)]
    for fault in missed:
        print(f"this fault is not found:\n{fault}")
    print(f"{len(found)} examples, {len(stale)} {'not as shown' if options.check else 'replaced'}, {len(missed)} faults missed")
    return 1 if missed or (options.check and stale) or not n_all or (wanted and not found) else 0


if __name__ == "__main__":
    sys.exit(main())
