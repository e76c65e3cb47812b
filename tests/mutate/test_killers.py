#!/usr/bin/env python3
"""What is counted of kills that are asked again: a judge that passes what it should not has to show."""
import os
import sys
from collections import Counter

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import journal  # noqa: E402
import killers  # noqa: E402
import server  # noqa: E402

UNSURE = "not surely right: an element"


class Mutant:
    path, line, function, kind = "a.cuh", 1, "f", "kind"

    def __init__(self, key, number):
        self.key, self.number = key, number

    def label(self):
        return f"{self.path}:1 {self.kind}: a -> b"


class Suite:
    """Answers by the mutant's number."""
    dearest, names, every = 60.0, ["file/one", "file/two"], [("host", 0), ("host", 1), ("host:hopper", 0), ("host:hopper", 1)]

    def __init__(self, said):
        self.said, self.asked = said, []

    def ask(self, backend, number, case, seconds):
        self.asked.append((backend, number, case))
        state, judge = self.said[abs(int(number))]
        return server.Answer(state, 0.1, "-", "", "", judge, frozenset())


class Book:
    def add(self, row):
        pass


def killed(key, outcome, by):
    return journal.Row(key, "a.cuh", 1, "f", "kind", "a -> b", outcome, by)


def counts(said):
    """The table's last line and whether it is clean, of one mutant of which this is said."""
    control, found = killers.ask([Mutant("k", 1)], [killed("k", "FAIL", "file/two (host:hopper)")], Suite([("PASS", "PASS"), said]), Book(), 1,
                                 lambda text: None)
    text = killers.text_of(killers.words_of(control), found, Counter())
    return next(line for line in text.splitlines() if line.startswith("| all")), killers.is_clean(found)


def main():
    wanted = {("FAIL", UNSURE): ("| all | 1 | 1 |  |  |  |  |  |", True),
              ("ERROR", "PASS"): ("| all | 1 |  | 1 |  |  |  |  |", False),
              ("FAIL", "merge"): ("| all | 1 |  |  | 1 |  |  |  |", True),
              ("FAIL", "PASS"): ("| all | 1 |  |  |  | 1 |  |  |", True),
              ("OOB", ""): ("| all | 1 |  |  |  |  | 1 |  |", True),
              ("PASS", "PASS"): ("| all | 1 |  |  |  |  |  | 1 |", True)}
    failed = 0
    for said, line in wanted.items():
        if counts(said) != line:
            failed = print(f"{said}: {counts(said)}, not {line}") or 1
    rows = [killed("a", "FAIL", "file/one (host)"), killed("b", "RACE", "file/one (host)"), killed("c", "FAIL", "test_it"),
            killed("d", journal.SURVIVED, "")]
    suite = Suite([("PASS", "PASS"), ("FAIL", UNSURE)])
    killers.ask([Mutant("a", 1), Mutant("b", 2)], rows, suite, Book(), 1, lambda text: None)
    if suite.asked != [("host", "-0", 0), ("host", -1, 0)]:
        failed = print(f"the program as it is and the one that the judge killed, of its case: {suite.asked}") or 1
    if dict(killers.not_asked(rows)) != {"RACE": 1, "a test program": 1}:
        failed = print(f"apart: {killers.not_asked(rows)}") or 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
