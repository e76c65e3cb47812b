"""What became of each mutant, a JSON line each, written as it is known: a run that was stopped goes on from there."""
import json
import os
from dataclasses import asdict, dataclass

SURVIVED, LEFT_OUT, UNREACHED = "survived", "left out", "unreached"
ERROR = "ERROR"  # a fault of whoever judges, such as two judges that contradict each other: no kill


@dataclass
class Row:
    """outcome: a state such as FAIL or RACE, or one of the above. by: the case or test; tried: how many; judge: what the GPU's said
    of it, where that was asked (server.Answer)."""
    key: str
    path: str
    line: int
    function: str
    kind: str
    change: str
    outcome: str
    by: str = ""
    reason: str = ""
    tried: int = 0
    seconds: float = 0.0
    judge: str = ""

    @property
    def killed(self):
        return self.outcome not in (SURVIVED, LEFT_OUT, UNREACHED, ERROR)


def row(m, outcome, **more):
    return Row(m.key, m.path, m.line, m.function, m.kind, m.label().split(": ", 1)[1], outcome, **more)


class Journal:
    """keep: what the file holds stays, and counts; without, the file begins anew."""

    def __init__(self, path, keep):
        self.rows, self.path = {}, path
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        if keep and os.path.exists(path):
            with open(path) as f:
                for line in f:
                    if line.endswith("\n"):  # the last one of a run that was killed may be torn
                        one = Row(**json.loads(line))
                        self.rows[one.key] = one
        with open(path, "w") as f:
            f.writelines(json.dumps(asdict(r)) + "\n" for r in self.rows.values())

    def add(self, one):
        self.rows[one.key] = one
        with open(self.path, "a") as f:
            f.write(json.dumps(asdict(one)) + "\n")
