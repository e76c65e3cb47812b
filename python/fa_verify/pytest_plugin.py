"""pytest: a test function that returns a kernel, or has a fixture `kernel`, becomes tests of that kernel.

    @pytest.mark.fa_verify(cases="causal", count=50, split="case")
    def test_attention():
        return attention

split="batch" (the default) makes one test of all cases, split="case" one of each. The other arguments are those of
:func:`fa_verify.check`. A test fails with the diagnosis, without a traceback; with split="case" a case that the kernel
does not take is skipped, unless require says otherwise.
"""

from __future__ import annotations

import inspect
import json
import re
from typing import Any

import pytest

from fa_verify._binary import MachineFailed, case_file, run
from fa_verify._check import check
from fa_verify._report import Mismatch, NotJudged

_PARAMETER = "fa_verify_case"
_OPTIONS = tuple(name for name in inspect.signature(check).parameters if name != "kernel")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        'fa_verify(cases="causal", count=None, split="batch", ...): judge the kernel that the test returns, or its fixture `kernel`; '
        f"arguments: {', '.join(_OPTIONS)}, split",
    )


def _arguments(marker: pytest.Mark) -> dict[str, Any]:
    given: dict[str, Any] = {**dict(zip(("cases", "count"), marker.args)), **marker.kwargs}
    unknown = set(given) - {*_OPTIONS, "split"}
    if unknown or given.get("split", "batch") not in ("batch", "case"):
        raise pytest.UsageError(
            f'fa_verify marker: {sorted(unknown) or given["split"]}; it has {", ".join(_OPTIONS)} and split, "batch" or "case"'
        )
    return given


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = metafunc.definition.get_closest_marker("fa_verify")
    if marker is None or _arguments(marker).get("split") != "case":
        return
    single = _single_cases(_arguments(marker))
    metafunc.fixturenames.append(_PARAMETER)
    metafunc.parametrize(_PARAMETER, list(single.values()), ids=list(single))


def _single_cases(given: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """{name: arguments of check for that case alone}. Random cases are told apart by their seeds."""
    cases, count = given.get("cases", "causal"), given.get("count")
    if not isinstance(cases, str) or (count is None and case_file(cases) is not None):
        words = ["--cases", str(case_file(cases))] if isinstance(cases, str) else [w for c in cases for w in ("--case", json.dumps(c))]
        wanted = re.compile(given.get("filter") or "")
        listed = [json.loads(line) for line in _listed(words)]
        return {
            case.get("name", f"case{i}"): {"cases": case, "filter": None}
            for i, case in enumerate(listed)
            if wanted.search(case.get("name", ""))
        }
    first = given.get("seed", 1)
    return {f"{cases}-{seed}": {"seed": seed, "count": 1} for seed in range(first, first + (count or 200))}


def _listed(words: list[str]) -> list[str]:
    done = run(["list", "cases", *words])
    if done.returncode:
        raise MachineFailed(done.stderr.strip())
    return done.stdout.splitlines()


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    marker = pyfuncitem.get_closest_marker("fa_verify")
    if marker is None:
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    fixtures = {name: pyfuncitem.funcargs[name] for name in names}
    returned = pyfuncitem.obj(**fixtures)
    kernel = returned if returned is not None else fixtures.get("kernel")
    if not callable(kernel):
        raise pytest.UsageError(f"{pyfuncitem.name} must return a kernel, or have a fixture named kernel")
    given = _arguments(marker)
    split = given.pop("split", "batch")
    if split == "case":
        single: Any = pyfuncitem.callspec.params[_PARAMETER]
        given |= single
    try:
        check(kernel, **given)
    except NotJudged as short:
        if split == "case" and given.get("require") is None:
            pytest.skip("; ".join(short.report.skip_reasons) or "not judged")
        pytest.fail(str(short), pytrace=False)
    except Mismatch as wrong:
        pytest.fail(str(wrong), pytrace=False)
    return True
