#!/usr/bin/env python3
"""Runs the cheats of table.py against the untrusted mode: `run.py FA-VERIFY [--only REGEX] [--write FILE.md] [--jobs N]`.

Each must end in its named failure under all layers, and pass without those that its row names. Prints a line for each, and ends
with 1 on any surprise, with 77 where the mode cannot start. The children need numpy: $FA_PYTHON, else this Python."""

from __future__ import annotations

import argparse
import compileall
import dataclasses
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from table import OPEN, PLAIN, ROWS, TRUSTED, WRONG, Row

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
from share import share

HERE = Path(__file__).resolve().parent
HONEST = [
    Row("-", "Honest", "honest, every score at once", "PASS", "", cases=(PLAIN,)),
    Row("-", "Tiled", "honest, in tiles as a Triton kernel", "PASS", "", cases=(PLAIN,)),
]


@dataclasses.dataclass
class Ended:
    """What a run came to."""

    code: int
    text: str
    effect: bool

    @property
    def passed(self) -> bool:
        return self.code == 0


class Bench:
    """A folder with what cheats attack, and the program that judges them."""

    def __init__(self, verify: str, python: str, folder: Path):
        self.verify, self.python, self.folder = verify, python, folder
        self.candidate = folder / "candidate"
        self.candidate.mkdir()
        for source in HERE.glob("*.py"):
            if source.name not in ("run.py", "table.py"):
                shutil.copy(source, self.candidate)
        compileall.compile_dir(self.candidate, quiet=1)
        self.server = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.welcome, daemon=True).start()
        self.has_compiler = self.compile()
        self.library = self.candidate / "library"
        self.library.mkdir()
        (self.library / "attention.py").write_text("def attention(kernel, call):\n    return kernel.compute(call)\n")
        self.golden = folder / "golden"
        self.golden.write_text("expected values\n")

    def compile(self) -> bool:
        """Makes the plugin of C2. False: there is no compiler."""
        compiler, to = shutil.which("cc"), self.candidate / "patcher.so"
        if compiler:
            subprocess.run([compiler, "-shared", "-fPIC", "-O1", f"-I{HERE.parents[2]}", "-o", to, HERE / "patcher.c", "-lm"], check=True)
        return compiler is not None

    def welcome(self) -> None:
        """The server that some cheat asks: who is let in gets a byte."""
        while True:
            with self.server.accept()[0] as other:
                other.send(b"x")

    def prefix(self) -> Path:
        """The folder that the interpreter needs beside the system's."""
        text = subprocess.run([self.python, "-c", "import sys; print(sys.prefix)"], check=True, capture_output=True, text=True).stdout
        return Path(text.strip())

    def command(self, row: Row, child: str, argument: str, trusted: bool, without: tuple[str, ...]) -> list[str]:
        claims = "" if row.id == "-" else f" '{row.claims}'"
        backend = f"exec:{self.python} {self.candidate}/child.py {child} '{argument.encode().hex()}'{claims}"
        if child.endswith(".so"):
            backend = f"plugin:{self.candidate}/{child}"
        options = [word.format(library=self.library) for word in row.options]
        line = [self.verify, "run", "--no-probe", "--no-progress", "--no-explain", "--jobs", "1", "--timeout", "60", *options]
        for case in row.cases:
            line += ["--case", case]
        if not trusted:
            line += ["--untrusted", "--allow", str(self.candidate), "--allow", str(self.prefix())]
            line += ["--fail-fast"] if without and not row.effect else []
            for layer in without:
                line += ["--without", layer]
        return [*line, "--backend", backend]

    def run(self, row: Row, without: tuple[str, ...] = (), trusted: bool = False) -> Ended:
        token = f"c{os.urandom(5).hex()}"
        victim, bank = self.folder / token, self.candidate / f"bank-{token}"
        victim.mkdir()
        bank.mkdir()
        (victim / "program").write_text("the judge\n")
        argument = row.argument.format(
            library=self.library, token=token, victim=victim, bank=bank, golden=self.golden, program=self.verify, port=self.server.getsockname()[1], host=os.uname().nodename
        )
        if row.record:
            subprocess.run(self.command(row, row.record, argument, True, ()), check=True, capture_output=True, env=environment())
        for _ in range(row.runs):
            done = subprocess.run(
                self.command(row, row.child, argument, trusted, without), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment(), timeout=300
            )
        text = done.stdout.decode(errors="replace")
        ended = Ended(done.returncode, text, shows(row.effect, victim, token, text))
        for leftover in (*Path("/tmp").glob(f"fa-cheat*{token}*"), *Path("/dev/shm").glob(f"fa-cheat*{token}*")):
            leftover.unlink()
        return ended


def environment() -> dict[str, str]:
    """The judge's, with a variable that a child may look for."""
    return {**os.environ, "FA_JUDGED": "1"}


def shows(effect: str, victim: Path, token: str, text: str) -> bool:
    """Whether an exploit has had its effect outside of the answer."""
    if effect == "victim":
        return sorted(p.name for p in victim.iterdir()) != ["program"] or (victim / "program").read_bytes() != b"the judge\n"
    if effect == "daemon":
        time.sleep(0.5)
        return any(comm == token for comm in commands())
    if effect == "codes":
        return "\x1b[2J" in text or "\u202e" in text
    if effect == "text":
        return re.search(r"^(\x1b\[[0-9]*[A-Z])*tests:100 passed:100", text, re.MULTILINE) is not None
    return False


def commands() -> list[str]:
    """The names of all processes."""
    found = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        try:
            found.append(path.read_text().strip())
        except OSError:
            continue
    return found


def blocks(text: str) -> list[str]:
    """What is said of each case: a line, and the indented ones below it."""
    return re.split(r"\n(?=\S)", text)


def short(text: str) -> str:
    """What is not a pass, each line cut."""
    return "\n".join(line[:300] for line in text.splitlines() if not line.startswith("PASS"))[:3000]


def said(row: Row, found: str) -> str:
    """The named failure in words that are the same in every run."""
    return "elements out of bounds" if row.reason in (WRONG, "bad") else re.sub(r"[\d,]+", "N", " ".join(found.split()))


def caught(row: Row, ended: Ended) -> str:
    """How the run ended, if it is how the row wants it; else ""."""
    if ended.effect:
        return ""
    if row.state == "PASS":
        found = re.search(row.reason, ended.text)
        return f"PASS: {said(row, found.group(0))}".rstrip(": ") if ended.passed and found else ""
    if row.state.startswith("exit"):
        return row.state if ended.code == int(row.state.split()[1]) and re.search(row.reason, ended.text) else ""
    for block in blocks(ended.text):
        found = re.search(row.reason, block, re.DOTALL)
        if re.fullmatch(row.state, block.split(" ")[0]) and found and not ended.passed:
            return f"{block.split(' ')[0]}: {said(row, found.group(0))}".rstrip(": ")
    return ""


def passes(row: Row, ended: Ended) -> bool:
    """Whether the exploit works with its defence switched off: it passes, or its effect shows."""
    return ended.effect if row.effect else ended.passed


@dataclasses.dataclass
class Outcome:
    row: Row
    how: str  # how it was caught
    surprise: str  # "": none
    seconds: float


def tried(bench: Bench, row: Row, trusted: bool) -> Outcome:
    """A row under all layers, then without its own."""
    start = time.monotonic()
    ended = bench.run(row, trusted=trusted)
    how, surprise = caught(row, ended), ""
    if not how:
        surprise = f"not caught as {row.state} /{row.reason}/:\n{short(ended.text)}"
    elif row.without and not trusted:
        ended = bench.run(row, trusted=True) if row.without == TRUSTED else bench.run(row, row.without)
        if not passes(row, ended):
            surprise = f"caught even without {', '.join(row.without)}:\n{short(ended.text)}"
    return Outcome(row, how, surprise, time.monotonic() - start)


def line_of(outcome: Outcome) -> str:
    row = outcome.row
    without = " + ".join(row.without) or ("-" if row.id == "-" else "nothing: " + row.always)
    return f"{row.id} {row.child} | {' or '.join(row.without) or row.always or '-'} | {outcome.how or 'NOT CAUGHT'} | {without}"


def page(outcomes: list[Outcome]) -> str:
    """The table as a page."""
    template = (HERE / "page.md").read_text()
    rows = [o for o in outcomes if o.row.id != "-"]
    table = ["| | exploit | kept off by | ends as | passes without |", "|---|---|---|---|---|"]
    for o in rows:
        by = " or ".join(f"`{layer}`" for layer in o.row.without) or o.row.always
        without = " and ".join(f"`{layer}`" for layer in o.row.without) or "-"
        how = o.how.replace("|", "\\|")
        table.append(f"| {o.row.id} | {o.row.text} (`{o.row.child}`) | {by} | {how} | {without} |")
    left = ["| | exploit | why |", "|---|---|---|", *(f"| {a} | {b} | {c} |" for a, b, c in OPEN)]
    known, own = ({o.row.id for o in rows if (o.row.id[0] == "R") == ours} for ours in (False, True))
    counts = f"{len(rows)} cheats: {len(known)} ways that are known (A, B, C) and {len(own)} of our own (R)"
    return template.replace("@COUNTS@", counts).replace("@TABLE@", "\n".join(table)).replace("@OPEN@", "\n".join(left))


def why_not(verify: str, python: str) -> str:
    """Why the mode cannot be tried here; "": it can."""
    if subprocess.run([python, "-c", "import numpy"], capture_output=True).returncode != 0:
        return f"{python} has no numpy (FA_PYTHON names one that has)"
    done = subprocess.run([verify, "run", "--untrusted", "--case", PLAIN, "--no-probe", "--backend", "exec:false"], capture_output=True, text=True)
    absent = re.search(r".*layer.*", done.stderr)
    return absent.group(0) if done.returncode == 2 and absent else ""


def few_of_each(rows: list[Row], most: int) -> list[Row]:
    """The first rows of every set of layers, and of what no layer can be left out for."""
    seen: dict[tuple[str, ...], int] = {}
    few = []
    for row in rows:
        seen[row.without] = seen.get(row.without, 0) + 1
        if row in HONEST or seen[row.without] <= most:
            few.append(row)
    return few


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verify")
    parser.add_argument("--only", default="", help="a regular expression over ids and names")
    parser.add_argument("--each", type=int, default=1000, help="at most so many cheats of each set of layers")
    parser.add_argument("--write", help="a page to write")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--trusted", action="store_true", help="what the trusted mode catches")
    options = parser.parse_args()
    verify, python = os.path.realpath(options.verify), os.environ.get("FA_PYTHON", sys.executable)
    missing = why_not(verify, python)
    if missing:
        print(f"skipped: {missing}")
        return 77
    rows = few_of_each([row for row in HONEST + ROWS if re.search(options.only, f"{row.id} {row.child}")], options.each)
    rows = [row for row in rows if row in HONEST] + share([row for row in rows if row not in HONEST])
    with tempfile.TemporaryDirectory(prefix="fa-cheats-") as folder, ThreadPoolExecutor(options.jobs) as pool:
        bench = Bench(verify, python, Path(folder))
        print("cheat | defence | caught as | passes without")
        rows = [row for row in rows if bench.has_compiler or not (row.child.endswith(".so") or row.id == "C17")]
        outcomes = []
        for outcome in pool.map(lambda row: tried(bench, row, options.trusted), rows):
            outcomes.append(outcome)
            print(line_of(outcome), flush=True)
            if outcome.surprise:
                print(f"surprise: {outcome.row.id} {outcome.row.child}: {outcome.surprise}\n", flush=True)
    surprises = [o for o in outcomes if o.surprise]
    print(f"cheats:{len(outcomes)} as expected:{len(outcomes) - len(surprises)} surprises:{len(surprises)}")
    if options.write and not surprises:
        Path(options.write).write_text(page(outcomes))
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
