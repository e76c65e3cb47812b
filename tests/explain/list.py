#!/usr/bin/env python3
"""The table of docs/reference/hypotheses.md is what `fa-verify list hypotheses` prints.

usage: list.py FA-VERIFY [--write]   (--write: puts the table into the page)"""
import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "reference" / "hypotheses.md"
TABLE = re.compile(r"\| hypothesis \|.*?(?=\n\n|\Z)", re.DOTALL)


def table(verify: str) -> str:
    """The list as a table of the page."""
    listed = subprocess.run([verify, "list", "hypotheses"], capture_output=True, text=True, check=True).stdout
    rows = ["| hypothesis | tensors | what the kernel did |", "|---|---|---|"]
    for line in listed.splitlines():
        name, tensors, what = line.split(maxsplit=2)
        rows.append(f"| `{name}` | {tensors.replace(',', ', ')} | {what} |")
    return "\n".join(rows)


def main(verify: str, *options: str) -> int:
    text, wanted = PAGE.read_text(), table(verify)
    found = TABLE.search(text)
    assert found, f"{PAGE} has no table"
    if "--write" in options:
        PAGE.write_text(text[:found.start()] + wanted + text[found.end():].rstrip("\n") + "\n")
        return 0
    if found.group().rstrip("\n") == wanted:
        return 0
    print(f"{PAGE.name}: the table is not what list hypotheses prints: run tests/explain/list.py FA-VERIFY --write")
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
