"""The tools that run all adapters and print what came of it: on a small adapter, and on small results."""

import importlib.util
import json
from pathlib import Path

import pytest

from fa_verify._binary import binary

TOOLS = Path(__file__).parents[1] / "tools"
CASES = Path(__file__).parents[2] / "cases"


def _tool(name):
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


gpu, tables = _tool("adapters_gpu"), _tool("adapters_table")


def _result(judged, complete=True, **more):
    return {"adapter": "torch_cpu", "library": "torch", "version": "2.11.0", "why_not": "", "judged": judged, "complete": complete, **more}


def test_a_row_says_what_came_of_an_adapter():
    states = {"PASS": 7, "FAIL": 2, "HANG": 1, "SKIP": 5}
    random = {"judged": 4, "states": {"PASS": 3, "FAIL": 1, "SKIP": 1}, "skipped": {"it has no varlen": 1}}
    found = _result(10, states=states, skipped={"it has no varlen": 3, "it has no alibi": 2}, random=random)
    assert tables.row("torch_cpu", found) == (
        "| `torch_cpu` | torch 2.11.0 | 14 | 10 | 3 FAIL, 1 HANG | 6: it has no varlen (4); it has no alibi (2) | whole |"
    )
    assert tables.how_far(_result(3, False)) == "cut short by time"
    assert tables.how_far(_result(0, False)) == "not reached: compiling"
    assert tables.how_far(_result(0, why_not="no CUDA device")) == "not here: no CUDA device"


def test_the_newest_result_with_anything_judged_counts(tmp_path):
    for folder, judged in (("a", 9), ("b", 5), ("c", 0)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "torch_cpu.json").write_text(json.dumps(_result(judged)))
    best = tables.read([tmp_path / "a", tmp_path / "b", tmp_path / "c"])
    assert best["torch_cpu"]["judged"] == 5
    assert len(tables.table(best)) == 3


def test_a_probe_is_a_row():
    text = "f32: 27 calls, 0.4 s\n  empty_o              mean_v                         certain   declared: 0!\n    row 0\n  keys                 0 to 63                        certain  \n"
    assert tables.probe_row("torch_cpu", text) == "| `torch_cpu` | f32 | 1 | empty_o: mean_v, declared 0 |"
    assert tables.probe_row("torch_cpu", "f32: not asked: it has no f32\n") == "| `torch_cpu` | - | 0 | it has no f32 |"
    assert tables.probe_row("torch_cpu", "") == "| `torch_cpu` | - | 0 | did not end in time |"


def test_the_last_line_of_a_case_counts():
    log = "\n".join(
        f"{state} {name}  exec:python3 -m fa_verify.adapters torch_cpu  {rest}"
        for state, name, rest in (("HANG", "a", "-"), ("SKIP", "b", "exec: it has no varlen"), ("PASS", "a", "fwd"), ("FAIL", "c", "o: bad  repro: x"))
    )
    assert gpu.parse(log) == {"states": {"PASS": 1, "SKIP": 1, "FAIL": 1}, "judged": 2, "skipped": {"it has no varlen": 1}, "failing": {"c": "FAIL: o: bad"}}


@pytest.fixture
def options(tmp_path):
    return ["--binary", str(binary()), "--out", str(tmp_path), "--only", "numpy_reference", "--jobs", "2", "--random", "5", "--profile", "causal"]


def test_a_run_that_is_cut_goes_on(tmp_path, options, capsys, monkeypatch):
    monkeypatch.setattr(gpu, "GRACE", 30)
    cases = ["--cases", str(CASES / "causal.json")]
    gpu.main([*options, *cases, "--seconds", "numpy_reference=2"])
    cut = json.loads((tmp_path / "numpy_reference.json").read_text())
    assert not cut["complete"] and "(cut short)" in capsys.readouterr().out
    assert gpu.main([*options, *cases]) == 0
    whole = json.loads((tmp_path / "numpy_reference.json").read_text())
    assert whole["complete"] and whole["finished"] and whole["judged"] > cut["judged"] and whole["random"]["judged"] == 5
    assert sum(whole["states"].values()) == sum(len(json.loads(file.read_text())["cases"]) for file in map(Path, cases[1:]))
    capsys.readouterr()
    assert gpu.main([*options, *cases]) == 0 and not capsys.readouterr().out, "what is finished is left out"


def test_preparing_is_remembered(tmp_path, options, capsys, monkeypatch):
    monkeypatch.setattr(gpu, "nothing_to_prepare", lambda: None)  # so that it has something to prepare
    assert gpu.main([*options, "--prepare"]) == 0
    assert "numpy_reference     prepared" in capsys.readouterr().out
    assert not gpu.needs_preparing("numpy_reference", tmp_path)
    assert gpu.main([*options, "--prepare"]) == 0 and "0 of 0" in capsys.readouterr().out
