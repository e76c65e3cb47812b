"""A folder of candidates, judged by `python -m fa_verify.score`."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest
from fa_verify.score import Settings, Task, judge_folder, markdown
from fa_verify.score.__main__ import main

HERE = Path(__file__).parent / "score"
GUIDE = HERE.parents[2] / "docs" / "guide" / "benchmarks.md"

of_the_page = pytest.mark.skipif(not GUIDE.exists(), reason="the pages are not beside these tests: they are run on an installed wheel")

#: By name: the score, the verdict, how many of the eight cases were judged, and how the reason begins.
EXPECTED = {
    "right": (1, "passed", 8, ""),
    "right_model": (1, "passed", 8, ""),
    "base_2_lse": (0, "failed", 8, "8 of 8 fail: LSE in base 2"),
    "constant": (0, "failed", 8, "8 of 8 fail: output is zero"),
    "f16_sums": (0, "failed", 8, "4 of 8 fail: FAIL: o outside its bound"),
    "last_key_dropped": (0, "failed", 8, "8 of 8 fail: last key lost"),
    "nan_rows": (0, "failed", 8, "1 of 8 fail: FAIL: o has NaN or infinity in the wrong place"),
    "no_kernel": (0, "not judged", 0, "no hello: the child ended with status 1: LookupError: candidate.py has neither ModelNew"),
    "refuses_half": (0, "not judged", 6, "required judged 100%: 6 of 8 judged; an even number of keys is needed"),
    "scale_wrong": (0, "failed", 8, "8 of 8 fail: scale times 1.01"),
}


def settings(out: Path, **changed: object) -> Settings:
    task = Task.load(HERE / "task.json")
    return Settings(**{"out": out, "cases": [str(HERE / "cases.json")], "task": task, "jobs": 2, **changed})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, object]]]:
    out = tmp_path_factory.mktemp("scores")
    return out, judge_folder(HERE / "candidates", settings(out))


def test_every_candidate_gets_what_it_deserves(judged: tuple[Path, list[dict[str, object]]]) -> None:
    found = {row["name"]: row for row in judged[1]}
    assert list(found) == list(EXPECTED)  # also the order: the best first, then by name
    for name, (score, verdict, n, why) in EXPECTED.items():
        row = found[name]
        assert (row["score"], row["verdict"], row["judged"]) == (score, verdict, n), row
        assert str(row["why"]).startswith(why) and bool(row["why"]) == bool(why), row


def test_the_table_says_what_nobody_claims(judged: tuple[Path, list[dict[str, object]]]) -> None:
    lines = markdown(judged[1]).splitlines()
    assert lines[2] == "| right | 1 | passed | 1 | 8 of 8 | " + lines[2].split("|")[6].strip() + " |  |"
    (not_claimed,) = [line for line in lines if line.startswith("NOT CLAIMED by ")]
    assert "dtypes: bf16" in not_claimed and "no\\_kernel" not in not_claimed


def test_what_is_there_is_not_judged_again(tmp_path: Path) -> None:
    folder = tmp_path / "candidates"
    folder.mkdir()
    for name in ("right", "constant"):
        shutil.copy(HERE / "candidates" / f"{name}.py", folder)
    first = judge_folder(folder, settings(tmp_path / "out"))
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*/report.json")}
    (folder / "constant.py").write_text((folder / "right.py").read_text())
    again = judge_folder(folder, settings(tmp_path / "out"))
    kept = {path.parent.name: path.stat().st_mtime_ns == at for path, at in written.items()}
    assert kept == {"right": True, "constant": False}
    assert [row["score"] for row in first] == [1, 0] and [row["score"] for row in again] == [1, 1]


def test_two_runs_of_the_program_write_the_same_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "candidates"
    folder.mkdir()
    shutil.copy(HERE / "candidates" / "scale_wrong.py", folder)
    arguments = [str(folder), "--cases", str(HERE / "cases.json"), "--task", str(HERE / "task.json"), "--out"]
    tables = []
    for out in (tmp_path / "a", tmp_path / "b"):
        assert main([*arguments, str(out)]) == 0
        tables.append(capsys.readouterr().out)
        score = json.loads((out / "scale_wrong" / "score.json").read_text())
        assert score["fa_score"] == 1 and score["score"]["value"] == 0
        assert json.loads((out / "table.json").read_text())["candidates"][0]["name"] == "scale_wrong"
        assert (out / "table.md").read_text() == tables[-1]
    assert tables[0] == tables[1]
    assert (tmp_path / "a/scale_wrong/score.json").read_bytes() == (tmp_path / "b/scale_wrong/score.json").read_bytes()


def test_what_cannot_be_called_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "candidates"
    folder.mkdir()
    (folder / "odd.py").write_text("def attention(q, k, v, block_table):\n    return q\n")
    (row,) = judge_folder(folder, settings(tmp_path / "out"))
    assert row["score"] == 0 and "'block_table'" in row["why"]
    with pytest.raises(FileNotFoundError, match="no candidates"):
        judge_folder(tmp_path / "out", settings(tmp_path / "out"))
    (tmp_path / "task.json").write_text('{"layuot": "bhsd"}')
    assert main([str(folder), "--task", str(tmp_path / "task.json"), "--out", str(tmp_path / "out")]) == 2


@of_the_page
def test_the_page_for_benchmarks_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ten lines of docs/guide/benchmarks.md, and its table."""
    page = GUIDE.read_text()
    (lines,) = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    assert len([line for line in lines.splitlines() if line.strip()]) <= 10
    for name in ("cases.json", "task.json"):
        shutil.copy(HERE / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    found: dict[str, object] = {}
    exec(compile(lines, "benchmarks.md", "exec"), found)  # noqa: S102
    is_right = found["is_right"]
    assert callable(is_right)
    assert is_right(str(HERE / "candidates" / "right.py")) == (True, "")
    assert is_right(str(HERE / "candidates" / "last_key_dropped.py")) == (False, "8 of 8 fail: last key lost")


@of_the_page
def test_the_page_for_benchmarks_has_the_table(judged: tuple[Path, list[dict[str, object]]]) -> None:
    page = GUIDE.read_text()
    without_figures = [re.sub(r"\| [0-9.e+]+ \| (?=[^|]*\|$)", "| | ", line) for line in markdown(judged[1]).splitlines() if line.startswith("| ")]
    shown = [re.sub(r"\| [0-9.e+]+ \| (?=[^|]*\|$)", "| | ", line) for line in page.splitlines() if line.startswith("| ")]
    assert [line for line in without_figures if line not in shown] == []


def test_a_candidate_cannot_choose_its_contract(tmp_path: Path) -> None:
    folder = tmp_path / "candidates"
    folder.mkdir()
    right = (HERE / "candidates" / "right.py").read_text()
    (folder / "claims_less.py").write_text(
        f"{right}\n\nfrom fa_verify.score import _candidate\n"
        "whole = _candidate.kernel\n"
        "_candidate.kernel = lambda **options: whole(**{**options, 'dtypes': ['f32']})\n"
    )
    (row,) = judge_folder(folder, settings(tmp_path / "out", require="1%"))
    assert (row["score"], row["verdict"]) == (0, "failed")
    assert row["why"] == "its dtypes are f32, not the task's f16 f32"


def test_a_module_of_torch_is_called_without_gradients(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    folder = tmp_path / "candidates"
    folder.mkdir()
    (folder / "module.py").write_text(
        "import torch\n"
        "class Model(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.one = torch.nn.Parameter(torch.ones(()))\n"
        "    def forward(self, q, k, v):\n"
        "        return torch.nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float()) * self.one\n"
    )
    task = Task(arrays="torch", claims={"families": ["flash"], "arithmetic": "torch-math"})
    cases = tmp_path / "cases.json"
    cases.write_text('{"fa_cases": 1, "cases": [{"name": "plain", "seqlen_q": 50, "heads_q": 2, "backward": false}]}')
    (row,) = judge_folder(folder, settings(tmp_path / "out", task=task, cases=[str(cases)], python=sys.executable))
    assert (row["verdict"], row["judged"]) == ("passed", 1), row
