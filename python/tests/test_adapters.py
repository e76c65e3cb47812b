"""Adapters: what they declare is well formed and in the documentation, and those that can run here fail the cases that are
known, no more and no fewer. FA_VERIFY_ADAPTERS names the adapters to run (all that can be imported, by default)."""

import importlib.util
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fa_verify
from fa_verify._case import Case
from fa_verify.adapters import NAMES, get
from fa_verify.adapters.__main__ import table
from fa_verify.adapters._problem import Problem

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "adapters.md"
KNOWN = json.loads((Path(__file__).parent / "adapter_failures.json").read_text())
CASES = ("causal", "gqa", "window", "memeff", "softcap", "kvcache", "sinks", "masks", "mla", "topk", "quantized")
#: An element type, a size and a mask each; enough to find an adapter that does not work at all.
QUICK = "^(square_(17|64|129)|decode_1x64|group_2|append_1|plain|f32|bias_full|page_16|page_1_gqa|full|chunk_varlen|tree_star|decode|lengths)$"
SLOW = ("torch_math", "torch_flex_eager", "transformers_eager", "torch_cpu", "jax_xla", "jax_xla_half", "jax_pallas", "jax_pallas_decode", "jax_pallas_paged")
DECODE = {"family": "kvcache", "seqlen_q": 1, "seqlen_k": 8, "kvcache": {"len": [3]}}
WORDS = set(re.findall(r'^ *\{"(\w+)", ', (GUIDE.parents[2] / "gpu/contract/features.c").read_text(), re.M))  # of the protocol
LINE = re.compile(r"^([A-Z_]+)\s+(\S.*?)  exec:.*?-m fa_verify\.adapters \S+  (.*)$")


@pytest.mark.parametrize("name", NAMES)
def test_declaration(name):
    adapter = get(name).adapter
    said = adapter.declaration()
    assert adapter.name == name
    assert set(said["families"]) <= {"flash", "memeff", "flex", "kvcache"} and said["families"]
    assert set(said["dtypes"]) <= {"f16", "bf16", "f32"} and said["dtypes"]
    assert set(said["features"]) <= WORDS, "words of the protocol"
    assert len(set(adapter.features)) == len(adapter.features)
    assert "o" in said["outputs"] and set(said["outputs"]) <= {"o", "lse", "dq", "dk", "dv", "dbias", "dsinks", "dbuffers", "amax_p", "amax_o"}
    assert ("dq" in said["outputs"]) == ("backward" in said["passes"])
    assert ("lse" in said["outputs"]) == bool(adapter.lse)
    assert ("dbias" in said["outputs"]) == ("bias_grad" in adapter.features)
    assert ("dsinks" in said["outputs"]) == ("sinks_grad" in adapter.features)
    assert said["empty_o"] in ("0", "mean_v", "nan", "any")
    assert adapter.arithmetic, "how it computes is known of every one"
    json.dumps(said)


def test_no_library_is_imported_to_list_adapters():
    program = "import sys; from fa_verify.adapters import NAMES, get; [get(n) for n in NAMES]; print([m for m in ('torch', 'jax', 'triton') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=_environment())
    assert done.stdout.strip() == "[]"


def test_documentation_has_the_tables():
    page = GUIDE.read_text()
    missing = [line for line in table() if line not in page]
    assert not missing, f"{GUIDE}: print the tables again with python -m fa_verify.adapters --table; missing: {missing[:2]}"


def test_every_module_is_registered():
    modules = {path.stem for path in Path(sys.modules["fa_verify.adapters"].__file__).parent.glob("[a-z]*.py")}
    assert modules == set(NAMES)


def test_unknown_adapter():
    with pytest.raises(KeyError, match="there is no adapter 'nothing'"):
        get("nothing")


@pytest.mark.parametrize(
    "name, case, said",
    [
        ("ort_gqa", {"seqlen_q": 4}, "it is always causal"),
        ("openvino", {"seqlen_q": 4, "seqlen_k": 0}, "no rows or no keys"),
        ("openvino_static", {"seqlen_q": 4, "dtype": "bf16", "scale": 0.3}, "in bf16 its scale is a power of two"),
        ("openvino_static", {"seqlen_q": 4, "dtype": "bf16", "scale": -0.25}, True),
        ("openvino_static", {"seqlen_q": 4, "dtype": "f32", "scale": 0.3}, True),
        ("openvino_stateful", {"seqlen_q": 4, "seqlen_k": 5, "dtype": "f32"}, "it appends as many keys as there are queries"),
        ("openvino_stateful", {"seqlen_q": 4, "dtype": "f32", "scale": 1}, "without a mask its scale is the usual one"),
        ("ort_attention", {"family": "kvcache", "batch": 2, "seqlen_k": 8, "kvcache": {"len": [3, 4], "new": 1}}, "its past has one length"),
        ("ort_attention", {"family": "kvcache", "seqlen_k": 8, "kvcache": {"len": [3]}}, "some key is new"),
        ("torch_flash", {"seqlen_q": 4, "dropout": {"p": 0.1, "seed": "1", "offset": "3"}}, "PyTorch's generator takes offsets in multiples of 4"),
        ("torch_cpu", {"seqlen_q": 4}, True),
        ("fa3_fwd", {"seqlen_q": 4, "dtype": "bf16", "quantized": {"dtype": "e5m2"}}, "in 8 bits it takes e4m3, and multiples of 16 columns"),
        ("fa3_fwd", {"seqlen_q": 4, "dtype": "bf16", "head_dim": 72, "quantized": {"dtype": "e4m3"}}, "in 8 bits it takes e4m3, and multiples of 16 columns"),
        ("flashinfer_decode", {**DECODE, "quantized": {"dtype": "i8"}}, "its caches of 8 bits are of e4m3 or e5m2"),
        ("flashinfer_paged", {**DECODE, "quantized": {"dtype": "e4m3", "descale": "head"}}, "one number scales all keys of a cache in 8 bits"),
        ("cudnn_frontend_fp8", {"seqlen_q": 4}, "queries, keys and values are e4m3 with one descale each"),
        ("cudnn_frontend_fp8", {"seqlen_q": 4, "quantized": {"descale": "head", "o": "e4m3"}}, "queries, keys and values are e4m3 with one descale each"),
        ("cudnn_frontend_fp8", {"seqlen_q": 4, "quantized": {}}, "before Blackwell its O is e4m3"),
        ("cudnn_frontend_fp8", {"seqlen_q": 4, "seqlen_k": 5, "mask": {"type": "causal"}, "quantized": {"o": "e4m3"}}, "before Blackwell its masks begin at the top left"),
        ("cudnn_frontend_fp8", {"seqlen_q": 4, "mask": {"type": "causal"}, "quantized": {"o": "e4m3"}}, True),
        ("cudnn_frontend_fp8", {"seqlen_q": 4, "head_dim": 128, "head_dim_v": 256, "quantized": {"o": "e4m3"}}, True),
        ("cudnn_frontend_fp8", {"seqlen_q": 4, "head_dim": 192, "head_dim_v": 128, "quantized": {"o": "e4m3"}}, True),
        ("cudnn_frontend_fp8", {"seqlen_q": 4, "head_dim": 256, "quantized": {"o": "e4m3"}}, True),
    ],
)
def test_reasons(name, case, said):
    assert get(name).adapter.supports(Case(case)) == said


def test_a_case_may_have_an_arithmetic_of_its_own():
    case = {"seqlen_q": 4, "dtype": "bf16"}
    assert get("fa3_fwd").supports(Case(case)) == {}
    assert get("fa3_fwd").supports(Case({**case, "quantized": {"dtype": "e4m3"}}))["arithmetic"]["name"] == "fp8-sm90"


def test_gradients_that_a_backward_lacks_are_not_claimed():
    for name, lacks in (("torch_cpu", {"bias_grad", "dlse"}), ("torch_math", {"dlse"}), ("numpy_reference", {"captures_grad"})):
        assert not lacks & set(get(name).adapter.declaration()["features"]), name


@pytest.mark.parametrize(
    "case, shift, empty",
    [
        ({"seqlen_q": 5, "seqlen_k": 3, "mask": {"type": "causal"}}, -2, True),
        ({"seqlen_q": 5, "seqlen_k": 3, "mask": {"type": "causal", "align": "top_left"}}, 0, False),
        ({"seqlen_q": 3, "seqlen_k": 5, "mask": {"type": "window", "left": 1, "right": 0, "align": "top_left"}}, 0, False),
        ({"seqlen_q": 5, "seqlen_k": 3, "mask": {"type": "window", "left": 0, "right": 9, "align": "top_left"}}, 0, True),
        ({"cu_seqlens_q": [0, 2], "cu_seqlens_k": [0, 4], "seqused_k": [0]}, -2, True),
    ],
)
def test_problem(case, shift, empty):
    problem = Problem(case)
    assert problem.shift() == shift and problem.some_row_is_empty == empty


def test_a_bias_of_the_lowest_number_has_a_gradient():
    torch = pytest.importorskip("torch")
    from fa_verify.adapters.transformers_eager import _mask

    lowest = torch.finfo(torch.float16).min
    bias = torch.tensor([[[[lowest, 1.0, float("-inf")]]]], dtype=torch.float16, requires_grad=True)
    mask = _mask(torch, Problem({"seqlen_q": 1, "seqlen_k": 3}), bias, bias)
    mask.sum().backward()
    assert mask.flatten().tolist() == [lowest, 1, lowest] and bias.grad.flatten().tolist() == [1, 1, 0]


def test_expressions_are_parsed_as_c_reads_them():
    from fa_verify.adapters._expr import parse

    minus = parse("score - 2 * kv_idx", {})
    assert minus[:3] == ("binary", "float", "-") and minus[4][:2] == ("as", "float")
    chosen = parse("q_idx >= kv_idx ? score : -inf", {})
    assert chosen[:2] == ("choose", "float") and chosen[2][2] == ">=" and chosen[4][:3] == ("prefix", "float", "-")
    assert parse("t[h][q_idx - 1]", {"t": {"dtype": "i32"}})[:3] == ("read", "int", "t")
    assert parse("a || b && h == 1", {"a": {"dtype": "i32"}})[2] == "||"
    with pytest.raises(ValueError, match="column 6"):
        parse("score @ 2", {})


#: Expressions with torch's operators, at pairs (q_idx, kv_idx) whose sum of values is known.
OPERATORS = {
    "floordiv(q_idx - 5, 2)": lambda q, k: (q - 5) // 2,
    "floormod(q_idx - kv_idx, 3) + floormod(kv_idx - q_idx, -4)": lambda q, k: (q - k) % 3 + (k - q) % -4,
    "(q_idx - 5) / 2 + (q_idx - 5) % 3": lambda q, k: int((q - 5) / 2) + (q - 5) - 3 * int((q - 5) / 3),
    "(q_idx & 3) + (kv_idx | 4) + (q_idx ^ kv_idx) + ~q_idx": lambda q, k: (q & 3) + (k | 4) + (q ^ k) + ~q,
    "(q_idx << 2) + (kv_idx - 9 >> 1)": lambda q, k: (q << 2) + ((k - 9) >> 1),
    "((q_idx > 1) & ~(kv_idx > 2)) + ((q_idx > 1) ^ true)": lambda q, k: int(q > 1 and k <= 2) + int(not q > 1),
    "pow(float(q_idx), 2) + pow(2.0, kv_idx)": lambda q, k: q**2 + 2**k,
    "ceil(q_idx / 2.0) + int(-0.5 * kv_idx)": lambda q, k: math.ceil(q / 2) + int(-0.5 * k),
    "where(q_idx >= kv_idx, erf(0.5), sigmoid(score))": lambda q, k: math.erf(0.5) if q >= k else 0.5,
    "floordiv(q_idx, 0) + floormod(q_idx, q_idx - q_idx)": lambda q, k: q,
}


@pytest.mark.parametrize("text", OPERATORS)
def test_operators_of_torch(text):
    torch = pytest.importorskip("torch")
    from fa_verify.adapters._expr import parse
    from fa_verify.adapters._expr_torch import function

    q_idx, kv_idx = torch.meshgrid(torch.arange(6, dtype=torch.int32), torch.arange(7, dtype=torch.int32), indexing="ij")
    zero = torch.zeros_like(q_idx)
    found = function(torch, parse(text, {}), {}, 6, 7)(torch.zeros(6, 7), zero, zero, q_idx, kv_idx)
    wanted = [[OPERATORS[text](q, k) for k in range(7)] for q in range(6)]
    assert torch.allclose(found.to(torch.float64), torch.tensor(wanted, dtype=torch.float64))


def _environment():
    path = str(Path(fa_verify.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": os.environ.get("JAX_PLATFORMS", "cpu")}


def _asked():
    named = os.environ.get("FA_VERIFY_ADAPTERS")
    return named.split() if named else list(NAMES)


@pytest.mark.parametrize("name", _asked())
def test_failing_cases_are_the_known_ones(name):
    adapter = get(name).adapter
    absent = [module for module in adapter.modules if importlib.util.find_spec(module.split(".")[0]) is None]
    if absent:
        pytest.skip(f"{absent[0]} is not installed")
    if reason := adapter.why_not():
        pytest.skip(reason)
    cases = [str(fa_verify.cases_folder() / f"{word}.json") for word in CASES]
    quick = ["--filter", QUICK] if name in SLOW and not os.environ.get("FA_VERIFY_ADAPTERS") else []
    command = [str(fa_verify.binary()), "run", "--jobs", "1", "--backend", f"exec:{sys.executable} -m fa_verify.adapters {name}", "--cases", *cases, *quick]
    done = subprocess.run(command, capture_output=True, text=True, env=_environment(), timeout=500)
    lines = [found.groups() for found in map(LINE.match, done.stdout.splitlines()) if found]
    failing = {case for state, case, _ in lines if state not in ("PASS", "SKIP")}
    assert any(state not in ("SKIP", "ERROR") for state, _, _ in lines), done.stdout[-2000:] + done.stderr[-2000:]
    versions = KNOWN.get(name, {})
    if versions and adapter.version() not in versions:
        pytest.skip(f"{len(failing)} cases fail with {adapter.library} {adapter.version()}, of which nothing is recorded: {sorted(failing)}")
    known = set(versions.get(adapter.version(), {}))
    if quick:
        known &= {case for _, case, _ in lines}
    assert failing == known, f"new: {sorted(failing - known)}; gone: {sorted(known - failing)}"
