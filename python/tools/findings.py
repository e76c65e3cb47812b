#!/usr/bin/env python3
"""Judges the adapters of kernels for processors by night, and sorts what fails by the findings that are known.

    python3 python/tools/findings.py run --binary build/fa-verify --out results ort_mha openvino     # goes on where it was cut
    python3 python/tools/findings.py laws --binary build/fa-verify --out results ort_mha openvino    # laws between two runs
    python3 python/tools/findings.py sort --out results                 # every failure: of which finding; exit 1 if any is of none
    python3 python/tools/findings.py count --out results                # the same, kept in docs/findings/adapters/
    python3 python/tools/findings.py table [--write]                    # the tables of docs/findings.md, and its pictures

`run` judges an adapter by all case files, then by random cases of every profile (--count of each); results/NAME-PROFILE.json are the
reports, that of its laws is results/NAME.laws.json. A finding takes a failure if its adapter is the one that failed and its predicate
("when" of docs/findings/NAME.json) holds."""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from findings_entries import ROOT, Finding, campaigns, entries, predicate, table, table_of_adapters
from findings_plots import parts, plots

PAGE = ROOT / "docs/findings.md"
PROFILES = ("everything", "causal", "varlen", "gqa", "window", "bias", "memeff", "edge", "fills", "layout", "adversarial", "flex", "mixed", "kvcache", "dropout")
#: Of random cases: the seed, and how many of each profile. "everything" has more, since it has all of the others in it.
SEED, COUNT = "19", 400
SHARE = {"everything": 2.5, "long": 0.1}


def run(binary: pathlib.Path, out: pathlib.Path, adapter: str, jobs: int, count: int = COUNT) -> None:
    """Judges one adapter; reports that are whole are left as they are."""
    files = [str(path) for path in sorted((ROOT / "cases").glob("*.json")) if path.stem != "schema"]
    calls = {"named": ["run", "--cases", *files]}
    for profile in (*PROFILES, "long"):
        calls[profile] = ["random", "--profile", profile, "--count", str(round(count * SHARE.get(profile, 1))), "--seed", SEED]
    for what, call in calls.items():
        judge(binary, out / f"{adapter}-{what}.json", adapter, jobs, call)


def laws(binary: pathlib.Path, out: pathlib.Path, adapter: str, jobs: int, count: int = COUNT) -> None:
    """Judges all laws of so many random cases; most do not apply to most cases."""
    judge(binary, out / f"{adapter}.laws.json", adapter, jobs, ["random", "--laws", "--profile", "everything", "--count", str(count), "--seed", SEED])


def judge(binary: pathlib.Path, report: pathlib.Path, adapter: str, jobs: int, call: list[str]) -> None:
    """One run of the judge, unless its report is there and whole."""
    if report.exists() and not report.with_suffix(".json.journal").exists():
        return
    report.parent.mkdir(parents=True, exist_ok=True)
    rest = ["--backend", f"py:{adapter}", "--report", str(report), "--resume", "-q", "--jobs", str(jobs), "--timeout", "300", "--no-progress"]
    with report.with_suffix(".txt").open("a") as log:
        subprocess.run([str(binary), *call, *rest], stdout=log, stderr=subprocess.STDOUT, check=False)
    print(f"{report.stem}: {report.with_suffix('.txt').read_text().splitlines()[-1]}", flush=True)


def judged(reports: list[pathlib.Path], adapter: str, found: list[Finding]) -> dict[str, Any]:
    """One adapter's campaign: counts, and the failures that no finding takes under "left"."""
    from fa_verify.adapters._problem import Problem

    asked = [(f.name, predicate(f)) for f in found if adapter in f.adapters]
    said: dict[str, Any] = {"adapter": adapter, "judged": 0, "random": 0, "passed": 0, "findings": {}, "vacuous": 0, "left": []}
    ratios, tried = [], []
    for path in reports:
        report = json.loads(path.read_text())
        version = report["backend"]["device"].split(": ", 1)[-1].split(",")[0].split()
        said["library"], said["version"] = version[0], version[-1]
        states = [case for case in report["cases"] if case["state"] not in ("SKIP", "ERROR")]
        said["judged"] += len(states)
        said["random"] += 0 if path.stem.endswith("-named") else len(states)
        passed = [case for case in states if case["state"] == "PASS"]
        said["passed"] += len(passed)
        tried += passed
        ratios += [case["worst_ratio"] for case in passed if isinstance(case.get("worst_ratio"), (int, float))]
        for k, failure in enumerate(report["failures"]):
            name = next((name for name, holds in asked if holds(Problem(failure["case"]), failure)), None)
            if name:
                said["findings"][name] = said["findings"].get(name, 0) + 1
            elif failure["state"] == "VACUOUS":
                said["vacuous"] += 1
            elif failure["state"] not in ("SKIP", "ERROR"):
                said["left"].append(f"{path}:{k} {failure['state']} {failure['name']}")
    said["unexplained"] = len(said["left"])
    if reports and reports[0].stem.endswith(".laws"):
        return said
    said["worst"], said["median"] = (max(ratios), statistics.median(ratios)) if ratios else (0.0, 0.0)
    said["parts"] = parts(tried)
    return said


def count(out: pathlib.Path, adapters: list[str], keep: bool) -> int:
    """Prints what all reports of a folder come to; the number of failures that are of no finding."""
    found = entries()
    names = adapters or sorted({path.stem.rsplit("-", 1)[0] for path in out.glob("*-*.json")})
    unexplained = 0
    for name in names:
        said = judged(sorted(out.glob(f"{name}-*.json")), name, found)
        left = said.pop("left")
        of_laws = judged(sorted(out.glob(f"{name}.laws.json")), name, found)
        if of_laws["judged"]:
            left += of_laws.pop("left")
            said["laws"] = {key: of_laws[key] for key in ("judged", "passed", "findings", "unexplained")}
        print(json.dumps(said))
        for line in left:
            print("  of no finding:", line)
        unexplained += len(left)
        if keep:
            (ROOT / "docs/findings/adapters" / f"{name}.json").write_text(as_text(said))
    return unexplained


def as_text(said: dict[str, Any]) -> str:
    """An object as JSON, a line a key."""
    return "{\n" + ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in said.items()) + "\n}\n"


def tables(text: str, root: pathlib.Path = ROOT) -> str:
    """The page with its tables printed again, each behind its mark."""
    for mark, lines in (("<!-- findings -->", table(entries(root))), ("<!-- adapters -->", table_of_adapters(list(campaigns(root))))):
        head, _, rest = text.partition(mark + "\n")
        if not rest:
            raise ValueError(f"docs/findings.md: no {mark}")
        kept = rest.split("\n")
        while kept and kept[0].startswith("|"):
            kept.pop(0)
        text = head + "\n".join([mark, *lines, *kept])
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("what", choices=("run", "laws", "sort", "count", "table"))
    parser.add_argument("adapters", nargs="*")
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build/fa-verify")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("results"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_intermixed_args()
    if asked.what in ("run", "laws"):
        for adapter in asked.adapters:
            (run if asked.what == "run" else laws)(asked.binary.resolve(), asked.out, adapter, asked.jobs, asked.count)
    elif asked.what == "table":
        text = tables(PAGE.read_text(encoding="utf-8"))
        if asked.write:
            PAGE.write_text(text, encoding="utf-8")
            for name, picture in plots(campaigns()).items():
                (ROOT / "docs/findings/plots" / f"{name}.svg").write_text(picture, encoding="utf-8")
        else:
            print("\n".join([*table(entries()), "", *table_of_adapters(list(campaigns()))]))
    else:
        return int(count(asked.out, asked.adapters, asked.what == "count") > 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
