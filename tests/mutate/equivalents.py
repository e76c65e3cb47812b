"""The mutants that nothing can tell from the program, each with its reason: equivalent.txt.

    KEY  class: reason  # file function, what is changed

A mutant's key is made of the statement that it changes, so that an edit of the statement leaves the line without a
mutant, and the check says so, instead of excusing another mutant."""
import os
import re

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "equivalent.txt")
CLASSES = ("performance only", "unreachable", "redundant guard", "same value", "rounding only", "device only")
LINE = re.compile(r"([0-9a-f]{10})  ([a-z ]+): (.+?)(?:  # (.*))?$")


class Malformed(Exception):
    pass


def load(path=PATH):
    """{key: (class, reason)}"""
    found = {}
    with open(path) as f:
        for number, line in enumerate(f, 1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            m = LINE.match(text)
            if not m or m.group(2) not in CLASSES:
                raise Malformed(f"{path}:{number}: KEY  class: reason, with a class of {', '.join(CLASSES)}: {text}")
            if m.group(1) in found:
                raise Malformed(f"{path}:{number}: {m.group(1)} twice")
            found[m.group(1)] = m.group(2), m.group(3)
    return found


def stale(known, mutants):
    """Keys of the list that no mutant has any more."""
    return sorted(set(known) - {m.key for m in mutants})
