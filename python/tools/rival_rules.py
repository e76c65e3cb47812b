#!/usr/bin/env python3
"""What other checkers say of the findings: each finding's script runs, and the rule by which its library's own tests compare, and
numpy.allclose as it comes, are applied to the `got` and `want` that it leaves.

    python3 python/tools/rival_rules.py                 # prints a line for each finding whose library is installed here
    python3 python/tools/rival_rules.py --write NAME... # and keeps what they say in the entries (all, without a name)

"missed": the rule accepts the wrong output. "caught": it does not. Of a script that leaves no numbers (a crash) nothing is asked.
That a rule would catch an output is no praise of the tests: the input must be among theirs too."""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import io
import json
import pathlib
import sys
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from findings_entries import Finding, entries

#: Absolute and relative tolerance by type of the output, of |got - want| <= a + r |want|, and where it was read.
#: "*" stands for every type that has no row.
RULES: dict[str, dict[str, Any]] = {
    "onnxruntime-mha": {
        "source": "onnxruntime/test/contrib_ops/multihead_attention_op_test.cc: abs_error, rel_error of AddOutput",
        "float32": (0.02, 0.0),
        "float16": (0.05, 0.0),
    },
    "onnxruntime": {
        "source": "onnxruntime/test/unittest_util/checkers.cc: DefaultTolerance, which tests without a tolerance of their own use",
        "float32": (1e-5, 1e-4),
        "float16": (0.0025, 0.001),
    },
    "openvino": {
        "source": "src/tests/test_utils/common_test_utils: calculate_default_abs_threshold, calculate_default_rel_threshold of f32",
        "*": (2.0**-23, 1e-4),
    },
    "openvino-bf16": {
        "source": "the same of an inference in bf16, and rel_threshold of the CPU plugin's custom/single_layer_tests/classes/scaled_attn.cpp",
        "*": (2.0**-7, 2e-2),
    },
    "ggml": {
        "source": "tests/test-backend-ops.cpp: max_nmse_err of test_flash_attn_ext, a bound on the mean squared error as a part of the mean square",
        "*": ("nmse", 5e-4),
    },
    "torch-cpu": {
        "source": "test/test_transformers.py: test_scaled_dot_product_fused_attention_mask_vs_math_cpu; of flex_attention the same",
        "float32": (1e-5, 5e-6),
        "*": (5e-2, 5e-2),
    },
    "torch-cuda": {
        "source": "test/test_transformers.py: default_atol, default_rtol by type, where its tests of fused attention begin; scripts keep bf16 as float32",
        "float16": (1e-3, 1e-3),
        "*": (1e-3, 1.6e-2),
    },
    "flash-attn": {
        "source": "tests/test_flash_attn.py: twice the error of PyTorch in the same type; taken here as more than that",
        "*": (2.0**-6, 2.0**-6),
    },
    "cudnn": {
        "source": "test/python/test_mhas.py of cudnn-frontend: atol, rtol of the forward",
        "*": (2e-2, 2e-2),
    },
    "cudnn-fp8": {
        "source": "test/python/sdpa/fp8.py of cudnn-frontend: atol, rtol of the forward in e4m3",
        "*": (0.08, 0.2),
    },
    "sageattention": {
        "source": "its repository tests nothing; its paper gives cosine similarities, for which this stands",
        "*": (5e-2, 5e-2),
    },
    "flashinfer": {
        "source": "tests/attention: rtol, atol of test_batch_prefill_kernels.py",
        "*": (1e-3, 1e-3),
    },
    "triton": {
        "source": "python/tutorials/06-fused-attention.py: test_op",
        "*": (1e-2, 0.0),
    },
    "jax": {
        "source": "tests/nn_test.py: testDotProductAttention",
        "*": (1e-2, 1e-2),
    },
}
ALLCLOSE = (1e-8, 1e-5)


def accepts(got: Any, want: Any, absolute: float | str, relative: float) -> bool:
    """As numpy.allclose with equal_nan, but of want's relative size and in float64. absolute "nmse": the errors' squares are at most so
    large a part of want's."""
    import numpy as np

    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    if absolute == "nmse":
        return bool(((got - want) ** 2).sum() <= relative * (want**2).sum())
    with np.errstate(invalid="ignore"):
        near = abs(got - want) <= absolute + relative * abs(want)
    return bool(np.all(near | (got == want) | (np.isnan(got) & np.isnan(want))))


def outputs(script: pathlib.Path) -> tuple[int, str, dict[str, Any]]:
    """Exit code, what was printed, and what a script left: its globals."""
    left: dict[str, Any] = {"__name__": "__main__", "__file__": str(script)}
    printed, code = io.StringIO(), 0
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(script.read_text(encoding="utf-8"), str(script), "exec"), left)
    except SystemExit as e:
        code = e.code if isinstance(e.code, int) else 1
    return code, printed.getvalue(), left


def verdicts(finding: Finding) -> dict[str, str] | None:
    """What the library's own rule ("own") and numpy.allclose say. None: the script leaves no numbers."""
    _, _, left = outputs(finding.script)
    if not all(hasattr(left.get(name), "__array_interface__") for name in ("got", "want")):
        return None  # a crash, or what a dead device still holds
    rule = RULES[finding.data["rule"]]
    name = str(left["got"].dtype)
    tolerances = {"own": rule.get(name) or rule["*"], "allclose": ALLCLOSE}
    return {key: "missed" if accepts(left["got"], left["want"], *pair) else "caught" for key, pair in tolerances.items()}


def why_not(finding: Finding) -> str:
    """Why a script cannot show its finding here; empty if it can: another version of the library need not have it."""
    try:
        version = importlib.metadata.version(finding.data["library"])
    except importlib.metadata.PackageNotFoundError:
        return f"{finding.data['library']} is not installed"
    if version != finding.data["version"]:
        return f"{finding.data['library']} {version} is installed, not {finding.data['version']}"
    needed = finding.data.get("needs", "")
    if needed == "gpu":
        return "" if pathlib.Path("/dev/nvidiactl").exists() else "there is no NVIDIA GPU here"
    return f"this processor has no {needed}" if needed and needed not in flags() else ""


def flags() -> set[str]:
    """What /proc/cpuinfo says that the processor has."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n")
    except OSError:
        return set()
    return {flag for line in lines if line.startswith("flags") for flag in line.split(":", 1)[1].split()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", action="store_true", help="keep what they say in the entries")
    asked = parser.parse_args()
    for finding in entries():
        if asked.names and finding.name not in asked.names:
            continue
        if reason := why_not(finding):
            print(f"{finding.name}: not asked: {reason}")
            continue
        said = verdicts(finding) or {"own": "no numbers", "allclose": "no numbers"}
        print(f"{finding.name}: own {said['own']}, allclose {said['allclose']}")
        if asked.write:
            data = {**finding.data, "rivals": said}
            finding.entry.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
