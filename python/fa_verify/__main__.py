"""`python -m fa_verify ...` is fa-verify itself; `--cases causal` names a case file of the package."""

from __future__ import annotations

import os
import sys

from fa_verify._binary import MachineFailed, binary, cases_folder


def main() -> int:
    try:
        program, cases = str(binary()), str(cases_folder())
    except MachineFailed as failure:
        print(f"fa_verify: {failure}", file=sys.stderr)
        return 3
    os.environ.setdefault("FA_PYTHON", sys.executable)
    os.environ.setdefault("FA_CASES_DIR", cases)  # a program given by $FA_VERIFY_BINARY may have none beside it
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
