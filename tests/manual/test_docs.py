#!/usr/bin/env python3
"""The tables of docs/reference/command-line.md are what the program has.

usage: test_docs.py FA-VERIFY [--write]   (--write: puts the tables of options and variables into the page)

The tables of commands and of exit codes are written by hand: only the names in them are compared. Then the page is given faults,
and every one must be found."""
import pathlib
import re
import sys

from roff import entries, printed

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"
OPTIONS, VARIABLES = "| option | for | |", "| variable | |"

# What a page may have wrong.
FAULTS = {
    "an option that is missing": lambda page: re.sub(r"^\| `--schedule-seed.*\n", "", page, flags=re.M),
    "an option of another command": lambda page: page.replace("| `--emit FILE` | random |", "| `--emit FILE` | run |"),
    "a variable that is missing": lambda page: re.sub(r"^\| `NO_COLOR.*\n", "", page, flags=re.M),
    "a command that is missing": lambda page: re.sub(r"^\| `probe.*\n", "", page, flags=re.M),
    "a command that there is not": lambda page: page.replace("| `run --cases", "| `go --cases", 1),
    "an exit code that is missing": lambda page: re.sub(r"^\| 3 .*\n", "", page, flags=re.M),
}


def option_row(tag, text):
    """A row of the table. "-j, --jobs N", "Worker processes. For run, random and bench." """
    takers = re.search(r" For ([a-z, ]+)\.$", text)
    what = text[:takers.start()] if takers else text
    return f"| {', '.join(code(name) for name in tag.split(', '))} | {takers[1] if takers else 'all'} | {what.rstrip('.')} |"


def code(text):
    """As code in a table's cell."""
    return f"`{text}`".replace("|", "\\|")


def tables(page):
    """The tables of options and of variables, by their first lines."""
    options = [option_row(*entry) for entry in entries(page, "OPTIONS")]
    variables = [f"| {', '.join(code(name) for name in tag.split(', '))} | {text.rstrip('.')} |" for tag, text in entries(page, "ENVIRONMENT")]
    return {OPTIONS: "\n".join([OPTIONS, "|---|---|---|", *options]), VARIABLES: "\n".join([VARIABLES, "|---|---|", *variables])}


def table_of(text, head):
    """The table that begins with this line."""
    found = re.search(re.escape(head) + r"\n(?:\|.*\n)*", text)
    assert found, f"{PAGE.name} has no table {head}"
    return found[0].rstrip("\n")


def wrong(text, page):
    """A line for each difference."""
    for head, wanted in tables(page).items():
        shown = table_of(text, head)
        if shown != wanted:
            lines = set(wanted.splitlines()) ^ set(shown.splitlines())
            yield "\n".join([f"{head}: not what the program has; test_docs.py FA-VERIFY --write mends it:", *sorted(lines)])
    commands = {tag.split()[0] for tag, _ in entries(page, "COMMANDS")}
    shown = {row.split("`")[1].split()[0] for row in table_of(text, "| command | |").splitlines()[2:]}
    if commands != shown:
        yield f"commands: {sorted(commands ^ shown)}"
    codes = [tag for tag, _ in entries(page, "EXIT STATUS")]
    shown = [row.split("|")[1].strip() for row in table_of(text, "| code | |").splitlines()[2:]]
    if codes != shown:
        yield f"exit codes: {shown} in place of {codes}"


def main(verify, *options):
    text, page = PAGE.read_text(encoding="utf-8"), printed(verify, "man")
    if "--write" in options:
        for head, table in tables(page).items():
            text = text.replace(table_of(text, head), table)
        PAGE.write_text(text, encoding="utf-8")
    found = list(wrong(text, page))
    for line in found:
        print(line)
    faulty = {name: fault(text) for name, fault in FAULTS.items()}
    missed = [name for name, fault in faulty.items() if fault == text or not list(wrong(fault, page))]
    for name in missed:
        print(f"this fault is not found: {name}")
    print(f"{PAGE.name}: {len(found)} differences; {len(FAULTS) - len(missed)} of {len(FAULTS)} planted faults found")
    return 1 if found or missed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
