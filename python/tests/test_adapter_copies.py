"""What adapters copy before a call, and back behind it, on tensors that are none: only shapes, strides and what is asked of them."""

import sys
from types import SimpleNamespace

import pytest

from fa_verify.adapters import get
from fa_verify.adapters._flashinfer import caches
from fa_verify.adapters._torch import aligned


class _Tensor:
    """A 16-bit tensor that says where it is, and cannot be written to."""

    def __init__(self, strides, address=0):
        self._strides, self._address = strides, address

    def stride(self, axis=None):
        return self._strides if axis is None else self._strides[axis]

    def data_ptr(self):
        return self._address

    def element_size(self):
        return 2

    def clone(self, memory_format):
        return _Tensor((4096, 64, 64, 1))

    def copy_(self, other):
        raise RuntimeError("more than one element of the written-to tensor refers to a single memory location")


PLAIN = (4096, 64, 64, 1)


@pytest.fixture(autouse=True)
def _torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(contiguous_format=None))
    monkeypatch.delenv("FA_VERIFY_ALIGN", raising=False)


@pytest.mark.parametrize("strides, address", [(PLAIN, 2), ((4356, 66, 66, 1), 0), ((4096, 64, 64, 2), 0)])
def test_rows_that_do_not_begin_at_16_bytes_are_copied(strides, address, monkeypatch):
    x = _Tensor(strides, address)
    assert aligned(x) is not x and aligned(x).stride() == PLAIN
    monkeypatch.setenv("FA_VERIFY_ALIGN", "0")
    assert aligned(x) is x


@pytest.mark.parametrize("k, v", [(PLAIN, (4608, 72, 72, 1)), ((4096, 64, 8, 1), PLAIN), (PLAIN, (4096, 0, 64, 1))])
def test_caches_of_flashinfer_have_one_set_of_strides(k, v, monkeypatch):
    call = SimpleNamespace(k=_Tensor(k), v=_Tensor(v))
    assert [x.stride() for x in caches(call)] == [PLAIN, PLAIN]
    monkeypatch.setenv("FA_VERIFY_ALIGN", "0")
    assert [x.stride() for x in caches(call)] == [PLAIN, PLAIN]


def test_caches_that_are_alike_stay_where_they_are():
    call = SimpleNamespace(k=_Tensor(PLAIN), v=_Tensor(PLAIN))
    assert caches(call) == (call.k, call.v)


@pytest.mark.parametrize("new", [0, 1])
def test_a_copy_of_a_cache_goes_back_where_something_was_appended(new, monkeypatch):
    """fa3_fwd: an expanded cache cannot be written to, and need not be."""
    library = SimpleNamespace(flash_attn_with_kvcache=lambda *a, **k: ("o", "lse"))
    monkeypatch.setitem(sys.modules, "fa3_fwd_interface", library)
    case = {"family": "kvcache", "dtype": "bf16", "seqlen_k": 16, "kvcache": {"len": [5], "new": new}}
    none = dict.fromkeys(("k_new", "v_new", "rotary_cos", "rotary_sin", "cache_seqlens", "cache_batch_idx", "leftpad_k"))
    call = SimpleNamespace(json=case, q=_Tensor(PLAIN), k=_Tensor((0, 66, 66, 1)), v=_Tensor(PLAIN), **none)
    run = get("fa3_fwd").adapter.run
    if new:
        with pytest.raises(RuntimeError, match="more than one element"):
            run(call)
    else:
        assert run(call).o == "o"
