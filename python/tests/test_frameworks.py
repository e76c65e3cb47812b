"""Tensors as arrays of torch and jax: types, strides, values, and back. Each is skipped where the framework is not there."""

import numpy as np
import pytest

import fa_verify
from fa_verify import _guarded
from fa_verify._arrays import Host, Tensor, store
from fa_verify._dtypes import STORAGE, f32_to_bf16

TYPES = ("f16", "bf16", "f32")


def tensor(dtype: str, access: str = "read") -> Tensor:
    """[2, 3, 4] with gaps after each row: 0, 1, 2 ..."""
    memory = np.arange(36, dtype=np.float32)
    stored = f32_to_bf16(memory) if dtype == "bf16" else memory.astype(STORAGE[dtype])
    size = stored.itemsize
    return Tensor("x", dtype, np.ndarray((2, 3, 4), stored.dtype, stored, 0, (18 * size, 6 * size, size)), access)


VALUES = np.lib.stride_tricks.as_strided(np.arange(36, dtype=np.float32), (2, 3, 4), (72, 24, 4))


@pytest.mark.parametrize("dtype", TYPES)
def test_torch_sees_the_memory_itself(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    x = tensor(dtype, "write")
    shown = Host("torch").show(x)
    assert shown.dtype == {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}[dtype]
    assert shown.stride() == (18, 6, 1) and np.array_equal(shown.float().numpy(), VALUES)
    shown[1, 2, 3] = 64
    assert x.storage[1, 2, 3] == (0x4280 if dtype == "bf16" else 64)


@pytest.mark.parametrize("dtype", TYPES)
def test_torch_comes_back(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    x = tensor(dtype, "write")
    before = x.storage.copy()
    for value in (torch.tensor(VALUES.copy()), torch.tensor(VALUES.copy()).bfloat16(), torch.tensor(VALUES.copy(), requires_grad=True)):
        x.storage[...] = 0
        store(x, value)
        assert np.array_equal(x.storage, before)


@pytest.mark.parametrize("dtype", TYPES)
def test_torch_in_guarded_memory(dtype: str) -> None:
    pytest.importorskip("torch")
    place, x, y = _guarded.Guarded("torch", "cpu"), tensor(dtype), tensor(dtype, "write")
    y.name = "y"
    shown, out = place.show(x), place.show(y)
    assert shown.stride() == (18, 6, 1) and np.array_equal(shown.float().numpy(), VALUES)
    out[...] = shown * 2
    assert place.finish([x, y]) is None and place.show(x) is shown
    assert y.storage[0, 0, 1] == (0x4000 if dtype == "bf16" else 2)
    out.as_strided((1,), (1,), out.storage_offset() + 4)[0] = 1
    assert place.finish([x, y]) == ("oob", f"y: written into a gap between its elements, at byte {4 * x.storage.itemsize}, on the device")


@pytest.mark.parametrize("dtype", TYPES)
def test_jax_gets_copies_and_comes_back(dtype: str) -> None:
    jnp = pytest.importorskip("jax.numpy")
    x, y = tensor(dtype), tensor(dtype, "write")
    shown = Host("jax").show(x)
    assert shown.dtype == {"f16": jnp.float16, "bf16": jnp.bfloat16, "f32": jnp.float32}[dtype]
    assert np.array_equal(np.asarray(shown, np.float32), VALUES)
    y.storage[...] = 0
    store(y, shown)
    assert np.array_equal(x.storage, y.storage)


def test_a_kernel_in_torch_is_judged() -> None:
    torch = pytest.importorskip("torch")

    @fa_verify.kernel(causal=True, gqa=True, arrays="torch", arithmetic="recorded")
    def kernel(call):
        q, k, v = (x.float().transpose(1, 2) for x in (call.q, call.k, call.v))
        k, v = (x.repeat_interleave(call.group, 1) for x in (k, v))
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=call.causal, scale=call.scale).transpose(1, 2)

    assert fa_verify.check(kernel, "causal", filter="^square_1", require="all").passed == 10


def test_a_kernel_in_jax_is_judged() -> None:
    jnp = pytest.importorskip("jax.numpy")

    @fa_verify.kernel(causal=True, arrays="jax", arithmetic="recorded")
    def kernel(call):
        q, k, v = (x.astype(jnp.float32) for x in (call.q, call.k, call.v))
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k) * call.scale
        s = jnp.where(jnp.tri(call.seqlen_q, call.seqlen_k, call.seqlen_k - call.seqlen_q, dtype=bool), s, -jnp.inf)
        p = jnp.exp(s - s.max(-1, keepdims=True))
        return jnp.einsum("bhqk,bkhd->bqhd", p / p.sum(-1, keepdims=True), v)

    assert fa_verify.check(kernel, "causal", filter="^square_1", require="all").passed == 10


def test_a_device_that_is_missing_is_no_verdict() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a device")
    kernel = fa_verify.kernel(arrays="torch", device="cuda:0")(lambda call: None)
    with pytest.raises(fa_verify.MachineFailed, match="(?i)cuda|nvidia"):
        fa_verify.check(kernel, {})


def test_torch_tensors_are_judged() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    q, k, v = (torch.randn(1, 2, 40, 64, dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
    o = torch.nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float()).bfloat16()
    assert fa_verify.judge(q=q, k=k, v=v, o=o, layout="bhsd").passed == 1


def test_values_arrive_rounded_whatever_the_kernel_returns() -> None:
    x = tensor("bf16", "write")
    store(x, VALUES.astype(np.float64) * 1.0001)
    assert np.array_equal(x.storage, tensor("bf16").storage)
    with pytest.raises(ValueError, match=r"x has shape \[2, 3\], the call needs \[2, 3, 4\]"):
        store(x, VALUES[..., 0])


