"""Runs fa-verify over a folder of candidates, several at a time, and takes up again what an earlier run has left."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import hashlib
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from fa_verify._binary import binary, case_file, run
from fa_verify._case import Json
from fa_verify.score._contract import difference
from fa_verify.score._table import row_of_score, row_without_score, sort
from fa_verify.score._task import Task


@dataclasses.dataclass(frozen=True)
class Settings:
    """What is asked of every candidate, and where it is written."""

    out: Path
    cases: Sequence[str] = ("causal",)
    task: Task = dataclasses.field(default_factory=Task)
    require: str = "all"
    untrusted: bool = False
    jobs: int = 1  #: candidates at a time
    options: Sequence[str] = ()  #: more options of fa-verify run
    python: str = sys.executable  #: of the candidates


def judge_folder(folder: Path, settings: Settings, say: Callable[[Json], None] | None = None) -> list[Json]:
    """Judges every FILE.py of the folder whose name does not begin with "_"; returns the table's rows, best first.

    say is called with each row as it comes, from this thread. Each candidate gets a folder of its own in settings.out.
    """
    files = sorted(path for path in folder.glob("*.py") if not path.name.startswith("_"))
    if not files:
        raise FileNotFoundError(f"{folder} has no candidates (*.py)")
    rows = []
    with concurrent.futures.ThreadPoolExecutor(max_workers=max(1, settings.jobs)) as pool:
        for future in concurrent.futures.as_completed([pool.submit(judge_file, path, settings) for path in files]):
            rows.append(future.result())
            if say:
                say(rows[-1])
    return sort(rows)


def judge_file(path: Path, settings: Settings) -> Json:
    """One candidate's row. What is there from the same candidate, judged in the same way, is not judged again."""
    place = settings.out / path.stem
    key = _key(path, settings)
    if not _is_same(place, key):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        shutil.copyfile(path, place / "candidate.py")
        (place / "task.json").write_text(settings.task.text())
        (place / "key.json").write_text(json.dumps(key, indent=2) + "\n")
    if not (place / "score.json").exists():
        said = _judge(place, settings)
        if not (place / "score.json").exists():
            return row_without_score(path.stem, said)
    score = json.loads((place / "score.json").read_text())
    return row_of_score(path.stem, score, difference(score, settings.task))


def _judge(place: Path, settings: Settings) -> str:
    """Runs the cases and writes the score; returns why there is none, if there is none."""
    child = shlex.join([settings.python, "-m", "fa_verify.score.child", "candidate.py", "task.json"])
    command = [binary(), "run", "--cases", *_case_files(settings), "--backend", f"exec:{child}", "--report", "report.json"]
    command += ["--require", settings.require, "--quiet", "--no-progress", "--jobs", "1", *settings.options]
    pinned = settings.task.claims.get("arithmetic")
    if settings.untrusted and isinstance(pinned, str):
        command += ["--arithmetic", pinned]
    command += ["--untrusted"] * settings.untrusted + ["--resume"] * (place / "report.json.journal").exists()
    done = _run(command, place)
    (place / "output.txt").write_text(done.stdout + done.stderr)
    if (place / "report.json").exists():
        done = _run([binary(), "report", "report.json", "--score", "score.json"], place)
    return _last_words(done.stderr) or f"fa-verify ended with {done.returncode}"


def _last_words(stderr: str) -> str:
    """Why there is no report: what fa-verify said last, without the command, and before it the candidate's own last line."""
    *before, last = [line for line in stderr.splitlines() if line.strip()] or [""]
    why = last.rpartition("task.json: ")[2].removeprefix("fa-verify: ")
    said = re.sub(r"^candidate [^|]*\| ", "", before[-1].strip()) if before else ""  # as the wall marks what it prints
    return f"{why}: {said}" if "no hello" in why and said else why


def _run(command: Sequence[str | Path], place: Path) -> subprocess.CompletedProcess[str]:
    """In the candidate's folder, so that commands and reports name no other."""
    return subprocess.run([str(x) for x in command], cwd=place, capture_output=True, text=True, errors="replace", check=False)


def _case_files(settings: Settings) -> list[Path]:
    found = {name: case_file(name) for name in settings.cases}
    missing = [name for name, path in found.items() if path is None]
    if missing:
        raise FileNotFoundError(f"{missing[0]}: no such case file")
    return [path.resolve() for path in found.values() if path is not None]


def _key(path: Path, settings: Settings) -> Json:
    """Everything that the result depends on."""
    return {
        "candidate": hashlib.sha256(path.read_bytes()).hexdigest(),
        "cases": {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in _case_files(settings)},
        "task": dataclasses.asdict(settings.task),
        "options": [settings.require, settings.untrusted, *settings.options],
        "program": run(["--version"]).stdout.splitlines()[:1],
    }


def _is_same(place: Path, key: Json) -> bool:
    file = place / "key.json"
    return file.exists() and json.loads(file.read_text()) == json.loads(json.dumps(key))
