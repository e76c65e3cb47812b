"""Why lines are not executed: reasons.txt; and why ways out of conditions are not taken: untaken.txt (kernels.py).

    PATH | the line's text, or its beginning before ... | class: reason

One reason is for all such lines of the file. A reason that no line has is stale, so that the list cannot outlive what it is about."""
import os
from dataclasses import dataclass

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reasons.txt")
CLASSES = ("out of memory", "unreachable", "other machine", "broken system", "dear", "other tests")


class Malformed(Exception):
    pass


@dataclass(frozen=True)
class Reason:
    path: str
    text: str
    why: str

    def holds(self, path, text):
        if path != self.path:
            return False
        return text.startswith(self.text[:-3]) if self.text.endswith("...") else text == self.text


def load(path):
    found = []
    with open(path) as f:
        for number, line in enumerate(f, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            words = [w.strip() for w in line.split(" | ")]
            if len(words) != 3 or words[2].partition(":")[0] not in CLASSES or not words[2].partition(": ")[2]:
                raise Malformed(f"{path}:{number}: PATH | LINE | class: reason, with a class of {', '.join(CLASSES)}: {line}")
            found.append(Reason(*words))
    return found


def unexecuted(files):
    """[(path, line's number, text)]"""
    found = []
    for path in sorted(files):
        with open(path) as f:
            text = f.read().split("\n")
        found += [(path, n, text[n - 1].strip()) for n in files[path].unexecuted()]
    return found


def reason_of(known, path, text):
    return next((r for r in known if r.holds(path, text)), None)


def compare(known, lines):
    """How many lines have no reason, and the reasons that no line has."""
    used = [reason_of(known, path, text) for path, _, text in lines]
    return used.count(None), [r for r in known if r not in used]


def text_of(known, lines):
    out = []
    for path, n, text in lines:
        r = reason_of(known, path, text)
        out.append(f"{path}:{n}: {text[:90]}  # {r.why if r else 'NO REASON'}")
    return "\n".join(out) + "\n"
