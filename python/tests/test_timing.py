"""Many problems in one request: what is computed, summed and fetched."""

import numpy as np
import pytest

import fa_verify
from fa_verify._arrays import Tensor
from fa_verify._dtypes import STORAGE, f32_to_bf16
from fa_verify._timing import Timer, _numpy_sum

SHAPE = (1, 3, 2, 5)  # an odd head dim: the last element of a row of 16-bit elements is summed alone


def tensors(dtype, seed):
    rng = np.random.default_rng(seed)
    values = {name: rng.standard_normal(SHAPE).astype(np.float32) for name in "qkv"}
    stored = {n: f32_to_bf16(x) if dtype == "bf16" else x.astype(STORAGE[dtype]) for n, x in values.items()}
    return [Tensor(n, dtype, x) for n, x in stored.items()] + [Tensor("o", dtype, np.zeros(SHAPE, STORAGE[dtype]), "write")]


def words(array):
    """The sum, element by element."""
    total, size = 0, array.itemsize
    for row in np.ascontiguousarray(array).reshape(-1, array.shape[-1]):
        data = row.tobytes()
        cut = len(data) // 4 * 4
        total += sum(int.from_bytes(data[i : i + 4], "little", signed=True) for i in range(0, cut, 4))
        total += int.from_bytes(data[cut:], "little", signed=True) if size == 2 else 0
    return total


def ask(timer, dtype, problems):
    return timer.time({"case": {"dtype": dtype}, "passes": ["forward"], "problems": problems})


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("in_place", [False, True])
def test_problems_take_tensors_from_the_places_that_they_name(dtype, in_place):
    @fa_verify.kernel
    def kernel(call):
        value = call.q * call.scale + call.k - call.v
        if not in_place:
            return value
        call.empty("o")[...] = value
        return None

    timer = Timer(kernel)
    places = [tensors(dtype, seed) for seed in range(3)]
    for i, place in enumerate(places):
        assert timer.stage({"place": i, "places": 3}, place) == {"state": "ok"}
        for tensor in place:
            tensor.storage[...] = 0  # the harness goes on using its memory
    again = [tensors(dtype, seed) for seed in range(3)]
    answer = ask(timer, dtype, [{"scale": 0.5, "at": {"q": 2, "k": 0, "v": 1}}, {"scale": 0.25, "at": {"q": 1, "k": 1, "v": 1}}])
    assert answer["state"] == "ok" and answer["seconds"] >= 0
    for i, (scale, q, k, v) in enumerate([(0.5, 2, 0, 1), (0.25, 1, 1, 1)]):
        out = Tensor("o", dtype, np.full(SHAPE, 7, STORAGE[dtype]), "write")
        timer.fetch({"problem": i}, [out])
        assert f"{words(out.storage) & (1 << 64) - 1:016x}" == answer["sums"][i]
        if dtype == "f32":
            want = again[q][0].storage * scale + again[k][1].storage - again[v][2].storage
            np.testing.assert_array_equal(out.storage, want)


@pytest.mark.parametrize("kind", [np.int16, np.int32])
@pytest.mark.parametrize("length", [1, 2, 5, 8])
def test_sums(kind, length):
    rng = np.random.default_rng(length)
    array = rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, (2, 3, length), kind)
    assert _numpy_sum(array) == words(array)
    assert _numpy_sum(array.transpose(1, 0, 2)) == words(array)


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_torch_sums_as_numpy_does(dtype):
    torch = pytest.importorskip("torch")
    from fa_verify._timing import _stored, _torch_sum

    for length in (1, 4, 5):
        value = torch.randn(2, 3, length, dtype={"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[dtype])
        for tensor in (value, value.transpose(0, 1), torch.randn(3, length, 2).to(value.dtype).transpose(1, 2)):
            assert int(_torch_sum(tensor, dtype)) == words(_stored(tensor, dtype))


def test_the_hello_says_it_only_to_those_who_know_the_word():
    from fa_verify._session import Session

    session = Session(fa_verify.kernel(lambda call: call.q))
    assert "time" not in session.answer({"type": "hello", "id": 1, "versions": [1, 2], "takes": ["source"]})
    assert session.answer({"type": "hello", "id": 2, "versions": [1, 2], "takes": ["source", "time"]})["time"] is True


def test_a_place_that_is_no_longer_needed_is_forgotten():
    timer = Timer(fa_verify.kernel(lambda call: call.q))
    for i in range(3):
        timer.stage({"place": i, "places": 3}, tensors("f32", i))
    timer.stage({"place": 0, "places": 1}, tensors("f32", 9))
    assert list(timer._places) == [0]
