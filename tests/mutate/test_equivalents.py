#!/usr/bin/env python3
"""Every line of equivalent.txt is about a mutant that there is: an edit of a statement makes its lines stale."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import source  # noqa: E402


def main():
    import equivalents
    import subjects
    known = equivalents.load()
    found = [m for s in subjects.SUBJECTS.values() for m in subjects.find(s)]
    stale = equivalents.stale(known, found)
    for key in stale:
        print(f"equivalent.txt: {key} is no mutant any more: {': '.join(known[key])}")
    if equivalents.stale({"0123456789": ("unreachable", "")}, found) != ["0123456789"]:
        print("a key of no mutant must be stale")
        return 1
    print(f"{len(known)} equivalents of {len(found)} mutants")
    return 1 if stale else 0


if __name__ == "__main__":
    if source.tree_sitter is None:
        print(f"skipped: {source.WHY_ABSENT}")
        sys.exit(77)
    sys.exit(main())
