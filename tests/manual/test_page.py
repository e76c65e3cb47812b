#!/usr/bin/env python3
"""The manual page is right for man, groff and mandoc, and has all that the program has.

usage: test_page.py FA-VERIFY SOURCES

Each of the three that is installed must find nothing to warn of; the sections must be there, and in them every command, option,
backend and example of the help, and every variable that the sources ask the environment for. Then the page is given faults, and
every one must be found."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from roff import printed, sections

SECTIONS = "NAME|SYNOPSIS|DESCRIPTION|COMMANDS|OPTIONS|BACKENDS|EXAMPLES|EXIT STATUS|ENVIRONMENT|FILES|SEE ALSO".split("|")
CHECKERS = [["man", "-l", "--warnings", "-Tutf8"], ["groff", "-ww", "-man", "-Tutf8", "-z"], ["mandoc", "-Tlint"]]

# What a page may have wrong.
FAULTS = {
    "an unknown macro": lambda page: page + ".XY no such macro\n",
    "an unknown character": lambda page: page + "\\[nosuchglyph]\n",
    "a section that is missing": lambda page: page.replace(".SH FILES\n", ".PP\n"),
    "an option that is missing": lambda page: page.replace("\\-\\-schedule\\-seed", "\\-\\-schedule\\-sed"),
    "a variable that is missing": lambda page: page.replace("SLURM_ARRAY_TASK_STEP", ""),
    "a variable that nothing reads": lambda page: page.replace("FA_NVRTC", "FA_NVRTC, FA_NVCC"),
    "an example that is missing": lambda page: page.replace("night.json", "day.json"),
    "a line that is too long": lambda page: page + "word " * 17 + "word\n",
}


def asked_variables(sources):
    """Variables of the environment in the sources of the program: whatever looks like one in a file that calls getenv."""
    found = set()
    for folder in ("cases", "ref", "gpu", "report", "fuzz"):
        for path in (sources / folder).rglob("*.c"):
            text = path.read_text(encoding="utf-8")
            found |= set(re.findall(r'setenv\("(\w+)"', text))
            if "getenv(" in text and not {"targets", "inputs"} & set(path.parts):
                found |= set(re.findall(r'"([A-Z]+(?:_[A-Z]+)+|HOME|TMPDIR)"', text))
    found |= set(re.findall(r"FA_[A-Z]+_DIR", (sources / "fuzz/manual/complete.bash").read_text(encoding="utf-8")))
    return found - {"FACUBIN", "SKYLAKEX", "HASWELL"}


def said_by(page, checkers, folder):
    """What man, groff and mandoc have to say."""
    file = folder / "fa-verify.1"
    file.write_text(page, encoding="utf-8")
    said = []
    for checker in checkers:
        done = subprocess.run([*checker, file], capture_output=True, text=True, check=False)
        words = done.stderr + (done.stdout if checker[0] == "mandoc" else "")
        said += [f"{checker[0]}: {line}" for line in words.splitlines()]
    return said


def missing(page, help_of, variables):
    """What the page lacks."""
    has = sections(page)
    if list(has) != SECTIONS:
        yield f"the sections are {list(has)}"
        return
    for command, text in help_of.items():
        if f"fa-verify {command}" not in has["SYNOPSIS"]:
            yield f"SYNOPSIS: no {command}"
        yield from (f"OPTIONS: no {o}" for o in re.findall(r"^  (?:-\w, |    )(--[a-z-]+)", text, re.M) if f"{o} " not in has["OPTIONS"])
        examples = text.partition("\nexamples:\n")[2].partition("\nexit codes:\n")[0]
        yield from (f"EXAMPLES: no {e}" for e in re.findall(r"^  (\S.*)$", examples, re.M) if e not in has["EXAMPLES"])
    named = set(re.findall(r"\b(?:[A-Z]+_[A-Z_]+|HOME|TMPDIR)\b", has["ENVIRONMENT"]))
    yield from (f"ENVIRONMENT: no {v}" for v in variables - named)
    yield from (f"ENVIRONMENT: nothing reads {v}" for v in named - variables)


def main(verify, sources):
    page, variables = printed(verify, "man"), asked_variables(pathlib.Path(sources))
    commands = re.findall(r"^  ([a-z]+) ", printed(verify, "help").partition("\noptions of")[0], re.M)
    help_of = {command: printed(verify, "help", command) for command in [*commands, "man"]}
    checkers = [checker for checker in CHECKERS if shutil.which(checker[0])]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)

        def faults(text):
            long = [f"a line of {len(line)} bytes" for line in text.splitlines() if len(line) > 80]
            return [*said_by(text, checkers, folder), *missing(text, help_of, variables), *long]
        found = faults(page)
        for line in found:
            print(line)
        needs_checker = ("an unknown macro", "an unknown character")
        tried = {name: fault(page) for name, fault in FAULTS.items() if checkers or name not in needs_checker}
        missed = [name for name, text in tried.items() if text == page or not faults(text)]
    for name in missed:
        print(f"this fault is not found: {name}")
    print(f"{len(help_of)} commands, {len(variables)} variables, read by {', '.join(c[0] for c in checkers) or 'none of man, groff, mandoc'}: "
          f"{len(found)} faults; {len(tried) - len(missed)} of {len(tried)} planted ones found")
    return 1 if found or missed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
