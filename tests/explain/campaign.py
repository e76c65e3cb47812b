#!/usr/bin/env python3
"""A campaign on a subject with three bugs, each of some calls, finds three causes, each with its condition.

usage: campaign.py FA-VERIFY PLANTED.so"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BUGS = {"window_right_one_fewer", "last_key_tile_lost", "other_kv_head_modulo"}
COUNT = 700


def bounds(predicate: list[str]) -> dict[str, list[float]]:
    """Of each number that the sentences compare: between what they say it is."""
    found: dict[str, list[float]] = {}
    for sentence in predicate:
        said = re.match(r"(\w+) (>|<=) (\d+)\b", sentence)
        if not said:
            continue
        at = found.setdefault(said.group(1), [-1.0, float("inf")])
        at[said.group(2) == "<="] = float(said.group(3))
    return found


def main(verify: str, plugin: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "report.json"
        done = subprocess.run(
            [verify, "random", "--profile", "everything", "--count", str(COUNT), "--backend", f"plugin:{plugin}", "-q",
             "--report", str(path), "--no-progress", "--color", "never"],
            env={**os.environ, "FA_PLANTED": "three_bugs"}, capture_output=True, text=True, check=False)
        assert done.returncode == 1, f"exit code {done.returncode}: {done.stderr}"
        groups = json.loads(path.read_text())["groups"]
    lines = [line for line in done.stdout.splitlines() if line.startswith("cause ")]
    print("\n".join(lines))
    named = {group.get("hypothesis") for group in groups}
    assert named == BUGS and len(groups) == len(lines) == len(BUGS), f"{len(groups)} causes: {named}"
    for group in groups:
        predicate = group["predicate"]
        assert predicate["kind"] == "separates", predicate
        for what, (least, most) in bounds(predicate["literals"]).items():
            assert least < most, f"reads as a contradiction about {what}: {predicate['text']}"
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
