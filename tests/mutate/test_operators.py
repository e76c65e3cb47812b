#!/usr/bin/env python3
"""Each operator makes the mutants that it should of sample/places.cpp, and none where constants are needed."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import source  # noqa: E402

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sample", "places.cpp")
# kind, what stands there -> what has to be made of it
WANTED = {
    ("relational", "n < most"): {"(n <= most)", "(n >= most)"},
    ("relational", "n != 0"): {"(n == 0)"},
    ("relational", "i == 3"): {"(i != 3)"},
    ("logical", "n < most && n != 0"): {"(n < most || n != 0)"},
    ("operand dropped", "n < most && n != 0"): {"!!(n < most)", "!!(n != 0)"},
    ("condition negated", "n < most && n != 0"): {"!(n < most && n != 0)"},
    ("condition always", "i == 3"): {"(0 == 0)"},
    ("condition never", "i == 3"): {"(0 != 0)"},
    ("arm always", "n > most"): {"(0 == 0)"},
    ("arm never", "n > most"): {"(0 != 0)"},
    ("assignment", "n += 2"): {"(n -= 2)", "(n = 2)"},
    ("statement left out", "n += 2;"): {";"},
    ("step", "++i"): {"(--i)"},
    ("constant + 1", "7"): {"(7 + 1)"},
    ("constant - 1", "7"): {"(7 - 1)"},
    ("constant * 2", "7"): {"(7 * 2)"},
    ("jump left out", "continue;"): {";"},
    ("break for continue", "continue;"): {"break;"},
    ("call left out", "sync_block();"): {";"},
    ("call left out", "tell(i, n);"): {";"},
    ("arguments swapped", "tell(i, n)"): {"(FA_ONE_TYPE((i), (n)), tell(n, i))"},
    ("min for max", "min_int(n, 7)"): {"max_int(n, 7)"},
    ("cast left out", "static_cast<long>(a) * b"): {"FA_AS_TYPE_OF(static_cast<long>(a) * b, (a) * b)"},
    ("arithmetic", "a % b"): {"(a / b)"},
    ("arithmetic", "static_cast<long>(a) * b"): {"(static_cast<long>(a) / b)", "(static_cast<long>(a) + b)"},
    ("bitwise", "a % b | table[TWICE - 1]"): {"(a % b & table[TWICE - 1])"},
    ("operands swapped", "TWICE - 1"): {"FA_AS_TYPE_OF(TWICE - 1, (1) - (TWICE))"},
    ("operands swapped", "a % b"): {"FA_AS_TYPE_OF(a % b, (b) % (a))"},
    ("arithmetic", "TWICE - 1"): {"(TWICE + 1)"},
}
FORBIDDEN = {"2 * N", "N > 4", "3]", "{1, 2, 3}"}


def main():
    import mutants
    import schemata
    with open(PATH, "rb") as f:
        text = f.read()
    found = mutants.find(source.Source("places.cpp", text))
    failed = 0
    made = {}
    for m in found:
        made.setdefault((m.kind, m.before), set()).add(m.text)
    for place, texts in WANTED.items():
        if made.get(place) != texts:
            failed = print(f"{place}: wanted {texts}, made {made.get(place)}") or 1
    for m in found:
        if m.before in FORBIDDEN:
            failed = print(f"mutates a constant: {m.label()}") or 1
    if len({m.key for m in found}) != len(found):
        failed = print("two mutants have one key") or 1
    for number, m in enumerate(found, 1):
        m.number = number
    changed, places = schemata.mutate(text, found)
    if changed.count("\n") != text.decode().count("\n") or {p[3] for p in places} != {m.number for m in found}:
        failed = print("lines moved, or a mutant is not in the text") or 1
    moved = mutants.find(source.Source("places.cpp", b"// a line more\n" + text))
    if [m.key for m in moved] != [m.key for m in found]:
        failed = print("keys change when lines move") or 1
    edited = {m.key for m in mutants.find(source.Source("places.cpp", text.replace(b"n += 2", b"n += 4")))}
    if {m.key for m in found if "n += 2" in m.before} & edited:
        failed = print("a mutant of an edited statement keeps its key") or 1
    print(f"{len(found)} mutants")
    return failed


if __name__ == "__main__":
    if source.tree_sitter is None:
        print(f"skipped: {source.WHY_ABSENT}")
        sys.exit(77)
    sys.exit(main())
