"""What clang counted, by place in the source. There the instances of a template are one, whatever each of them folds away: a condition that
is a constant in an instance is none of that instance's, and a way out of it is taken if any instance takes it."""
import glob
import json
import os
import re
import subprocess
from collections import defaultdict
from dataclasses import dataclass, field
from functools import lru_cache

from counts import File

FLAGS = "-fprofile-instr-generate -fcoverage-mapping -fprofile-update=atomic"
CODE, GAP = 0, 3  # kinds of regions; a gap is what lies between two statements


@dataclass(frozen=True, order=True)
class Place:
    """A condition: where it begins, and its text on one line."""
    path: str
    line: int
    column: int
    text: str = field(compare=False)


def pattern(folder):
    """What LLVM_PROFILE_FILE is for programs that run at once: they add to one of eight files."""
    return os.path.join(os.path.abspath(folder), "profiles", "%8m.profraw")


def profiles(folder):
    return glob.glob(os.path.join(folder, "profiles", "*.profraw"))


def tool(name):
    return subprocess.run([os.environ.get("CLANG", "clang"), f"-print-prog-name={name}"], capture_output=True, text=True, check=True).stdout.strip()


def functions_of(folder, program):
    profile = os.path.join(folder, "profiles", "all.profdata")
    subprocess.run([tool("llvm-profdata"), "merge", "-sparse", *profiles(folder), "-o", profile], check=True)
    text = subprocess.run([tool("llvm-cov"), "export", "-format=text", program, f"-instr-profile={profile}"], capture_output=True, check=True).stdout
    return json.loads(text)["data"][0]["functions"]


def text_at(path, begin, end):
    """Of the source between two places, (line, column) from 1, without line breaks."""
    lines = source(path)[begin[0] - 1:end[0]]
    lines[-1] = lines[-1][:end[1] - 1]
    lines[0] = lines[0][begin[1] - 1:]
    return " ".join(line.strip() for line in lines)


def conditions(functions, wanted):
    """{Place: [times true, times false]} of all functions, those of a macro at the macro's text."""
    found = defaultdict(lambda: [0, 0])
    for one in functions:
        for line, column, last, end, true, false, file, *_ in one["branches"]:
            path = os.path.relpath(one["filenames"][file])
            if path.startswith(wanted):
                known = found[path, line, column, last, end]
                known[0] += true
                known[1] += false
    return {Place(path, line, column, text_at(path, (line, column), (last, end))): ways for (path, line, column, last, end), ways in found.items()}


def lines_of(regions):
    """{line: executed} of the regions of one function: of a line what is around its beginning, or code that begins in it."""
    around, begun = {}, defaultdict(int)
    for first, _, last, _, count, _, _, kind in sorted(regions, key=lambda r: (r[0], r[1], -r[2], -r[3])):
        if kind == CODE:
            begun[first] = max(begun[first], count)
        around.update((line, count) for line in range(first + 1, last + 1))
    return {line: max(around.get(line, 0), begun.get(line, 0)) > 0 for line in {*around, *begun}}


def lines(functions, wanted):
    """{path: {line: executed}}, executed if any function that has the line executes it; without lines that are blank or a comment."""
    found = defaultdict(dict)
    for one in functions:
        for file, name in enumerate(one["filenames"]):
            path = os.path.relpath(name)
            if path.startswith(wanted):
                some = lines_of([r for r in one["regions"] if r[5] == file and r[7] in (CODE, GAP)])
                found[path].update((n, executed or found[path].get(n, False)) for n, executed in some.items())
    return {path: {n: executed for n, executed in some.items() if is_code(path, n)} for path, some in found.items()}


@lru_cache(maxsize=None)
def source(path):
    with open(path) as f:
        return f.read().split("\n")


def is_constant(function):
    """Whether it is declared constexpr: if nobody runs it, the compiler has."""
    line, column = function["regions"][0][:2]
    body = source(os.path.relpath(function["filenames"][0]))
    declared = " ".join([*body[max(0, line - 3):line - 1], body[line - 1][:column]])
    return re.search(r"\bconstexpr\b[^;{}]*\)[^;{}]*.?$", declared) is not None


def is_code(path, number):
    text = source(path)[number - 1].strip()
    return bool(text) and not text.startswith("//")


def read(folder, program, wanted):
    """({path from the top: File}, {Place: [times true, times false]}) of the sources whose path begins with one of wanted."""
    functions = [one for one in functions_of(folder, program) if one["count"] or not is_constant(one)]
    places, files = conditions(functions, wanted), defaultdict(File)
    for path, some in lines(functions, wanted).items():
        files[path].lines = some
    for place in sorted(places):
        files[place.path].extend(place.line, [n > 0 for n in places[place]])
    return dict(files), places


def untaken(places):
    """[(path, line's number, "CONDITION never true")], or never false, or never asked."""
    found = []
    for place in sorted(places):
        true, false = places[place]
        if not true or not false:
            way = "false" if true else "true" if false else "asked"
            found.append((place.path, place.line, f"{place.text} never {way}"))
    return found
