"""Scores of many candidates as a table: rows as JSON, and as Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fa_verify._case import Json

_COLUMNS = ("kernel", "score", "verdict", "coverage", "judged", "worst err/bound", "why")


def row_of_score(name: str, score: Json, other_contract: str = "") -> Json:
    """A candidate's row, from what `fa-verify report --score` wrote. other_contract: why that score does not count."""
    cases = score["coverage"]["cases"]
    return {
        "name": name,
        "score": 0 if other_contract else score["score"]["value"],
        "verdict": "failed" if other_contract else score["verdict"]["result"],
        "coverage": score["score"]["coverage"],
        "judged": cases["judged"],
        "selected": cases["selected"],
        "worst": _worst(score["accuracy"]),
        "why": other_contract or reason(score),
        "not_claimed": score["contract"]["not_claimed"] or {},
        "caveats": score["caveats"],
    }


def row_without_score(name: str, why: str) -> Json:
    """The row of a candidate that never came to be judged."""
    return {
        "name": name,
        "score": 0,
        "verdict": "not judged",
        "coverage": 0,
        "judged": 0,
        "selected": 0,
        "worst": None,
        "why": why,
        "not_claimed": {},
        "caveats": [],
    }


def sort(rows: Sequence[Json]) -> list[Json]:
    """The best first; of equal scores by name."""
    return sorted(rows, key=lambda row: (-row["score"], row["name"]))


def reason(score: Json) -> str:
    """Why a score is 0, in a line; "" if it is not."""
    if score["score"]["verdict"]:
        return ""
    groups = score["verdict"]["groups"]
    if groups:
        first = groups[0]
        more = f"; and {len(groups) - 1} more" if len(groups) > 1 else ""
        refused = score["coverage"]["cases"]["refused"]
        what = _what({**first, "title": "refused inside its contract"} if refused and not first.get("tensors") else first)
        return f"{score['verdict']['failed']} of {score['coverage']['cases']['judged']} fail: {what}{more}"
    for item in (score["coverage"]["require"] or {}).get("items", []):
        if not item["met"] and not score["verdict"]["failed"]:
            return f"required {item['what']} {item['wanted']}: {item['judged']} of {item['cases']} judged; {item['reason']}"
    return str(score["score"]["why_zero"])


def _what(group: Json) -> str:
    when = f" when {group['when']}" if group["when"] else ""
    return f"{group['title']}{when}"


def _worst(accuracy: Sequence[Json]) -> float | str | None:
    """The largest error by its bound; "inf" is larger than any number."""
    values = [entry["ratio"]["worst"] for entry in accuracy if entry["ratio"]]
    if any(isinstance(value, str) for value in values):
        return "inf"
    return max(values, default=None)


def markdown(rows: Sequence[Json]) -> str:
    """The table, and beneath it what candidates do not claim."""
    lines = [f"| {' | '.join(_COLUMNS)} |", "|---|---:|---|---:|---:|---:|---|"]
    for row in rows:
        judged = f"{row['judged']} of {row['selected']}"
        worst = "" if row["worst"] is None else row["worst"] if isinstance(row["worst"], str) else f"{row['worst']:.3g}"
        cells = (row["name"], f"{row['score']:.4g}", row["verdict"], f"{row['coverage']:.4g}", judged, worst, row["why"])
        lines.append(f"| {' | '.join(_cell(cell) for cell in cells)} |")
    return "\n".join([*lines, "", *_not_claimed(rows)]) + "\n"


def _cell(text: str) -> str:
    """Texts of candidates are in it, so nothing in them is markup."""
    return re.sub(r"[|\\`*_<>\[\]]", lambda match: f"\\{match.group()}", " ".join(str(text).split()))


def _not_claimed(rows: Sequence[Json]) -> list[str]:
    """A line for each set of claims that is left out, with those that leave it out."""
    by: dict[str, list[str]] = {}
    for row in rows:
        text = "; ".join(f"{kind}: {' '.join(words)}" for kind, words in row["not_claimed"].items() if words)
        if text:
            by.setdefault(text, []).append(row["name"])
    return [f"NOT CLAIMED by {', '.join(_cell(name) for name in names)}: {_cell(text)}" for text, names in by.items()]
