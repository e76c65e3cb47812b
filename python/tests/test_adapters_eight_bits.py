"""Adapters of kernels that take 8 bits, over fakes of their libraries (eight_bit_fakes.py): what the judge lets pass then was called right."""

import sys

import pytest

import fa_verify
from fa_verify.adapters import get

torch = pytest.importorskip("torch")
if not hasattr(torch, "float8_e4m3fn"):
    pytest.skip("this torch has no floats of 8 bits", allow_module_level=True)

from eight_bit_fakes import Fa3, FlashInfer, on_a_processor


@pytest.fixture
def fa3(monkeypatch):
    module = Fa3()
    monkeypatch.setitem(sys.modules, "fa3_fwd_interface", module)
    return module


@pytest.fixture
def flashinfer(monkeypatch):
    module = FlashInfer()
    monkeypatch.setitem(sys.modules, "flashinfer", module)
    monkeypatch.setattr("fa_verify.adapters._flashinfer.workspace", lambda: None)
    return module


def test_fa3_is_given_a_descale_for_each_sequence_and_head(fa3):
    kernel = on_a_processor(get("fa3_fwd"))
    report = fa_verify.check(kernel, "quantized", filter="^(tensors|heads|powers|edges|packed|softcap|head_dim_256|flat)$")
    assert report.passed == report.total == 8, report
    spread = [call for call in fa3.calls if call["k_descale"].stride() == (0, 0)]
    assert spread and len(spread) < len(fa3.calls)


def test_fa3_over_a_cache_in_8_bits(fa3):
    case = {"family": "kvcache", "dtype": "bf16", "batch": 3, "heads_q": 4, "heads_kv": 2, "seqlen_q": 2, "seqlen_k": 64, "head_dim": 64,
            "mask": {"type": "causal"}, "kvcache": {"len": [40, 7, 62], "new": 2, "batch_idx": [3, 0, 1]}, "quantized": {"dtype": "e4m3", "queries": True, "descale": "head"}}  # fmt: skip
    assert fa_verify.check(on_a_processor(get("fa3_fwd")), case).passed == 1
    assert fa3.calls and all(call["v_descale"].shape == (3, 2) for call in fa3.calls)


def test_fa3_without_8_bits_has_no_descales(fa3):
    assert fa_verify.check(on_a_processor(get("fa3_fwd")), {"dtype": "bf16", "seqlen_q": 9}).passed == 1
    assert fa3.calls and all(call == {} for call in fa3.calls)


@pytest.mark.parametrize("name", ["q_descale", "v_descale"])
def test_a_descale_that_is_left_out_is_found(fa3, monkeypatch, name):
    from fa_verify.adapters import fa3_fwd

    right = fa3_fwd._descales
    monkeypatch.setattr(fa3_fwd, "_descales", lambda p, call: {key: torch.ones_like(x) if key == name else x for key, x in right(p, call).items()})
    with pytest.raises(fa_verify.Mismatch):
        fa_verify.check(on_a_processor(get("fa3_fwd")), "quantized", filter="^heads$")


def test_one_accumulator_of_13_bits_is_found(fa3, monkeypatch):
    """What FlashAttention 3 does to V of one sign: the sum over all keys loses, at 20,000 keys, a fifth."""
    import eight_bit_fakes

    right = eight_bit_fakes.attend

    def low(q, k, *rest):
        o, lse = right(q, k, *rest)
        return o * (1 - 0.2 * k.shape[0] / 20000), lse

    monkeypatch.setattr(eight_bit_fakes, "attend", low)
    kernel = on_a_processor(get("fa3_fwd"))
    for name in ("one_sign", "one_sign_equal"):
        with pytest.raises(fa_verify.Mismatch):
            fa_verify.check(kernel, "quantized", filter=f"^{name}$")


def test_flashinfer_decodes_over_8_bits(flashinfer):
    cases = [
        {"name": f"{dtype}_{kind}_{page}", "family": "kvcache", "dtype": dtype, "batch": 2, "heads_q": 4, "heads_kv": 2, "seqlen_q": 1, "seqlen_k": 96, "head_dim": 64,
         "kvcache": {"len": [77, 31], **({"page_size": page} if page else {})}, "quantized": {"dtype": kind}}  # fmt: skip
        for dtype, kind, page in (("f16", "e4m3", 16), ("bf16", "e4m3", 0), ("f16", "e5m2", 0))
    ]
    assert fa_verify.check(on_a_processor(get("flashinfer_decode")), cases).passed == 3
    assert all(k_scale != v_scale and k_scale for k_scale, v_scale, _ in flashinfer.calls)


def test_flashinfer_says_that_parts_of_o_are_rounded(flashinfer):
    """Bits that an H200 gave: three roundings to bf16, and 1.14 of a bound that knows of two."""
    case = {"family": "kvcache", "dtype": "bf16", "batch": 2, "heads_q": 8, "heads_kv": 2, "seqlen_q": 1, "seqlen_k": 192, "head_dim": 128,
            "kvcache": {"len": [150, 77], "page_size": 32}, "quantized": {"dtype": "e4m3"}, "fill": "logits_4x"}  # fmt: skip
    kernel = on_a_processor(get("flashinfer_decode"))
    assert fa_verify.check(kernel, case).passed == 1
    silent = {key: value for key, value in kernel.adapter.arithmetic.items() if key != "partials"}
    with pytest.raises(fa_verify.Mismatch):
        fa_verify.check(on_a_processor(kernel, arithmetic=silent), case)


def test_flashinfer_prefills_over_8_bits(flashinfer):
    case = {"family": "kvcache", "dtype": "bf16", "batch": 2, "heads_q": 4, "heads_kv": 2, "seqlen_q": 5, "seqlen_k": 96, "head_dim": 64,
            "mask": {"type": "causal"}, "softcap": 5, "kvcache": {"len": [77, 31], "page_size": 16}, "quantized": {"dtype": "e4m3"}}  # fmt: skip
    assert fa_verify.check(on_a_processor(get("flashinfer_paged")), case).passed == 1
    assert {kind for *_, kind in flashinfer.calls} == {torch.float8_e4m3fn}


@pytest.mark.parametrize("name", ["k_scale", "v_scale"])
def test_a_scale_of_a_cache_that_is_left_out_is_found(flashinfer, monkeypatch, name):
    from fa_verify.adapters import _flashinfer

    right = _flashinfer.scales
    monkeypatch.setattr(_flashinfer, "scales", lambda p, call: {**right(p, call), name: 1.0})
    case = {"family": "kvcache", "batch": 2, "seqlen_q": 1, "seqlen_k": 96, "head_dim": 64, "kvcache": {"len": [77, 31]}, "quantized": {"dtype": "e4m3"}}
    with pytest.raises(fa_verify.Mismatch):
        fa_verify.check(on_a_processor(get("flashinfer_decode")), case)


def test_a_cache_without_8_bits_has_no_scales(flashinfer):
    case = {"family": "kvcache", "seqlen_q": 1, "seqlen_k": 16, "head_dim": 64, "kvcache": {"len": [9]}}
    assert fa_verify.check(on_a_processor(get("flashinfer_decode")), case).passed == 1
    assert {call[:2] for call in flashinfer.calls} == {(None, None)}
