"""What came of a run, and the exceptions that say that it was not good."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

from fa_verify._case import Json


@dataclasses.dataclass(frozen=True)
class Failure:
    """A case that failed."""

    name: str
    state: str  #: "FAIL", "CRASH", "HANG", "OOB", "REJECTED", "ERROR" ...
    case: Json  #: what :func:`fa_verify.check` takes as cases= to run it again
    text: str = dataclasses.field(repr=False)  #: the diagnosis, several lines
    tensors: list[Json] = dataclasses.field(repr=False)  #: by tensor; docs/reference/report.md


@dataclasses.dataclass(frozen=True)
class Report:
    """What came of a run. raw is the JSON report of fa-verify (docs/reference/report.md)."""

    passed: int
    failed: int
    skipped: int
    errors: int
    failures: list[Failure]
    skip_reasons: dict[str, int]
    text: str = dataclasses.field(repr=False)  #: what fa-verify printed
    raw: Json = dataclasses.field(repr=False)

    @property
    def total(self) -> int:
        return self.passed + self.failed + self.skipped + self.errors

    @property
    def judged(self) -> int:
        """Cases that passed or failed."""
        return self.passed + self.failed

    @property
    def ok(self) -> bool:
        return self.judged > 0 and not self.failed and not self.errors

    def __str__(self) -> str:
        return f"passed {self.passed}, failed {self.failed}, skipped {self.skipped} of {self.total}"


class Mismatch(AssertionError):
    """A kernel that is not right, or was not judged as far as was required. The text is the diagnosis."""

    def __init__(self, text: str, report: Report):
        super().__init__(text)
        self.report = report


class NotJudged(Mismatch):
    """Nothing was wrong, but less was judged than was required."""


def read(raw: Json, printed: str) -> Report:
    """The report of fa-verify with the lines that it printed about each failure."""
    summary: dict[str, Any] = raw["summary"]
    texts = _blocks(printed)
    failures = []
    for at, entry in enumerate(raw.get("failures", [])):
        name = entry["case"].get("name", "")
        text = texts[at] if at < len(texts) else f"{entry['state']} {name}  {entry.get('reason', '')}"
        failures.append(Failure(name, entry["state"], entry["case"], text, entry.get("tensors", [])))
    return Report(
        passed=summary["passed"],
        failed=summary["failed"],
        skipped=summary["skipped"],
        errors=summary["error"],
        failures=failures,
        skip_reasons=dict(summary.get("skip_reasons", {})),
        text=printed,
        raw=raw,
    )


def _blocks(printed: str) -> list[str]:
    """The lines about each failure: state and name, and indented ones behind it. Not the last one, the summary."""
    blocks: list[str] = []
    for line in printed.splitlines():
        if line.startswith("tests:"):
            continue
        if line.startswith("    ") and blocks:
            blocks[-1] += "\n" + line
        elif line.split(" ", 1)[0] in _FAILED:
            blocks.append(line)
    return blocks


_FAILED = (
    "FAIL", "CRASH", "HANG", "OOB", "INPUT_MODIFIED", "NONDETERMINISTIC", "RACE", "DEADLOCK", "VACUOUS", "NOT_REJECTED", "ERROR",
)  # fmt: skip


def diagnosis(report: Report, subject: str, at_most: int = 5) -> str:
    """The text of a Mismatch: what failed and where, how to run it again, and how many more there are."""
    parts = [f"{subject}: {report}"]
    for failure in report.failures[:at_most]:
        again = f"    again: fa_verify.check({subject}, cases={json.dumps(failure.case)!r})" if failure.case else ""
        parts.append("\n".join(line for line in [*_short(failure.text), again] if line))
    if len(report.failures) > at_most:
        parts.append(f"... and {len(report.failures) - at_most} more: {', '.join(f.name for f in report.failures[at_most:][:20])}")
    return "\n".join(parts)


def shortfall(report: Report, subject: str) -> str:
    """The text of a NotJudged: what was required and not judged, and why cases were skipped."""
    items = [item for item in report.raw.get("require", {}).get("items", []) if not item["met"]]
    lines = [f"    {item['what']}: {item['judged']} of {item['cases']} cases were judged, {item['wanted']} required" for item in items]
    lines += [f"    {n} skipped: {why}" for why, n in report.skip_reasons.items()]
    what = "nothing was judged" if report.judged == 0 else "less was judged than is required"
    return "\n".join([f"{subject}: {what}", *lines])


def _short(text: str) -> list[str]:
    """A failure's lines without the command, which names a program of ours and the report of a run that is over."""
    head, *rest = text.splitlines()
    head = re.sub(r"  connect:.*?  (?=fwd|bwd|- )", "  ", head)
    return [head, *(line for line in rest if not line.startswith("    repro: "))]
