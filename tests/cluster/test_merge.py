"""Merging reports gives what it always gave: small reports of every kind against recorded output.

    test_merge.py FA-VERIFY            compares
    test_merge.py FA-VERIFY --record   writes recorded_merges.json anew, after looking at what changes

The record was first made by the implementation that held whole reports in memory; the one that streams them has to give
the same bytes, messages and exit codes.
"""

from __future__ import annotations

import copy
import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

RECORD = Path(__file__).with_name("recorded_merges.json")
LONG = 3500  # characters: of longer texts the record has a hash
Report = dict[str, Any]


# ---- reports ----


def entry(name: str, state: str = "PASS", ratio: Any = 0.5, record: str | None = None, **more: Any) -> dict[str, Any]:
    """An item of "cases"; its record is made of the name unless it is given, and there is none if it is ""."""
    fields: dict[str, Any] = {"name": name, "state": state, "backend": "host", "kernel": "flash_forward<f16,64>"}
    if record != "":
        fields["record"] = record or f"{sum(map(ord, name)) * 2654435761 % 2**64:016x}"
    fields |= {"seconds": 0.25, "worst_ratio": ratio, "passes": 1, "features": "f16 flash causal",
               "shape": "b=1 hq=2 hkv=1 sq=64 sk=80 d=64 dv=64 right=0 fill=normal", "ratios": {"o": ratio, "lse": 0.1},
               "tightness": {"o": 1.7e-06, "lse": 0.00015}}
    return fields | more


def failure_of(case: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The item of "failures" for it."""
    tensor = {"name": "o", "failed": True, "count": 8192, "bad": 12, "class_bad": 0, "unwritten": 0,
              "worst_ratio": case["worst_ratio"], "worst": [{"index": [0, 0, 1, 2], "got": -0.1, "got_hex": "-0x1p-3"}],
              "where": {"text": "every bad element has q >= 60", "by_axis": {"q": "q >= 60"}},
              "statistics": {"count": 10, "rms": 1.5, "bias": -0.25, "bad": False}, "tightness": 1.7e-06, "vacuous": "",
              "map": {"panel": [], "panels": {"at": [[0]], "cells": "QUJD"}}}
    return {"case": {"name": case["name"], "family": "flash", "seqlen_q": 64, "seqlen_k": 80}, "name": case["name"],
            "state": case["state"], "backend": case["backend"], "kernel": case["kernel"], "profile": "fa-f16",
            "schedule_seed": "0", "reason": "", "notes": "", "seconds": 0.25, "tensors": [tensor], "dump": "",
            "repro": f"fa-verify repro night.json:{case['name']}"} | more


def report(*cases: dict[str, Any], device: str = "CPU", failures: list[dict[str, Any]] | None = None, **more: Any) -> Report:
    """A report of these cases; each that failed has its item of "failures" unless they are given."""
    bad = [c for c in cases if c["state"] not in ("PASS", "SKIP")]
    reasons: dict[str, int] = {}
    for case in cases:
        if case["state"] == "SKIP":
            reasons[case.get("reason", "no reason given")] = reasons.get(case.get("reason", "no reason given"), 0) + 1
    errors = sum(c["state"] == "ERROR" for c in cases)
    waived = sum(bool(c.get("waived")) for c in cases)
    summary = {"total": len(cases), "passed": sum(c["state"] == "PASS" for c in cases),
               "failed": len(bad) - errors - waived, "skipped": sum(reasons.values()), "error": errors}
    if waived:
        summary["waived"] = waived
    summary |= {"backward_left_out": sum(bool(c.get("backward_left_out")) for c in cases), "skip_reasons": reasons}
    return {"fa_report": 1, "tool": {"version": "0.1.0", "git": "abc"},
            "backend": {"name": "host", "device": device, "driver": "none"}, "host": {"cpu": "a chip"},
            "command": "fa-verify run", "started": "2026-11-21T14:14:02Z", "seconds": 1.625, "summary": summary,
            "kernels": {}, "failures": [failure_of(c) for c in bad] if failures is None else failures,
            "cases": list(cases)} | more


def text_of(value: Any) -> str:
    """As a run writes it, roughly: the cases on a line each."""
    if not isinstance(value, dict) or "cases" not in value:
        return json.dumps(value)
    head = json.dumps({k: v for k, v in value.items() if k != "cases"}, indent="\t")[:-2]
    return head + ',\n\t"cases":\t[' + ", ".join("\n\t\t" + json.dumps(c) for c in value["cases"]) + "]\n}"


def many(n: int, shard: int, of: int) -> list[dict[str, Any]]:
    """Every of-th case of a campaign in which those with more keys than queries fail."""
    cases = []
    for i in range(shard, n, of):
        fails = i % 3 == 0
        shape = f"b={1 + i % 4} hq=2 hkv=1 sq={64 + i} sk={64 + i + (9 if fails else -i)} d=64 dv=64 right=0 fill=normal"
        cases.append(entry(f"causal-7-{i}", "FAIL" if fails else "PASS", 4.75 + i if fails else i / 77, shape=shape,
                           features="f16 flash causal gqa" if i % 2 else "bf16 flash causal"))
    return cases


# ---- what is merged ----


def twice(*reports: Report) -> list[str]:
    """The reports' texts."""
    return [text_of(r) for r in reports]


def without(value: dict[str, Any], *keys: str) -> dict[str, Any]:
    """A copy without some of its keys."""
    return {k: v for k, v in value.items() if k not in keys}


def good_inputs() -> dict[str, list[str]]:
    """The texts of the reports of each merge that succeeds."""
    skip = entry("skipped", "SKIP", 0, reason="host: no such kernel")
    other_skip = entry("other", "SKIP", 0, reason="host: <too> \"large\"")
    error = entry("wrong", "ERROR", 0, malformed=True, reason="$.mask: missing")
    crash = entry("crash", "CRASH", 0, notes="signal 11")
    waived = entry("known", "FAIL", 9.5, waiver="bug 7", waived=True)
    left = entry("left", "PASS", 0.75, backward_left_out=True, backward_kernel="", draw=3)
    slow = [c | {"seconds": 7.125} for c in (entry("a"), skip, left, error, waived)]
    law = entry("law", "FAIL", 0, notes="law: shift", not_delivered=["lse"])
    law_failure = without(failure_of(law), "tensors") | {"law_broken": ["o"], "law_nan": [], "tensors": []}
    explained = [{"hypothesis": "last_tile", "text": "last tile lost", "tensors": ["o"], "wrong": 12, "share": 1}]
    parts = [report(*many(40, i, 3), coverage={"cases": 13 + i, "lengths": {"0": i}}, run={"seed": "7"}, finished=True,
                    tried={"causal": {"wanted": 3, "judged": 2}} | ({"gqa": {"wanted": 1, "judged": 1}} if i else {}))
             for i in range(3)]
    parts[1]["groups"] = [{"id": 1, "title": "old"}]
    for item in parts[0]["failures"]:
        item["explained_by"] = explained
    parts[0]["failures"][1]["shrunk"] = {"case": {"name": "small", "family": "flash", "seqlen_q": 1, "seqlen_k": 10},
                                         "repro": "fa-verify repro night.json:1.shrunk"}
    contradicting = [report(entry("one", ratio=0.25), entry("two", ratio=0.75), entry("three", ratio=0.125)),
                     report(entry("one", "FAIL", 4), entry("two", ratio=0.875), entry("three", ratio=0.125)),
                     report(entry("one", ratio=0.25), entry("one", ratio=0.25), entry("two", "FAIL", "inf"))]
    kernels = [report(entry("one")), report(entry("one", "FAIL", 3, kernel="hopper_forward<f16,64>")),
               report(entry("one", ratio=0.75, kernel=""))]
    requirement = {"wanted": {"judged": "90%", "features": ["causal", "gqa"]}, "met": True, "items": []}
    odd = report(entry("numbers", ratio=1e-7, seconds=0.1, more=[0.1, 1e22, -0.0, 1e15, 123456789012345, 1.0, -5e-324]),
                 entry("text", notes="\u00e9 \"quoted\" \\ / \t \u0001 \U0001f600 </script>"), entry("nan", "FAIL", "nan"))
    infinite = text_of(odd).replace("1e+22", "1e999").replace('"\\u00e9', '"\u00e9')
    reordered = {k: odd[k] for k in ("cases", "fa_report", "failures", "summary", "seconds", "backend", "tool")}
    compact = json.dumps(reordered, separators=(",", ":"))
    nested = entry("deep", extra=json.loads("[" * 70 + "]" * 70))
    return {
        "one": [text_of(report(entry("a"), skip, error, crash, waived, left, run={"seed": "7"}, finished=True))],
        "none": [text_of(report())],
        "none of two": twice(report(), report(finished=False)),
        "shards": twice(*parts),
        "a report twice": twice(parts[0], parts[0]),
        "overlap": twice(report(entry("a"), skip, left, error, waived, coverage={"cases": 5}, tried={}),
                         report(*slow, crash, other_skip, entry("b", "FAIL", 2.5), coverage={"cases": 8})),
        "contradictions": twice(*contradicting),
        "contradictions before": twice(report(entry("one"), contradictions=[{"name": "old"}]), contradicting[1]),
        "other kernels": twice(*kernels),
        "other devices": twice(report(entry("one"), device="a chip"), report(entry("one", ratio=3), device="another")),
        "other backends": twice(report(entry("one")), report(entry("one", ratio=3) | {"backend": "cuda"})),
        "twice in each": twice(report(entry("one"), entry("one")), report(entry("one"), entry("one"), entry("one"))),
        "names": twice(report(entry("one", record="0" * 16)), report(entry("two", "FAIL", 2, record="0" * 16))),
        "without records": twice(report(entry("old", record=""), entry("old", record="")), report(entry("old", record=""))),
        "maps": twice(report(entry("b", "FAIL", 2)), report(entry("b", "FAIL", 2),
                      failures=[failure_of(entry("b", "FAIL", 2), tensors=[], maps_left_out=True)])),
        "laws": twice(report(law, failures=[law_failure]), report(law, failures=[law_failure]), report(entry("a"))),
        "required": twice(report(*many(9, 0, 2), require=requirement), report(*many(9, 1, 2), require=requirement)),
        "required of one": twice(report(*many(9, 0, 2), require=requirement), report(*many(9, 1, 2))),
        "required otherwise": twice(report(entry("a"), require=requirement),
                                    report(entry("b"), require={"wanted": {"judged": "80%"}})),
        "odd": [infinite, text_of(report(entry("plain")))],
        "reordered": [compact, compact.replace("0.1", "0.10"), text_of(odd)],
        "deep": [text_of(report(nested)), " \n" + text_of(report(nested)) + "\n\n"],
        "no failure": [text_of(report(entry("bad", "FAIL", 2), failures=[]))],
        "finished later": twice(report(entry("a"), finished=False, run={}), report(entry("b"), finished=True, run={})),
    }


def bad_inputs() -> dict[str, list[str]]:
    """Reports that are refused, some behind one that is not."""
    good = report(entry("a"), entry("b", "FAIL", 3))
    text = text_of(good)
    broken = copy.deepcopy(good)
    broken["cases"][1]["state"] = "FINE"
    nameless = copy.deepcopy(good)
    del nameless["failures"][0]["case"]
    journal = '{"fa_journal":1,"started":"","command":"","run":{}}\n' + json.dumps(entry("a") | {"item": 0}) + "\n"
    return {
        "empty": [""],
        "no JSON": ["tests: 3"],
        "cut in a case": [text, text[:-40]],
        "cut in a failure": [text[: text.index("by_axis")]],
        "cut in the head": [text[:30]],
        "behind it": [text + "}"],
        "a comma": [text.replace("}, \n", "}, ,\n")],
        "no comma": [text.replace("}, \n", "} \n")],
        "a number": [text.replace("0.25", "0.25.", 1)],
        "an escape": [text.replace("every bad", "every \\x bad")],
        "journal": [journal],
        "list": ["[]"],
        "no report": ["{}"],
        "version 2": [text_of(good | {"fa_report": 2})],
        "no summary": [text_of(without(good, "summary"))],
        "no cases": [json.dumps(without(good, "cases"))],
        "no failures": [text_of(without(good, "failures"))],
        "cases are no list": [json.dumps(good | {"cases": {}})],
        "a case is no object": [json.dumps(good | {"cases": [1]})],
        "an unknown state": [text, text_of(broken)],
        "a failure without a case": [text_of(nameless)],
        "a count is text": [text_of(good | {"summary": good["summary"] | {"total": "2"}})],
        "a requirement": [text_of(good | {"require": {"wanted": {"judged": 3}}})] * 2,
    }


# ---- the program ----


def merge(program: str, texts: list[str], options: list[str]) -> dict[str, Any]:
    """What merging them gives: exit code, what is printed, and the files written."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for i, text in enumerate(texts):
            (folder / f"part.{i}.json").write_text(text)
        words = [program, "report", *(f"part.{i}.json" for i in range(len(texts))), *options]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
        new = [p for p in sorted(folder.iterdir()) if not p.name.startswith("part.")]
        return {"code": done.returncode, "stdout": done.stdout, "stderr": done.stderr.replace(program, "fa-verify")} | {
            p.name: abridged(p.read_text()) for p in new}


def abridged(text: str) -> str:
    """The text, or of a long one enough to know it again."""
    if len(text) <= LONG:
        return text
    return f"{len(text)} characters, sha256 {hashlib.sha256(text.encode()).hexdigest()}: {text[:80]}"


def all_merges(program: str) -> dict[str, dict[str, Any]]:
    """Every merge by its name."""
    written = ["--merge", "all.json", "--junit", "all.xml"]
    results = {}
    for name, texts in good_inputs().items():
        results[name] = merge(program, texts, written)
        results[name + ", no times"] = merge(program, texts, ["--no-times", "--merge", "all.json"])
        results[name + ", printed"] = merge(program, texts, ["-v"])
    for name, texts in bad_inputs().items():
        results[name] = merge(program, texts, written)
    results["--require"] = merge(program, good_inputs()["shards"], ["--require", "99%", *written])
    results["unmet --require"] = merge(program, good_inputs()["overlap"], ["--require", "all", *written])
    return results


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What is not the same, with the first place where texts differ."""
    lines = []
    for key in sorted(old.keys() | new.keys()):
        a, b = str(old.get(key, "(none)")), str(new.get(key, "(none)"))
        at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
        if a != b:
            lines.append(f"{key}, character {at}: recorded {a[max(0, at - 40):at + 60]!r}, now {b[max(0, at - 40):at + 60]!r}")
    return lines


def main() -> int:
    """Exit code 1 if anything differs."""
    program = str(Path(sys.argv[1]).resolve())
    results = all_merges(program)
    if "--record" in sys.argv:
        RECORD.write_text(json.dumps(results, indent=0, sort_keys=True) + "\n")
        return 0
    recorded = json.loads(RECORD.read_text())
    failed = 0
    for name in sorted(recorded.keys() | results.keys()):
        lines = differences(recorded.get(name, {}), results.get(name, {}))
        failed += bool(lines)
        for line in lines:
            print(f"failed: {name}: {line}")
    print(f"{len(results)} merges, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
