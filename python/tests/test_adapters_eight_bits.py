"""Adapters of kernels that take 8 bits, over fakes of their libraries (eight_bit_fakes.py): what the judge lets pass then was called right."""

import sys

import pytest

import fa_verify
from fa_verify.adapters import get

torch = pytest.importorskip("torch")
if not hasattr(torch, "float8_e4m3fn"):
    pytest.skip("this torch has no floats of 8 bits", allow_module_level=True)

import eight_bit_fakes
from eight_bit_fakes import Cudnn, Fa3, FlashInfer, on_a_processor


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


@pytest.fixture
def cudnn(monkeypatch):
    from fa_verify.adapters import _cudnn

    module = Cudnn()
    _cudnn.handle.cache_clear()
    monkeypatch.setitem(sys.modules, "cudnn", module)
    monkeypatch.setattr(_cudnn, "stream", lambda: 0)
    yield module
    _cudnn.handle.cache_clear()


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


EIGHT = {"dtype": "bf16", "batch": 2, "heads_q": 4, "heads_kv": 2, "seqlen_q": 65, "seqlen_k": 130, "head_dim": 64,
         "quantized": {"dtype": "e4m3", "o": "e4m3", "amax": True}}  # fmt: skip
LEFT = {**EIGHT, "name": "left", "mask": {"type": "causal", "align": "top_left"}}


def test_cudnn_takes_what_hopper_has(cudnn):
    """Which those are is said here: a case that is refused by mistake would be one that nobody misses."""
    kernel = on_a_processor(get("cudnn_frontend_fp8"))
    taken = "^(tensors|ones|saturating|saturating_all|subnormal|vanishing|one_key|gaps|amax_saturating|large_v)$"
    report = fa_verify.check(kernel, "scaled_o", filter=taken)
    assert report.passed == report.total == 10, report
    assert all(call["scale_s"] == 256 and call["descale_s"] == 1 / 256 for call in cudnn.calls)
    assert fa_verify.check(kernel, "scaled_o").passed == 10


def test_cudnn_is_not_asked_what_it_has_no_engine_for(cudnn):
    """One query, with a mask or without: of 140 random cases an H200 built none."""
    cases = [{**EIGHT, "name": "one", "seqlen_q": 1}, {**LEFT, "seqlen_q": 1}, {**EIGHT, "name": "two", "seqlen_q": 2, "seqlen_k": 1}]
    report = fa_verify.check(on_a_processor(get("cudnn_frontend_fp8")), cases)
    assert (report.passed, report.skipped) == (1, 2), report


def test_cudnn_masks_amaxes_and_strides(cudnn):
    square = {"seqlen_q": 96, "seqlen_k": 96, "head_dim": 128}
    cases = [
        EIGHT,
        LEFT,
        {**EIGHT, **square, "mask": {"type": "causal"}},
        {**EIGHT, **square, "mask": {"type": "window", "left": 20, "right": 0}},
        {**EIGHT, "strides": {"q": {"gap": [16, 16, 48]}, "v": {"offset": 3}}},
        {**EIGHT, "head_dim": 144, "head_dim_v": 256},
    ]
    report = fa_verify.check(on_a_processor(get("cudnn_frontend_fp8")), [{**case, "name": f"case_{i}"} for i, case in enumerate(cases)])
    assert report.passed == report.total == 6, report


@pytest.mark.parametrize("name", ["descale_q", "descale_k", "descale_v", "descale_s", "scale_s", "scale_o"])
def test_a_factor_that_cudnn_is_not_given_is_found(cudnn, monkeypatch, name):
    from fa_verify.adapters import cudnn_frontend_fp8

    right = cudnn_frontend_fp8._factors
    monkeypatch.setattr(cudnn_frontend_fp8, "_factors", lambda call: {key: x * 0 + 1 if key == name else x for key, x in right(call).items()})
    with pytest.raises(fa_verify.Mismatch):
        fa_verify.check(on_a_processor(get("cudnn_frontend_fp8")), EIGHT)


def _no_saturation(graph, o, scale):
    return (o * scale).to(torch.float8_e4m3fn)


def _cut(graph, o, scale):
    bits = (o * scale).clamp(-448, 448).to(torch.float8_e4m3fn)
    past = bits.float().abs() > (o * scale).abs()
    return (bits.view(torch.uint8) - past.to(torch.uint8)).view(torch.float8_e4m3fn)


@pytest.mark.parametrize("stored, case", [(_no_saturation, "saturating"), (_cut, "subnormal")])
def test_an_o_that_cudnn_rounds_otherwise_is_found(cudnn, monkeypatch, stored, case):
    monkeypatch.setattr(eight_bit_fakes._Graph, "_stored", stored)
    with pytest.raises(fa_verify.Mismatch):
        fa_verify.check(on_a_processor(get("cudnn_frontend_fp8")), "scaled_o", filter=f"^{case}$")


def _amax_scaled(o, lse, amax):
    return o, lse, amax * 256


def _amax_not_divided(o, lse, amax):
    return o, lse, amax * 0 + 1


def _low(o, lse, amax):
    return o * 0.8, lse, amax


@pytest.mark.parametrize("wrong", [_amax_scaled, _amax_not_divided, _low])
def test_what_cudnn_computes_otherwise_is_found(cudnn, monkeypatch, wrong):
    right = eight_bit_fakes._Graph._attend
    monkeypatch.setattr(eight_bit_fakes._Graph, "_attend", lambda *given: wrong(*right(*given)))
    with pytest.raises(fa_verify.Mismatch):
        fa_verify.check(on_a_processor(get("cudnn_frontend_fp8")), {**EIGHT, "seqlen_k": 4096, "seqlen_q": 4, "fill": {"v": "v_offset"}})


def test_a_mask_from_the_other_corner_is_found(cudnn, monkeypatch):
    right = eight_bit_fakes._Graph._attend

    def shifted(graph, q, k, v, numbers):
        graph._edges = (graph._edges[0], k.shape[2] - q.shape[2])
        return right(graph, q, k, v, numbers)

    monkeypatch.setattr(eight_bit_fakes._Graph, "_attend", shifted)
    with pytest.raises(fa_verify.Mismatch):
        fa_verify.check(on_a_processor(get("cudnn_frontend_fp8")), LEFT)
