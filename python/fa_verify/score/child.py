"""The child of one candidate: `python -m fa_verify.score.child FILE.py TASK.json`, for `--backend exec:`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from fa_verify.score._candidate import wrap
from fa_verify.score._task import Task
from fa_verify.serve import serve


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print("usage: python -m fa_verify.score.child FILE.py TASK.json", file=sys.stderr)
        return 2
    answers = os.dup(1)
    os.dup2(2, 1)  # importing may print too
    kernel = wrap(arguments[0], Task.load(Path(arguments[1])))
    os.dup2(answers, 1)
    os.close(answers)
    serve(kernel)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
