"""Makes the reports of a large campaign's shards in seconds, to measure how they are merged.

    python3 tests/cluster/make_reports.py --like REPORT.json --out FOLDER [--reports 64] [--cases 50000]

REPORT.json is the report of a real run with passes and failures. Its entries are the models: every case of the reports
made here is one of them with a name, a record and a time of its own, so that sizes, features and maps are those of real
runs. Of each report the first 200 failures have maps, as in a real one. The same arguments give the same bytes.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from pathlib import Path
from typing import Any, Iterator, NamedTuple

MAPS = 200  # failures of a run that keep their maps
LITTLE = ("PASS", "SKIP")  # states without an item in "failures"
NUMBER = re.compile(r'"number:([^"]*)"')
SPLIT = re.compile(r'(?<="name":)"[^"]*"|(?<="record":)"[^"]*"|(?<="seconds":)[^,}]*')


class Models(NamedTuple):
    """Texts to put a name, a record and a time into: entry.format would trip over braces, so they are pieces."""

    good: list[list[str]]  # of "cases": four pieces around name, record and seconds
    bad: list[tuple[list[str], dict[str, Any]]]  # and the item of "failures" beside it
    head: dict[str, Any]


def text_of(value: Any, **how: Any) -> str:
    """The value as JSON, with the digits that its numbers had in the report (see read_models)."""
    return NUMBER.sub(r"\1", json.dumps(value, **how))


def pieces_of(entry: dict[str, Any]) -> list[str]:
    """The entry's text, cut where name, record and seconds stand."""
    first = {key: entry[key] for key in ("name", "record", "seconds")}
    text = text_of({**first, **entry}, separators=(",", ":"))
    pieces = SPLIT.split(text, maxsplit=3)
    assert len(pieces) == 4, text
    return pieces


def read_models(path: Path) -> Models:
    """The entries of a report, those that passed and those that failed apart."""
    report = json.loads(path.read_text(), parse_float="number:{}".format)
    failures = iter(report["failures"])
    models = Models([], [], {k: v for k, v in report.items() if k not in ("cases", "failures", "groups", "kernels")})
    for entry in report["cases"]:
        if entry["state"] in LITTLE:
            models.good.append(pieces_of(entry))
        else:
            models.bad.append((pieces_of(entry), next(failures)))
    if not models.good or not models.bad:
        raise SystemExit(f"{path}: a report with cases that passed and cases that failed is needed")
    return models


def failure_text(failure: dict[str, Any], name: str, repro: str, with_map: bool) -> str:
    """A failure under another name; without its maps where the run would have enough of them."""
    tensors = failure["tensors"]
    if not with_map:
        tensors = [{k: v for k, v in tensor.items() if k != "map"} for tensor in tensors]
    changed = {**failure, "case": {**failure["case"], "name": name}, "name": name, "repro": repro, "tensors": tensors}
    return text_of(changed, indent="\t")


def draw_cases(models: Models, shard: int, shards: int, cases: int, share: float) -> Iterator[tuple[int, int, str, str]]:
    """Of every case of a shard: the model, as its place among the bad ones (-1: it passed) or the good ones, name, record."""
    random_numbers = random.Random(shard)
    for i in range(cases):
        number = shard + shards * i
        bad = random_numbers.randrange(len(models.bad)) if random_numbers.random() < share else -1
        record = f"{number * 0x9E3779B97F4A7C15 % 2**64:016x}"
        yield bad, random_numbers.randrange(len(models.good)), f"everything-7-{number}", record


def write_report(models: Models, path: Path, shard: int, arguments: argparse.Namespace) -> None:
    """One shard's report, as `random --report` writes it: the cases on a line each."""
    failures: list[str] = []
    lines: list[str] = []
    for bad, good, name, record in draw_cases(models, shard, arguments.reports, arguments.cases, arguments.failing):
        a, b, c, d = models.bad[bad][0] if bad >= 0 else models.good[good]
        seconds = f"{int(record[:6], 16) / 2**24:.17g}"
        lines.append(f'\n\t\t{a}"{name}"{b}"{record}"{c}{seconds}{d}')
        if bad >= 0:
            repro = f"fa-verify repro {path.name}:{len(failures)}"
            failures.append(failure_text(models.bad[bad][1], name, repro, len(failures) < MAPS))
    head = {**models.head, "summary": {"total": len(lines), "passed": len(lines) - len(failures), "failed": len(failures),
                                       "skipped": 0, "error": 0, "backward_left_out": 0, "skip_reasons": {}}}
    with path.open("w") as out:
        out.write(text_of(head, indent="\t")[:-2])
        out.write(',\n\t"failures":\t[' + ", ".join(failures) + '],\n\t"cases":\t[' + ", ".join(lines) + "]\n}\n")


def main() -> None:
    """Writes part.0.json and so on."""
    parser = argparse.ArgumentParser(description="Makes the reports of a large campaign's shards.")
    parser.add_argument("--like", type=Path, required=True, help="the report of a real run")
    parser.add_argument("--out", type=Path, required=True, help="the folder")
    parser.add_argument("--reports", type=int, default=64)
    parser.add_argument("--cases", type=int, default=50_000, help="of each report")
    parser.add_argument("--failing", type=float, default=0.005, help="the share of them")
    arguments = parser.parse_args()
    models = read_models(arguments.like)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for shard in range(arguments.reports):
        write_report(models, arguments.out / f"part.{shard}.json", shard, arguments)


if __name__ == "__main__":
    main()
