"""The pytest plugin, run by pytest in a folder of its own."""

import importlib.metadata
from pathlib import Path

import pytest

KERNELS = (Path(__file__).parent / "kernels.py").read_text()


def run_pytest(pytester: pytest.Pytester, text: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(kernels=KERNELS, test_it=f"import kernels, pytest\n{text}")
    installed = [entry.value for entry in importlib.metadata.entry_points(group="pytest11")]
    plugin = [] if "fa_verify.pytest_plugin" in installed else ["-p", "fa_verify.pytest_plugin"]
    return pytester.runpytest_subprocess(*plugin, *options)


def test_one_test_for_all_cases(pytester: pytest.Pytester) -> None:
    result = run_pytest(
        pytester,
        """
@pytest.mark.fa_verify(cases="causal", filter="^square_1")
def test_attention():
    return kernels.attention
""",
    )
    result.assert_outcomes(passed=1)


def test_one_test_for_each_case(pytester: pytest.Pytester) -> None:
    result = run_pytest(
        pytester,
        """
@pytest.fixture
def kernel():
    return kernels.attention

@pytest.mark.fa_verify(cases="causal", filter="^square_1", split="case")
def test_attention(kernel):
    pass
""",
        "-v",
    )
    result.assert_outcomes(passed=10)
    result.stdout.fnmatch_lines(["*test_attention[[]square_127[]] PASSED*"])


def test_a_failure_is_the_diagnosis_and_no_traceback(pytester: pytest.Pytester) -> None:
    result = run_pytest(
        pytester,
        """
@pytest.mark.fa_verify(cases=[{"name": "small", "seqlen_q": 8}, {"name": "wide", "seqlen_q": 9, "mask": {"type": "window"}}], split="case")
def test_attention():
    return kernels.scaled
""",
        "-rs",
    )
    result.assert_outcomes(failed=1, skipped=1)
    result.stdout.fnmatch_lines(["*FAIL small*", "*all over*", "*again: fa_verify.check(scaled*", "SKIPPED*it has no window*"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_random_cases_one_by_one_in_several_processes(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    result = run_pytest(
        pytester,
        """
@pytest.mark.fa_verify(cases="causal", count=6, split="case", seed=40)
def test_attention():
    return kernels.attention
""",
        "-n",
        "2",
    )
    outcomes = result.parseoutcomes()
    assert outcomes.get("passed", 0) + outcomes.get("skipped", 0) == 6 and outcomes.get("passed", 0) > 0


def test_a_wrong_argument_is_named(pytester: pytest.Pytester) -> None:
    result = run_pytest(pytester, '@pytest.mark.fa_verify(case="causal")\ndef test_attention(): pass')
    result.stdout.fnmatch_lines(["*fa_verify marker: *case*it has cases, count*"])
