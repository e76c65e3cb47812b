"""`python -m fa_verify.score FOLDER`: every candidate of the folder judged, and a table of them."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from fa_verify._binary import MachineFailed
from fa_verify._case import Json
from fa_verify.score._run import Settings, judge_folder
from fa_verify.score._table import markdown
from fa_verify.score._task import Task


def _arguments(argv: list[str]) -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(prog="python -m fa_verify.score", description=__doc__, epilog="What follows -- goes to fa-verify run.")
    parser.add_argument("folder", type=Path, help="candidates, a Python file each")
    parser.add_argument("--cases", nargs="+", default=["causal"], help="case files, by name or path")
    parser.add_argument("--task", type=Path, help="JSON: what candidates are held to, and how they are called")
    parser.add_argument("--require", default="all", help="as of fa-verify (default: all)")
    parser.add_argument("--untrusted", action="store_true", help="candidates may cheat: a wall around each, secret data")
    parser.add_argument("--out", type=Path, default=Path("scores"), help="reports, scores and table (default: scores)")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="candidates at a time (default: processors)")
    argv, rest = (argv[: argv.index("--")], argv[argv.index("--") + 1 :]) if "--" in argv else (argv, [])
    return parser.parse_args(argv), rest


def _say(row: Json) -> None:
    print(f"{row['name']}: {row['score']:.4g} {row['why']}".rstrip(), file=sys.stderr)


def main(argv: list[str]) -> int:
    given, rest = _arguments(argv)
    try:
        settings = Settings(
            out=given.out.resolve(),
            cases=given.cases,
            task=Task.load(given.task),
            require=_require(given.require),
            untrusted=given.untrusted,
            jobs=given.jobs,
            options=rest,
        )
        rows = judge_folder(given.folder, settings, _say)
    except (OSError, ValueError, MachineFailed) as problem:
        print(f"fa_verify.score: {problem}", file=sys.stderr)
        return 2
    table = markdown(rows)
    (settings.out / "table.md").write_text(table)
    (settings.out / "table.json").write_text(json.dumps({"fa_scores": 1, "candidates": rows}, indent=2) + "\n")
    print(table, end="")
    return 0


def _require(text: str) -> str:
    """A file's path from anywhere, as commands run in the candidates' folders."""
    return str(Path(text).resolve()) if Path(text).is_file() else text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
