"""docs/notes/historic.md names mutants, cases, tests, laws and coverage rows: each must exist, and the totals must be right.

A name that was changed or removed elsewhere would otherwise stay there and promise what nothing does. Afterwards copies
of the text with one fault each, every one of which must be found. Run in the repository's root. Without arguments it
checks; --totals prints the table of totals.
"""
import glob
import json
import os
import re
import sys

DOCUMENT = "docs/notes/historic.md"
N_BUGS = 132
WAYS = ["mutant", "case", "test", "part", "none"]


def case_names():
    """FILE/NAME of every case and of every sweep's base."""
    names = set()
    for path in glob.glob("cases/*.json"):
        document = json.load(open(path, encoding="utf-8"))
        if "fa_cases" not in document:
            continue  # the schema
        stem = os.path.basename(path)[:-len(".json")]
        names.update(f"{stem}/{c['name']}" for c in document.get("cases", []))
        names.update(f"{stem}/{s['base']['name']}" for s in document.get("sweeps", []) if "name" in s["base"])
    return names


def literals(pattern):
    text = "".join(open(path, encoding="utf-8").read() for path in sorted(glob.glob(pattern)))
    return set(re.findall(r'"((?:[^"\\\n]|\\.)*)"', text)), text


class Repository:
    def __init__(self):
        self.mutants = {os.path.basename(p)[:-len(".patch")] for p in glob.glob("tests/mutants/*.patch")}
        self.cases = case_names()
        self.tests = {os.path.basename(p) for p in glob.glob("tests/*/test_*")}
        self.coverage, self.coverage_text = literals("fuzz/coverage/*.c")
        self.laws, _ = literals("cases/vocabulary/law.c")
        self.fills, _ = literals("cases/vocabulary/fill.c")
        self.tensors, _ = literals("cases/vocabulary/problem.c")
        self.tensors |= literals("cases/codec/*.c")[0] | literals("cases/recipe/*.c")[0]

    def has_coverage(self, name):
        """Row names are literal in the source, except for a number or a name at their end or in the
        middle."""
        if name in self.coverage:
            return True
        stem, _, last = name.rpartition(" ")
        if f"{stem} " in self.coverage and last.isdigit():
            return re.search(rf"\b{last}\b", self.coverage_text) is not None
        if stem == "fill" and "fill %s" in self.coverage:
            return last in self.fills
        of = re.fullmatch(r"offsets of (\w+) (.*)", name)
        return bool(of) and f"offsets of %s {of[2]}" in self.coverage and of[1] in self.tensors

    def has_more(self, name, before):
        if name.startswith("test_"):
            return name in self.tests
        if before.endswith("law "):
            return name in self.laws
        return self.has_coverage(name)


def quoted(cell):
    """Each name in backticks with the text before it."""
    parts = cell.split("`")
    return [(parts[k], parts[k - 1]) for k in range(1, len(parts), 2)]


def rows_of(text, heading):
    """The cells of the rows of the table that begins with this heading; a bar inside backticks is no border."""
    lines = text.split("\n")
    rows = []
    if heading not in lines:
        return rows
    for line in lines[lines.index(heading) + 2:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def bugs_of(text):
    return rows_of(text, "| # | Reported as | What was wrong | By | Mutants | Cases | More |")


def check_way(number, way, mutants, cases, more):
    """The column By must follow from the names, so that no bug counts as covered that nothing
    covers."""
    tests = [name for name, _ in quoted(more)]
    if way == "mutant":
        right = mutants
    elif way == "case":
        right = cases and not mutants
    elif way == "test":
        right = tests and not mutants and not cases
    elif way == "part":
        right = (mutants or cases or tests) and "missing: " in more
    else:
        right = way == "none" and not mutants and not cases and not tests and re.search("missing: |out of reach: ", more)
    return [] if right else [f"{number}: By is {way}, which does not go with what the row names"]


def totals(bugs):
    lines = []
    for way in WAYS:
        which = [row[0] for row in bugs if row[3] == way]
        lines.append([way, str(len(which)), ", ".join(which) if way != "mutant" else "all others"])
    return lines


def faults(text, repository):
    found = []
    bugs = bugs_of(text)
    if [row[0] for row in bugs] != [str(k) for k in range(1, N_BUGS + 1)]:
        found.append(f"the rows are not numbered 1 to {N_BUGS}")
    for row in bugs:
        if len(row) != 7:
            found.append(f"{row[0]}: {len(row)} cells")
            continue
        number, _, _, way, mutants, cases, more = row
        for name, _ in quoted(mutants):
            if name not in repository.mutants:
                found.append(f"{number}: no mutant {name}")
        for name, _ in quoted(cases):
            if name not in repository.cases:
                found.append(f"{number}: no case {name}")
        for name, before in quoted(more):
            if not repository.has_more(name, before):
                found.append(f"{number}: no test, law or coverage row {name}")
        found += check_way(number, way, quoted(mutants), quoted(cases), more)
    if not found and rows_of(text, "| By | Bugs | Which |") != totals(bugs):
        found.append("the totals are not those of the rows")
    return found


# For a name of each kind: its replacement, and the expected message.
SPOILT = [
    ("`barrier_missing_dk`", "`barrier_missing_dl`", "no mutant barrier_missing_dl"),
    ("`edge/do_aligned`", "`edge/do_aligned_no_more`", "no case edge/do_aligned_no_more"),
    ("`edge/do_aligned`", "`window/do_aligned`", "no case window/do_aligned"),
    ("`offset/packed tokens`", "`offset/packed_tokens`", "no case offset/packed_tokens"),
    ("`test_barriers.py`", "`test_barrier.py`", "coverage row test_barrier.py"),
    ("law `split-count`", "law `split-counts`", "coverage row split-counts"),
    ("`seqlen_k % 64 == 1`", "`seqlen_k % 64 == 2`", "coverage row seqlen_k % 64 == 2"),
    ("`head_dim 48`", "`head_dim 47`", "coverage row head_dim 47"),
    ("`fill sentinel`", "`fill sentinels`", "coverage row fill sentinels"),
    ("`offsets of do beyond 2^31 elements`", "`offsets of did beyond 2^31 elements`", "coverage row offsets of did"),
    ("| 42 | FA #2035", "| 43 | FA #2035", "not numbered"),
    ("| case |  | `kvcache/empty`", "| mutant |  | `kvcache/empty`", "90: By is mutant"),
    ("| mutant | `barrier_missing_dk` |", "| none |  |", "42: By is none"),
    ("\n| none | ", "\n| none | 1", "the totals are not"),
]


def main():
    text = open(DOCUMENT, encoding="utf-8").read()
    repository = Repository()
    if sys.argv[1:] == ["--totals"]:
        print("\n".join(f"| {' | '.join(line)} |" for line in totals(bugs_of(text))))
        return 0
    found = faults(text, repository)
    for old, new, said in SPOILT if not found else []:
        if old not in text:
            found.append(f"the fault to plant is nowhere: {old}")
        elif not any(said in fault for fault in faults(text.replace(old, new), repository)):
            found.append(f"not noticed: {new} instead of {old}")
    for fault in found:
        print(f"{DOCUMENT}: {fault}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
