"""The machine code of the worked example in Triton, made without a GPU: no tile of V lies where a tile of K did. ptxas 12.8.93 loses where V begins
there, and O is garbage from the 16th key on: docs/findings.md#triton-narrow-values."""

import importlib.util
import pathlib
import re

import pytest

triton = pytest.importorskip("triton")
compiler = pytest.importorskip("triton.compiler")
backends = pytest.importorskip("triton.backends.compiler")

EXAMPLE = pathlib.Path(__file__).resolve().parents[1] / "fa_verify/adapters/_triton_example.py"
POINTERS = {"Q": "*bf16", "K": "*bf16", "V": "*bf16", "O": "*bf16", "L": "*fp32"}
TOGETHER = "k, v = _tile(k_base, j, columns, sk, d, k_s), _tile(v_base, j, v_columns, sk, dv, v_s)"
LATE = ("k = _tile(k_base, j, columns, sk, d, k_s)", "        shrink =", "        v = _tile(v_base, j, v_columns, sk, dv, v_s)\n        shrink =")


def ptx(path: pathlib.Path, d: int, dv: int) -> str:
    """The forward for an H100, of tiles so wide, for strides of which nothing is known."""
    spec = importlib.util.spec_from_file_location("example", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    fixed = {"CAUSAL": True, "M": 64, "N": 64, "D": d, "DV": dv}
    names = module.forward.arg_names
    signature = {name: "constexpr" if name in fixed else POINTERS.get(name, "fp32" if name == "scale" else "i32") for name in names}
    aligned = {(names.index(name),): [["tt.divisibility", 16]] for name in POINTERS}
    source = compiler.ASTSource(module.forward, signature, fixed, aligned)
    return triton.compile(source, target=backends.GPUTarget("cuda", 90, 32)).asm["ptx"]


def shared_by_two(text: str) -> list[str]:
    """The addresses that matrix descriptors of two layouts begin at: their upper halves differ."""
    layouts: dict[str, set[int]] = {}
    for base, number in re.findall(r"(?:or\.b64|add\.s64)\s+%rd\d+, (%rd\d+), (-?\d{15,});", text):
        layouts.setdefault(base, set()).add(int(number) >> 32)
    assert layouts, "no descriptor was found"
    return [base for base, halves in layouts.items() if len(halves) > 1]


@pytest.mark.parametrize(("d", "dv"), [(64, 16), (64, 32), (128, 16), (128, 32), (32, 16)])
def test_no_tile_of_v_lies_where_one_of_k_did(d: int, dv: int) -> None:
    assert not shared_by_two(ptx(EXAMPLE, d, dv))


def test_a_late_v_is_noticed(tmp_path: pathlib.Path) -> None:
    """What the example was before."""
    text = EXAMPLE.read_text()
    assert TOGETHER in text
    late = tmp_path / "late.py"
    late.write_text(text.replace(TOGETHER, LATE[0]).replace(LATE[1], LATE[2]))
    assert shared_by_two(ptx(late, 64, 16))
