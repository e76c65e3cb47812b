"""Compiles mutated copies of sources as the build compiles the originals, and links programs with them.

Of mutants that are no program, such as a pointer shifted, the compiler says where it fails; they are left out, and the
rest is compiled again."""
import json
import os
import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor

import schemata

HERE = "tests/mutate"
DROPPED = re.compile(r"^-(W\w\S*|g\d?|c)$")
# What mutants may do and no source should: numbers wrap, lists narrow. What C only warns of is an error in C++.
# An index outside a function's own array and a division by 0 are errors that the tests under sanitizers see: they end the program.
MORE = ["-O1", "-g0", "-fwrapv", "-fmax-errors=0", "-fno-diagnostics-show-caret", "-ftemplate-backtrace-limit=0",
        "-fsanitize=bounds,shift,integer-divide-by-zero", "-fsanitize-undefined-trap-on-error"]
OF_C = ["-Werror=int-conversion", "-Werror=incompatible-pointer-types", "-Werror=implicit-function-declaration"]
OF_CXX = ["-Wno-narrowing", "-fpermissive", "-w"]
HOLDS = {"fa_host_kernels": "fa_gpu"}  # a target of objects -> the library that has them
PLACE = re.compile(r"^(.+?):(\d+):(\d+):\s+(error|note|required|.*)", re.M)


class NotBuilt(Exception):
    pass


def database(build):
    """{(target folder, source): command as words}"""
    try:
        with open(os.path.join(build, "compile_commands.json")) as f:
            entries = json.load(f)
    except FileNotFoundError:
        raise NotBuilt(f"{build} has no compile_commands.json") from None
    found = {}
    for e in entries:
        words = shlex.split(e["command"])
        target = re.search(r"CMakeFiles/(\w+)\.dir/", words[words.index("-o") + 1])
        if target:
            found[target.group(1), os.path.relpath(e["file"])] = words
    return found


def command_of(words, root, source, out):
    """The build's command for a mutated source."""
    kept = []
    for w in words:
        if words[words.index(w) - 1] == "-o" or w == "-o" or DROPPED.match(w) or w.endswith((".c", ".cu", ".cpp")):
            continue
        kept.append(w)
    first = 2 if os.path.basename(kept[0]) == "ccache" else 1
    more = OF_C if source.endswith(".c") else OF_CXX
    return [*kept[:first], f"-I{root}", *kept[first:], *MORE, *more, f"-fmacro-prefix-map={root}/=",
            "-include", f"{HERE}/switch.h", "-c", "-o", out, os.path.join(root, source)]


def includes(path, known):
    """The sources, from the top, that a source includes, itself too."""
    if path not in known:
        known[path] = {path}
        if os.path.exists(path):
            with open(path, errors="replace") as f:
                for name in re.findall(r'^\s*#\s*include "([^"]+)"', f.read(), re.M):
                    known[path] |= includes(name, known)
    return known[path]


def blamed(errors, root, places):
    """Numbers of the mutants that the compiler's errors are about."""
    def at(file, line, column):
        rel = os.path.relpath(file, root)
        return {n for row, first, last, n in places.get(rel, ()) if row == line and first <= column < last}

    def on_line(file, line):
        """Where the two arms of a switch do not fit, neither is at fault alone."""
        return {n for row, _, _, n in places.get(os.path.relpath(file, root), ()) if row == line}

    found, before, failing = set(), set(), False
    for line in errors.splitlines():
        m = PLACE.match(line)
        if not m:
            continue
        hits = at(m.group(1), int(m.group(2)), int(m.group(3)))
        if m.group(4).startswith("error"):
            failing = not hits
            found |= hits
            if failing and before | on_line(m.group(1), int(m.group(2))):
                found |= before or on_line(m.group(1), int(m.group(2)))
                failing = False
            before = set()
        elif m.group(4).startswith("required") and hits:
            before = before or hits
        elif m.group(4).startswith("note") and hits and failing:
            found |= hits
            failing = False
    return found


class Batch:
    """Mutants compiled together. left_out: those that are no program. tests: targets of test programs, whose own sources
    may include mutated ones. only: the target's units whose path holds this text; others stay as they are."""

    def __init__(self, build, folder, target, mutants, jobs, tests=(), only=""):
        self.build, self.folder, self.target, self.jobs = build, os.path.abspath(folder), target, jobs
        self.tests, self.only = tests, only
        self.mutants, self.left_out = list(mutants), []
        self.commands = database(build)
        os.makedirs(self.folder, exist_ok=True)

    def write(self):
        """The mutated sources; {path: places}"""
        places = {}
        for path in sorted({m.path for m in self.mutants + self.left_out}):
            with open(path, "rb") as f:
                text, places[path] = schemata.mutate(f.read(), [m for m in self.mutants if m.path == path])
            out = os.path.join(self.folder, path)
            os.makedirs(os.path.dirname(out), exist_ok=True)
            with open(out, "w") as f:
                f.write(text)
        return places

    def every_unit(self):
        """{source: target} of the target's sources that may hold mutants."""
        return {s: t for t, s in self.commands if t == self.target and not s.endswith(".c")}

    def built(self, target, unit):
        """The build's own object."""
        words = self.commands[target, unit]
        return os.path.join(self.build, words[words.index("-o") + 1])

    def units(self):
        """{source: target} of the sources of the targets that hold a mutant, or include one."""
        mutated, known = {m.path for m in self.mutants + self.left_out}, {}
        return {s: t for t, s in self.commands
                if t in self.tests or (t == self.target and self.only in s) if includes(s, known) & mutated}

    def compile(self, *more):
        """Objects of the target's units that hold mutants; those of tests wait for link(). more: options of the compiler."""
        units = self.units()
        waiting = set(units)
        while waiting:
            places = self.write()
            for unit in units:  # a unit without mutants of its own is compiled from a copy too
                self.copy(unit)
            with ThreadPoolExecutor(self.jobs) as pool:
                said = dict(zip(sorted(waiting), pool.map(lambda unit: self.compile_one(unit, more), sorted(waiting))))
            failed = {unit for unit, errors in said.items() if errors}
            bad = set().union(*(blamed(said[unit], self.folder, places) or self.declared_before(said[unit]) for unit in failed))
            if failed and not bad:
                raise NotBuilt("does not compile, and nobody is to blame:\n" + said[sorted(failed)[0]][:3000])
            self.left_out += [m for m in self.mutants if m.number in bad]
            self.mutants = [m for m in self.mutants if m.number not in bad]
            # whoever compiled has compiled mutants that others could not: they stay, and nobody asks for them
            waiting = failed
        return self.objects(units)

    def objects(self, units):
        """Of the target's own units: tests are linked with theirs by name."""
        return [self.object_of(u) for u, target in sorted(units.items()) if target == self.target]

    def declared_before(self, errors):
        """The mutants that leave out a statement a little before an error: it may be a declaration that looks like none."""
        at = [(os.path.relpath(m.group(1), self.folder), int(m.group(2))) for m in map(PLACE.match, errors.splitlines())
              if m and m.group(4).startswith("error")]
        return {m.number for m in self.mutants if m.whole and any(m.path == path and 0 <= line - m.line <= 8 for path, line in at)}

    def copy(self, unit):
        out = os.path.join(self.folder, unit)
        if not os.path.exists(out):
            os.makedirs(os.path.dirname(out), exist_ok=True)
            with open(unit) as f, open(out, "w") as to:
                to.write(f.read())

    def object_of(self, unit):
        return os.path.join(self.folder, unit.replace("/", "_") + ".o")

    def compile_one(self, unit, more=()):
        """None, or what the compiler says."""
        command = self.commands[self.units()[unit], unit]
        words = [*command_of(command, self.folder, unit, self.object_of(unit)), *more]
        done = subprocess.run(words, cwd=self.build_top(), capture_output=True, text=True, check=False,
                              env=dict(os.environ, LC_ALL="C"))
        return done.stderr if done.returncode else None

    def library(self):
        return f"lib{HOLDS.get(self.target, self.target)}.a"

    @staticmethod
    def build_top():
        return os.getcwd()

    def link_command(self, program):
        """That of the build, as words."""
        done = subprocess.run(["ninja", "-C", self.build, "-t", "commands", program], capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotBuilt(f"no program {program} in {self.build}: {done.stdout[-300:]}")
        last = [line for line in done.stdout.splitlines() if f" -o {program} " in line][-1]
        return [w for w in shlex.split(last) if w not in (":", "&&")]

    def link(self, program, objects, always=()):
        """A program of the build, with these objects before its libraries if one of them is the target's; its path."""
        out = os.path.join(self.folder, program)
        done = subprocess.run(self.link_words(program, objects, always, out), cwd=self.build, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotBuilt(f"{program} does not link:\n{done.stderr[-2000:]}")
        return out

    def link_words(self, program, objects, always, out):
        """The command that links it, from the build folder."""
        own = {f"CMakeFiles/{t}.dir/{os.path.basename(u)}.o": u for u, t in self.units().items() if t == program}
        words = [self.object_of(own[w[w.find("CMakeFiles/"):]]) if w[w.find("CMakeFiles/"):] in own else w for w in self.link_command(program)]
        words[words.index("-o") + 1] = out
        at = words.index("-o") + 2
        words[at:at] = [*(objects if self.library() in map(os.path.basename, words) else ()), *always]
        return words
