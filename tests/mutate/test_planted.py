#!/usr/bin/env python3
"""A program with a hole in its test, through the whole way: parsed, mutated, compiled once, asked, written down.

The mutants of the tested lines have to be killed; those of the line that no test asks for have to be reported as
survivors, unless equivalent.txt excuses them; and a mutant that hangs or dies is a kill of that kind."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import programs_suite  # noqa: E402
import source  # noqa: E402

PATH = "tests/mutate/sample/program.c"


class Program:
    """The one test: the program's exit status."""
    name, seconds = "program", 0.1

    def __init__(self, path):
        self.path = path

    def ask(self, mutant, _judged):
        done = subprocess.run([self.path], env=dict(os.environ, FA_MUTANT=str(mutant.number)), check=False)
        return programs_suite.Answer("FAIL" if done.returncode else "PASS", 0.1, f"exit status {done.returncode}")

    @staticmethod
    def kills(said):
        return said.state != "PASS"

    def label(self):
        return self.name


class Suite:
    def __init__(self, program):
        self.program = program

    def of(self, mutant):
        return [self.program]

    @staticmethod
    def order(tries):
        return programs_suite.Suite.order(tries)


def build(folder, found):
    import schemata
    with open(PATH, "rb") as f:
        text, _ = schemata.mutate(f.read(), found)
    path = os.path.join(folder, "program.c")
    with open(path, "w") as f:
        f.write(text)
    out = os.path.join(folder, "program")
    subprocess.run(["cc", "-D_GNU_SOURCE", "-I.", "-include", "tests/mutate/switch.h", path, "tests/mutate/switch.c", "-o", out], check=True)
    return out


def main():
    import journal
    import killing
    import mutants
    import table
    with open(PATH, "rb") as f:
        found = [m for m in mutants.find(source.Source(PATH, f.read())) if m.function.startswith("clamp") and m.kind != "arguments swapped"]
    for number, m in enumerate(found, 1):
        m.number = number
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(Program(build(folder, found)))
        rows = [killing.judge(m, suite, 60)[0] for m in found]
        book = journal.Journal(os.path.join(folder, "journal.jsonl"), False)
        for r in rows:
            book.add(r)
        with open(book.path, "a") as f:
            f.write('{"torn')
        again = journal.Journal(book.path, True)
    failed = 0
    if again.rows != book.rows:
        failed = print("the journal does not come back as it was") or 1
    survivors = {r.change for r in rows if r.outcome == journal.SURVIVED}
    for wanted in ("relational: n < 0 -> (n <= 0)", "condition never: n < 0 -> (0 != 0)", "statement left out: n = 0; -> nothing"):
        if not any(wanted.split(": ", 1)[1] == c and r.kind == wanted.split(": ")[0] for r in rows for c in [r.change] if c in survivors):
            failed = print(f"should survive: {wanted}; survivors: {survivors}") or 1
    for wanted in ("n < 0 -> (n >= 0)", "n < 0 -> (0 == 0)", "n > most -> (0 == 0)", "n > most -> (0 != 0)", "n > most -> (n <= most)"):
        if wanted in survivors or not any(r.change == wanted and r.outcome == "FAIL" for r in rows):
            failed = print(f"should be killed: {wanted}") or 1
    key = next(r.key for r in rows if r.change == "n < 0 -> (n <= 0)")
    if table.word(again.rows[key], {}) != "survives" or table.word(again.rows[key], {key: ("same value", "")}) != "equivalent":
        failed = print("an excused survivor must be equivalent, another must survive") or 1
    if "SURVIVES" in table.table(rows, {}) or f"`{key}`" not in table.survivors(rows, {}):
        failed = print("the list must name the survivor") or 1
    print(table.summary(rows, {}, "program").strip())
    return failed


if __name__ == "__main__":
    if source.tree_sitter is None:
        print(f"skipped: {source.WHY_ABSENT}")
        sys.exit(77)
    sys.exit(main())
