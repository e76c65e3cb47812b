"""The findings of this repository as data: docs/findings/NAME.json and what belongs to each; the campaigns' counts; the page's tables.

An entry has: title, class, library (its distribution on PyPI), version, adapter, upstream ("none found", or where it is known), rule (of
rival_rules.py), when (a predicate, below), and rivals, which rival_rules.py writes. It may have: states (how its cases fail, FAIL if it
says nothing), adapters (others that show it too), needs ("gpu", or a flag of the processor, as /proc/cpuinfo names it), environment (variables under
which the adapter shows it), passing (names of cases that pass: they make the next one fail, or the adapter avoids the fault since).
Needs nothing but Python, except for `predicate`, which needs the package."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: What a finding can be, the worst first. The last two are no bugs, but a user is better told.
CLASSES = ("memory error", "crash", "hang", "wrong result", "nondeterminism", "refused", "silent convention", "documented limit")
KEYS = {"title", "class", "library", "version", "adapter", "upstream", "rule", "when", "states", "adapters", "needs", "environment", "passing", "rivals"}
NEEDED = {"title", "class", "library", "version", "adapter", "upstream", "rule", "when"}


@dataclass(frozen=True)
class Finding:
    """One entry. Paths are relative to `root`, a checkout."""

    name: str
    data: dict[str, Any]
    root: pathlib.Path = field(default=ROOT, repr=False)

    @property
    def script(self) -> pathlib.Path:
        return self.root / "docs/findings" / f"{self.name}.py"

    @property
    def entry(self) -> pathlib.Path:
        return self.root / "docs/findings" / f"{self.name}.json"

    @property
    def cases(self) -> pathlib.Path:
        return self.root / "cases/findings" / f"{self.name}.json"

    @property
    def states(self) -> tuple[str, ...]:
        """How cases fail of it."""
        return tuple(self.data.get("states", ("FAIL",)))

    @property
    def adapters(self) -> tuple[str, ...]:
        return (self.data["adapter"], *self.data.get("adapters", ()))

    def rank(self) -> tuple[int, str]:
        return (CLASSES.index(self.data["class"]) if self.data.get("class") in CLASSES else len(CLASSES), self.name)


def entries(root: pathlib.Path = ROOT) -> list[Finding]:
    """All findings of a checkout, the worst class first. ValueError: an entry that is no JSON object."""
    found = []
    for path in sorted((root / "docs/findings").glob("*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(data, dict):
            raise ValueError(f"{path}: not an object")
        found.append(Finding(path.stem, data, root))
    return sorted(found, key=Finding.rank)


def campaigns(root: pathlib.Path = ROOT) -> Iterator[dict[str, Any]]:
    """What `findings.py count` wrote of each adapter (docs/findings/adapters/NAME.json)."""
    for path in sorted((root / "docs/findings/adapters").glob("*.json")):
        yield json.loads(path.read_text(encoding="utf-8"))


def predicate(finding: Finding) -> Callable[[Any, dict[str, Any]], bool]:
    """`when` as a function of a case (fa_verify.adapters._problem.Problem) and of its failure in a report.

    It is a Python expression that knows: p, the case; fill(NAME), how a tensor is filled; bad(NAME), how many of its elements
    are wrong; nan, how many elements of O are NaN or infinite where they must not be, or are not where they must be. Of a broken law
    both are 0 or 1."""
    code = compile(finding.data["when"], f"{finding.name}: when", "eval")

    def holds(p: Any, failure: dict[str, Any]) -> bool:
        wrong, broken = {x["name"]: x for x in failure.get("tensors", ())}, failure.get("law_broken", ())
        known = {
            "p": p,
            "fill": lambda name: fill(p.json, name),
            "bad": lambda name: wrong.get(name, {}).get("bad", int(name in broken)),
            "nan": wrong.get("o", {}).get("class_bad", int("o" in failure.get("law_nan", ()))),
        }
        return failure.get("state") in finding.states and bool(eval(code, {"__builtins__": {"min": min, "max": max, "any": any}}, known))

    return holds


def fill(case: dict[str, Any], name: str) -> str:
    """The name of a tensor's fill, "normal" if nothing says."""
    for spec in (case.get("bias", {}).get("fill") if name == "bias" else None, case.get("fill", "normal")):
        if isinstance(spec, dict):
            spec = spec.get(name, spec.get("default"))
        if isinstance(spec, str):
            return spec
    return "normal"


def table(found: list[Finding]) -> list[str]:
    """The rows of all findings, as Markdown."""
    lines = ["| finding | what | class | library | upstream | its own test rule | numpy.allclose |", "|---|---|---|---|---|---|---|"]
    for f in found:
        d, rivals = f.data, f.data.get("rivals", {})
        said = [rivals.get(x, "not asked") for x in ("own", "allclose")]
        lines.append(f"| [{f.name}](#{f.name}) | {d['title']} | {d['class']} | {d['library']} {d['version']} | {d['upstream']} | {said[0]} | {said[1]} |")
    return lines


def table_of_adapters(counted: list[dict[str, Any]]) -> list[str]:
    """What each adapter's campaign came to, as Markdown."""
    heads = ("adapter", "library", "judged", "random", "passed", "of findings", "vacuous", "unexplained", "worst of those that passed", "median", "laws", "broken, of findings")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for c in counted:
        explained, of_laws = _shares(c["findings"]), c.get("laws", {"judged": 0, "findings": {}})
        lines.append(
            f"| `{c['adapter']}` | {c['library']} {c['version']} | {c['judged']:,} | {c['random']:,} | {c['passed']:,} | {explained} "
            f"| {c['vacuous']:,} | {c['unexplained']:,} | {c['worst']:.3g} | {c['median']:.2g} | {of_laws['judged']:,} | {_shares(of_laws['findings'])} |"
        )
    return lines


def _shares(findings: dict[str, int]) -> str:
    return ", ".join(f"{n} {name}" for name, n in sorted(findings.items(), key=lambda x: -x[1])) or "0"
