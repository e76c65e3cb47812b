#!/usr/bin/env python3
"""Asks real shells to complete command lines of fa-verify, with the scripts that the program prints.

usage: test_completion.py SHELL FA-VERIFY   (SHELL: bash, zsh or fish; exit status 77 where it is not installed)

For each line: what must be among the candidates, and what must not. Afterwards the script is given faults, and every one must be
found."""
import itertools
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

FILES = ["cards.json", "catalog.txt", "report.json", "recorded.safetensors", "mine.so", "two words.json", "sub/deep.json"]
COMMANDS = "run random repro shrink probe check golden report bench list help completion man"

# line, what must be among the candidates, what must not
CHECKS = [
    ("fa-verify ru", "run", "random report"),
    ("fa-verify ", COMMANDS, "cards.json --cases"),
    ("fa-verify run --", "--cases --filter --resume --html --jobs --help", "--count --merge --dtype"),
    ("fa-verify run --no-", "--no-isolate --no-probe --no-explain --no-progress", "--no-times"),
    ("fa-verify report --", "--html --junit --merge --compare --require", "--cases --jobs"),
    ("fa-verify --", "--cases --backend --version", "--count"),
    ("fa-verify random --profile ", "causal kvcache adversarial rate-gpu", "cards.json ties"),
    ("fa-verify random --profile ad", "adversarial", "causal"),
    ("fa-verify run --cases ca", "causal cards.json", "catalog.txt window"),
    ("fa-verify --cases causal win", "window", "causal"),
    ("fa-verify --cases causal --fil", "--filter", "--cases"),
    ("fa-verify run --cases s", "sub softcap", "schema"),
    ("fa-verify run --cases sub/", "sub/deep.json", "causal"),
    ("fa-verify run --backend re", "ref-f32", "host"),
    ("fa-verify run --backend pl", "plugin:", "py:"),
    ("fa-verify run --backend mutant:alibi_b", "mutant:alibi_batch_ignored", "mutant:barrier_missing_v"),
    ("fa-verify run --law ke", "key-permutation", "repeat"),
    ("fa-verify run --color ", "auto always never", "cards.json"),
    ("fa-verify run --color=al", "always", "auto"),
    ("fa-verify run --report re", "report.json", "recorded.safetensors"),
    ("fa-verify run --require ", "all report.json", "catalog.txt"),
    ("fa-verify run --keep ", "sub", "cards.json"),
    ("fa-verify run --filter ca", "", "causal cards.json"),
    ("fa-verify check re", "recorded.safetensors", "report.json"),
    ("fa-verify report ", "report.json cards.json", "recorded.safetensors mine.so"),
    ("fa-verify report cards.json re", "report.json", "recorded.safetensors"),
    ("fa-verify golden ", "write check", "sub"),
    ("fa-verify golden check ", "sub", "write cards.json"),
    ("fa-verify golden check sub --ca", "--cases --case", "--jobs"),
    ("fa-verify list ", "backends profiles cases mutants", "run"),
    ("fa-verify probe --dtype b", "bf16", "f16"),
    ("fa-verify help ra", "random", "run"),
    ("fa-verify -j 4 ran", "random", "run"),
    ("fa-verify --seed run ran", "random", "run"),
    ("fa-verify -", "-j -v -h -V", ""),
    ("fa-verify completion ", "bash zsh fish", "run"),
]

# What a script may have wrong, as text to replace.
FAULTS = [("adversarial", "adversarail"), ("resume", "resumee"), (".json", ".jso"), ("mutants", "mutant")]


class Bash:
    """Calls the function that bash would call, with the words as bash splits them."""

    ASK = """source "$1"; [[ $(complete -p fa-verify) == *' -F '* ]] || exit 9
while IFS= read -r line; do
  COMP_LINE=$line COMP_POINT=${#line} COMP_WORDS=() rest=$line
  while [[ $rest =~ ^[[:blank:]]*([:=]+|[^[:blank:]:=]+)(.*)$ ]]; do
    COMP_WORDS+=("${BASH_REMATCH[1]}") rest=${BASH_REMATCH[2]}
  done
  [[ $line == *[[:blank:]=:] ]] && COMP_WORDS+=('')
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
  _fa_verify fa-verify "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
  printf '%s\\n' "${COMPREPLY[@]}" =====
done"""

    def __init__(self, script, folder):
        self.script, self.folder = script, folder

    def ask(self, lines):
        done = subprocess.run(["bash", "--norc", "--noprofile", "-c", self.ASK, "bash", self.script], input="".join(f"{line}\n" for line in lines),
                              cwd=self.folder, capture_output=True, text=True, check=True)
        assert not done.stderr, done.stderr
        return [answer.splitlines() for answer in done.stdout.split("=====\n")[:-1]]


class Fish:
    """fish can be asked."""

    def __init__(self, script, folder):
        self.script, self.folder = script, folder

    def ask(self, lines):
        asked = "".join(f"complete -C '{line}'; echo =====\n" for line in lines)
        environment = {**os.environ, "HOME": str(self.folder / "home"), "XDG_CONFIG_HOME": str(self.folder / "home")}
        done = subprocess.run(["fish", "--no-config", "-c", f"source {self.script}\n{asked}"], cwd=self.folder, capture_output=True, text=True,
                              check=True, env=environment)
        assert not done.stderr, done.stderr
        return [[line.split("\t")[0] for line in answer.splitlines()] for answer in done.stdout.split("=====\n")[:-1]]


class Zsh:
    """A terminal in which ^T lists the candidates of what was typed, however many; every one is also written to a file."""

    START = """PS1= LISTMAX=100000; cd "$FA_FOLDER"; fpath=("$FA_FPATH" $fpath); autoload -Uz compinit; compinit -u -D
compadd() {
  local -a hits
  builtin compadd "$@"; local -i code=$?
  [[ ${(@)argv[1,(i)--]} == *-(O|A|D)* ]] || builtin compadd -A hits "$@"
  print -rl -- $hits >>$FA_HITS
  return code
}
fa-ask() { : >$FA_HITS; zle list-choices; : >$FA_DONE; }
zle -N fa-ask; bindkey '^T' fa-ask; : >$FA_DONE
"""

    def __init__(self, script, folder):
        self.hits, self.done = folder / "hits", folder / "done"
        fpath = folder / "fpath"
        fpath.mkdir(exist_ok=True)
        shutil.copy(script, fpath / "_fa-verify")
        environment = {**os.environ, "FA_FPATH": str(fpath), "FA_HITS": str(self.hits), "FA_DONE": str(self.done), "FA_FOLDER": str(folder),
                       "TERM": "dumb", "HOME": str(folder)}
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execvpe("zsh", ["zsh", "-f", "-i"], environment)
        start = folder / "start.zsh"
        start.write_text(self.START)
        self.type(f"source {start}\n")

    def type(self, text):
        """Types, and waits until the shell says that it is done; reads what it prints, so that it can go on."""
        self.done.unlink(missing_ok=True)
        os.write(self.terminal, text.encode())
        printed, end = b"", time.monotonic() + 30
        while not self.done.exists():
            if select.select([self.terminal], [], [], 0.01)[0]:
                printed += os.read(self.terminal, 65536)
            assert time.monotonic() < end, f"zsh does not answer {text!r}: {printed[-2000:]!r}"

    def ask(self, lines):
        for line in lines:
            self.type(f"{line}\x14")
            yield self.hits.read_text().splitlines()
            os.write(self.terminal, b"\x15")  # ^U: forget the line

    def close(self):
        os.close(self.terminal)
        os.waitpid(self.pid, 0)


def bare(candidate, line):
    """A candidate as a whole word: shells leave out or add what is typed already, and mark folders."""
    word = re.split(r"[ =]", line)[-1]
    candidate = re.sub(r"^--[a-z-]+=(?=.)", "", candidate.rstrip("/ ")).rstrip("=")
    for part in (word[:word.rfind(c) + 1] for c in ":/"):
        if part and not candidate.startswith(part):
            candidate = part + candidate
    return candidate


def wrong(shell):
    """A line for each check that fails."""
    for (line, wanted, unwanted), answer in zip(CHECKS, shell.ask([line for line, _, _ in CHECKS]), strict=True):
        got = {bare(candidate, line) for candidate in answer if candidate}
        missing, extra = set(wanted.split()) - got, set(unwanted.split()) & got
        if missing or extra:
            yield f"{line!r}: missing {sorted(missing)}, not wanted {sorted(extra)}, of {sorted(got)}"


def tried(name, text, folder, most=len(CHECKS)):
    """What is wrong with a script; of a faulty one the first lines will do."""
    script = folder / "script"
    script.write_text(text)
    shell = {"bash": Bash, "fish": Fish, "zsh": Zsh}[name](script, folder)
    found = list(itertools.islice(wrong(shell), most))
    if name == "zsh":
        shell.close()
    return found


def main(name, verify):
    if not shutil.which(name):
        print(f"skipped: no {name}")
        return 77
    program = pathlib.Path(verify).resolve()
    os.environ["PATH"] = f"{program.parent}:{os.environ['PATH']}"
    os.environ.pop("FA_CASES_DIR", None)
    script = subprocess.run([program, "completion", name], capture_output=True, text=True, check=True).stdout
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        for file in FILES:
            (folder / file).parent.mkdir(exist_ok=True)
            (folder / file).touch()
        found = tried(name, script, folder)
        for line in found:
            print(line)
        missed = [fault for fault in FAULTS if fault[0] not in script or not tried(name, script.replace(*fault), folder, most=1)]
    for fault in missed:
        print(f"this fault is not found: {fault[1]} in place of {fault[0]}")
    print(f"{name}: {len(CHECKS)} lines, {len(found)} completed wrongly, {len(FAULTS) - len(missed)} of {len(FAULTS)} faults found")
    return 1 if found or missed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
