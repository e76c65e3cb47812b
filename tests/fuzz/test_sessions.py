#!/usr/bin/env python3
"""What whole runs say and write, held as recorded, command by command.

usage: test_sessions.py PROGRAM PAGE... [--write]   (PAGE: sessions/PAGE.txt; PROGRAM: faulty_verify, which has a subject that
misbehaves, tests/support/faulty_backend.c; for the page "untrusted" fa-verify)

A page has lines "$ COMMAND", and below each, behind bars, what it prints and its exit code, if it is not 0; --write records again.
"fa-verify" is the program, $TESTS the folder of all tests. "show FILE [KEY...]" prints JSON, a line for each of its keys, or those named.
Times, machines and what errors of arithmetic are worth are put into words, so that a page holds on every machine."""
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = os.path.dirname(sys.executable)  # a version manager's stand-in takes ten times as long to start
# Keys whose values are this machine's or this moment's; what the judge measures, which other tests hold.
MACHINE = {"tool", "host", "started", "seconds", "seconds_subject", "elapsed", "git", "version", "record"}
MEASURED = {"worst", "statistics", "worst_ratio", "map", "ratios", "tightness", "rms"}
REAL = re.compile(r"(?<![\w-])-?\d+(\.\d+(e[-+]?\d+)?|e[-+]?\d+)\b")
TIME = re.compile(r"\b\d+ (ms|s|min)\b")


def in_words(text, folder, program):
    """The text without what another run of the same would print otherwise."""
    text = text.replace(program, "fa-verify").replace(folder, ".").replace(os.path.dirname(HERE), "tests")
    text = re.sub(r"\b[0-9a-f]{64}\b", "<hash>", text)
    text = re.sub(r"r=\S+", "r=~", text.replace("-nan", "nan"))
    text = re.sub(r"is \S+ times", "is ~ times", re.sub(r"\bPython [\d.]+", "Python ~", text))
    text = re.sub(r" over \d+\b|worst ratio \S+|\(0x[0-9a-f]+\)", " ~", text)
    text = re.sub(r"\(fa-verify [0-9.]+[^)]*\)", "(fa-verify)", text)
    text = re.sub(r"fa-verify [0-9.]+ \([^)]*\)", "fa-verify VERSION", text)
    text = re.sub(r"^ +0  .*\n", "", text, flags=re.M)  # features that no case has
    return TIME.sub("~ s", REAL.sub("~", text))


def pruned(x):
    if isinstance(x, dict):
        return {k: pruned(v) if k not in MACHINE | MEASURED else "~" for k, v in x.items()}
    return [pruned(v) for v in x] if isinstance(x, list) else x


def shown(path, keys):
    """JSON, or JSON lines, a line for each key of the outermost objects."""
    if not os.path.exists(path):
        return "there is none\n"
    with open(path) as f:
        text = f.read()
    try:
        objects = [json.loads(text)]
    except ValueError:
        objects = [json.loads(line) for line in text.splitlines()]
    lines = []
    for o in objects:
        for k, v in pruned(o).items():
            if k == "coverage":
                v = {kind: n if kind == "cases" else {name: i for name, i in n.items() if i} for kind, n in v.items()}
            if not keys or k in keys:
                lines.append(f"{k}: {json.dumps(v)}")
    return "\n".join(lines) + "\n"


def said_by(command, folder, program):
    """What the command printed, errors behind the rest, and its exit code."""
    words = command.split()
    if words[0] == "show":
        return barred(in_words(shown(os.path.join(folder, words[1]), words[2:]), folder, program))
    its = {**os.environ, "PATH": f"{folder}/bin:{PYTHON}:{os.environ['PATH']}", "TESTS": os.path.dirname(HERE),
           "ASAN_OPTIONS": "handle_segv=0:handle_abort=0"}  # whose own exit code would stand for the signal
    one = subprocess.run(["bash", "-c", command], cwd=folder, env=its, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         errors="replace", timeout=100, check=False)
    text = one.stdout + "".join(f"! {line}\n" for line in one.stderr.splitlines())
    return barred(in_words(text, folder, program) + (f"exit {one.returncode}\n" if one.returncode else ""))


def barred(text):
    return "".join(f"| {line}".rstrip() + "\n" for line in text.splitlines())


def blocks_of(page):
    """[(lines before, command, recorded)] and the lines behind the last."""
    found, before, lines = [], [], page.splitlines(keepends=True)
    at = 0
    while at < len(lines):
        if not lines[at].startswith("$ "):
            before.append(lines[at])
            at += 1
            continue
        command = lines[at][2:].rstrip("\n")
        at += 1
        end = at
        while end < len(lines) and lines[end].startswith("|"):
            end += 1
        found.append(("".join(before), command, "".join(lines[at:end])))
        before, at = [], end
    return found, "".join(before)


def hold(name, program, writes):
    """How many commands said something else."""
    path = os.path.join(HERE, "sessions", f"{name}.txt")
    with open(path) as f:
        blocks, rest = blocks_of(f.read())
    n_wrong, page = 0, ""
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/bin")
        os.symlink(program, f"{folder}/bin/fa-verify")
        for before, command, recorded in blocks:
            said = said_by(command, folder, program)
            page += f"{before}$ {command}\n{said}"
            if said != recorded and not writes:
                n_wrong += 1
                print(f"{name}: {command}\n-- recorded\n{recorded}-- now\n{said}")
    if writes:
        with open(path, "w") as f:
            f.write(page + rest)
    print(f"{name}: {len(blocks)} commands, {n_wrong} said something else")
    return n_wrong


def main(words):
    names = [w for w in words[1:] if not w.startswith("--")]
    return 1 if sum(hold(n, os.path.realpath(words[0]), "--write" in words) for n in names) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
