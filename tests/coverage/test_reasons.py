#!/usr/bin/env python3
"""Reasons for lines that are not executed: a line without one and one without a line are found, and a malformed list is refused."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import reasons  # noqa: E402

LINES = [("a.c", 3, "free(x);"), ("a.c", 9, "free(x);"), ("b.c", 4, 'return fail("out of memory");'), ("b.c", 5, "left();")]
LIST = """# what a line is
a.c | free(x); | out of memory: nothing fails it
b.c | return fail("out... | out of memory: nothing fails it
b.c | free(x); | unreachable: it is in another file
"""
MALFORMED = ("a.c | free(x);", "a.c | free(x); | because: so", "a.c | free(x); | unreachable:")


def loaded(folder, text):
    path = os.path.join(folder, "reasons.txt")
    with open(path, "w") as f:
        f.write(text)
    return reasons.load(path)


def refused(folder, text):
    try:
        loaded(folder, text)
    except reasons.Malformed:
        return True
    return False


def main():
    with tempfile.TemporaryDirectory() as folder:
        known = loaded(folder, LIST)
        unexcused, stale = reasons.compare(known, LINES)
        failed = unexcused != 1 or [(r.path, r.text) for r in stale] != [("b.c", "free(x);")]
        failed |= "b.c:5: left();  # NO REASON" not in reasons.text_of(known, LINES)
        failed |= not all(refused(folder, text) for text in MALFORMED)
    if failed:
        print(unexcused, stale, reasons.text_of(known, LINES))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
