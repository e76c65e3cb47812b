"""A campaign in shares against the same campaign in one: what their reports must have in common."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

Report = dict[str, Any]
OF_ONE_PROCESS = ("repro", "maps_left_out")  # the first names the share's file


def merged(program: str, reports: list[Path], out: Path) -> Report:
    """One report of several, with times of zero."""
    subprocess.run([program, "report", *map(str, reports), "--no-times", "--merge", str(out)], check=True)
    return json.loads(out.read_text())


def comparable(item: Report) -> Report:
    """Without what belongs to a process: the first failures of each have maps."""
    kept = {k: v for k, v in item.items() if k not in OF_ONE_PROCESS}
    if "tensors" in item:
        kept["tensors"] = [{k: v for k, v in tensor.items() if k != "map"} for tensor in item["tensors"]]
    return kept


def by_name(items: list[Report]) -> list[Report]:
    """Shares have the cases in another order."""
    return sorted(map(comparable, items), key=lambda item: (item["name"], item["backend"]))


def first_difference(a: Report, b: Report) -> str:
    """The key at which two items differ, and what stands there."""
    key = next(key for key in a.keys() | b.keys() if a.get(key) != b.get(key))
    return f"{key}: {str(a.get(key))[:200]} in shares, {str(b.get(key))[:200]} in one"


def groups_of(report: Report) -> list[Report]:
    """Groups without what depends on the order: places in the list of failures, and the first names."""
    names = {i: failure["name"] for i, failure in enumerate(report["failures"])}
    chosen = []
    for group in report["groups"]:
        kept = {k: group[k] for k in ("title", "class", "count", "tensors", "worst_ratio")}
        chosen.append(kept | {"predicate": group["predicate"]["text"], "members": sorted(names[i] for i in group["failures"])})
    return sorted(chosen, key=lambda group: (-group["count"], group["members"]))


def differences(shares: Report, whole: Report) -> list[str]:
    """What is not the same of a merged report and that of a run in one; [] if they are equal."""
    lines = [f"{key}: {shares.get(key)} in shares, {whole.get(key)} in one"
             for key in ("summary", "kernels", "backend", "tried") if shares.get(key) != whole.get(key)]
    if "contradictions" in shares:
        lines.append(f"{len(shares['contradictions'])} contradictions")
    for key in ("cases", "failures"):
        a, b = by_name(shares[key]), by_name(whole[key])
        lines += [f"{key}: {x['name']}: {first_difference(x, y)}" for x, y in zip(a, b) if x != y][:3]
        if len(a) != len(b):
            lines.append(f"{key}: {len(a)} in shares, {len(b)} in one")
    if groups_of(shares) != groups_of(whole):
        lines.append(f"groups: {groups_of(shares)} in shares, {groups_of(whole)} in one")
    return lines
