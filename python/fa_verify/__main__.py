"""`python -m fa_verify ...` is fa-verify itself; `--cases causal` names a case file of the package."""

from __future__ import annotations

import os
import sys

from fa_verify._binary import MachineFailed, binary, case_file


def resolve(arguments: list[str]) -> list[str]:
    """The arguments with the names of shipped case files after --cases made paths.

    >>> resolve(["--cases", "no_such_cases", "--backend", "causal"])
    ['--cases', 'no_such_cases', '--backend', 'causal']
    """
    resolved, after_cases = [], False
    for argument in arguments:
        if argument.startswith("-"):
            after_cases = argument == "--cases"
        elif after_cases:
            argument = str(case_file(argument) or argument)
        resolved.append(argument)
    return resolved


def main() -> int:
    try:
        program = str(binary())
    except MachineFailed as failure:
        print(f"fa_verify: {failure}", file=sys.stderr)
        return 3
    os.environ.setdefault("FA_PYTHON", sys.executable)
    os.execv(program, [program, *resolve(sys.argv[1:])])


if __name__ == "__main__":
    sys.exit(main())
