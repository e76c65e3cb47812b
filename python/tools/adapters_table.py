#!/usr/bin/env python3
"""Prints what adapters_gpu.py has left, as the tables of docs/notes/adapters.md.

    python3 python/tools/adapters_table.py results [more results ...] [--probes probes]

Folders are given oldest first; of each adapter the newest result counts in which anything was judged, else the newest of all.
--probes: a folder with NAME.txt, what `fa-verify probe -v` printed of each adapter."""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import sys
from typing import Any

PACKAGE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PACKAGE))

from fa_verify.adapters import NAMES

REASONS = 2  # of skipping, in a row of the table


def parts(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [found, found.get("random") or {}]


def judged(found: dict[str, Any]) -> int:
    return sum(part.get("judged", 0) for part in parts(found))


def read(folders: list[pathlib.Path]) -> dict[str, dict[str, Any]]:
    """The result of each adapter that counts."""
    best: dict[str, dict[str, Any]] = {}
    for folder in folders:
        for name in NAMES:
            path = folder / f"{name}.json"
            if not path.exists():
                continue
            found = json.loads(path.read_text())
            if name not in best or judged(found) or not judged(best[name]):
                best[name] = found
    return best


def how_far(found: dict[str, Any]) -> str:
    if found.get("why_not"):
        return f"not here: {found['why_not'][:80]}"
    if found.get("complete"):
        return "whole"
    return "cut short by time" if judged(found) else "not reached: compiling"


def failing(found: dict[str, Any]) -> str:
    """Counts by state: "66 FAIL, 2 HANG"."""
    states: dict[str, int] = {}
    for part in parts(found):
        for state, n in part.get("states", {}).items():
            if state not in ("PASS", "SKIP"):
                states[state] = states.get(state, 0) + n
    return ", ".join(f"{n} {state}" for state, n in sorted(states.items(), key=lambda x: -x[1])) or "0"


def skipped(found: dict[str, Any]) -> str:
    """The number, and the reasons that most were skipped for."""
    reasons: dict[str, int] = {}
    for part in parts(found):
        for why, n in part.get("skipped", {}).items():
            reasons[why] = reasons.get(why, 0) + n
    total = sum(reasons.values())
    top = sorted(reasons.items(), key=lambda x: -x[1])[:REASONS]
    return f"{total}: " + "; ".join(f"{why} ({n})" for why, n in top) if total else "0"


def row(name: str, found: dict[str, Any]) -> str:
    passed = sum(part.get("states", {}).get("PASS", 0) for part in parts(found))
    library = f"{found.get('library', '')} {found.get('version', '')}".strip()
    return f"| `{name}` | {library} | {judged(found)} | {passed} | {failing(found)} | {skipped(found)} | {how_far(found)} |"


def table(best: dict[str, dict[str, Any]]) -> list[str]:
    head = ["| adapter | library | judged | passed | not passed | skipped, mainly because | how far |", "|---|---|---|---|---|---|---|"]
    return head + [row(name, best[name]) for name in NAMES if name in best]


# ---- probes


def probe_row(name: str, text: str) -> str:
    """What a probe found: element types, findings that agree with the declaration or have none, and those that do not."""
    types = re.findall(r"^(f32|bf16|f16): \d+ calls", text, re.MULTILINE)
    told = len(re.findall(r"^  \S.* (?:certain|likely) *$", text, re.MULTILINE))
    against = sorted(set(re.findall(r"^  (.{20}) (\S.*?) +(?:certain|likely) +(?:declared|the case asks for): (.*)!$", text, re.MULTILINE)))
    said = "; ".join(f"{field.strip()}: {value}, declared {declared}" for field, value, declared in against) or "none"
    reason = "; ".join(sorted(set(re.findall(r"^(?:f32|bf16|f16): not asked: (.*)$", text, re.MULTILINE)))) if not types else ""
    return f"| `{name}` | {' '.join(types) or '-'} | {told} | {reason or (said if text.strip() else 'did not end in time')} |"


def probe_table(folder: pathlib.Path) -> list[str]:
    head = ["| adapter | asked about | findings that agree | that do not |", "|---|---|---|---|"]
    return head + [probe_row(name, (folder / f"{name}.txt").read_text()) for name in NAMES if (folder / f"{name}.txt").exists()]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="*", type=pathlib.Path)
    parser.add_argument("--probes", type=pathlib.Path)
    options = parser.parse_args(arguments)
    if options.results:
        print("\n".join(table(read(options.results))))
    if options.probes:
        print("\n" + "\n".join(probe_table(options.probes)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
