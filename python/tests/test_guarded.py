"""Device tensors in guarded memory, tried with a device that is numpy."""

import numpy as np
import pytest

from fa_verify import _guarded
from fa_verify._arrays import Tensor


class Device:
    """The interface of _guarded's frameworks, on the host."""

    def __init__(self, device: str):
        self.uploads, self.waits = 0, 0
        self.waits_at_fetch = []

    def upload(self, n_bytes, fill):
        self.uploads += 1
        image = np.empty(n_bytes, np.uint8)
        fill(image)
        return image

    def fetch(self, value):
        self.waits_at_fetch.append(self.waits)
        return value

    def copy(self, image):
        return image.copy()

    def view(self, image, tensor, strides, offset, bits=False):
        kind = np.dtype(f"u{tensor.storage.itemsize}") if bits else tensor.storage.dtype
        return np.ndarray(tensor.storage.shape, kind, image, offset, strides)

    def first_difference(self, a, b):
        bad = np.flatnonzero(a != b)
        return int(bad[0]) if bad.size else None

    def synchronize(self):
        self.waits += 1


@pytest.fixture
def place(monkeypatch):
    monkeypatch.setitem(_guarded._FRAMEWORKS, "numpy", Device)
    return _guarded.Guarded("numpy", "")


def tensor(access):
    """[2, 3, 4] f32 with gaps after each row."""
    memory = np.arange(2 * 3 * 6, dtype=np.float32)
    return Tensor("x", "f32", np.ndarray((2, 3, 4), np.float32, memory, 0, (72, 24, 4)), access)


def flat(array):
    """The memory that an array lies in, from its first element on."""
    return np.ndarray((4096,), np.float32, array.base, array.ctypes.data - array.base.ctypes.data)


def test_inputs_arrive_with_their_strides_and_nothing_is_wrong(place):
    x = tensor("read")
    shown = place.show(x)
    assert shown.strides == x.storage.strides and np.array_equal(shown, x.storage)
    assert np.isnan(flat(shown)[4]) and place.finish([x]) is None


def test_outputs_come_back(place):
    x = tensor("write")
    place.show(x)[...] = 5
    assert place.finish([x]) is None and np.all(x.storage == 5)


@pytest.mark.parametrize("access", ["read", "write"])
@pytest.mark.parametrize(("at", "words"), [(4, "gap"), (-1, "4 bytes before"), (40, "past its end")])
def test_a_write_outside_is_found(place, access, at, words):
    x = tensor(access)
    shown = place.show(x)
    memory = np.ndarray((8192,), np.float32, shown.base, shown.ctypes.data - shown.base.ctypes.data - 4096)
    memory[1024 + at] = 1
    state, text = place.finish([x])
    assert state == "oob" and text.startswith("x: ") and (words in text or "input" in text)


def test_a_changed_input_is_found(place):
    x = tensor("read")
    place.show(x)[1, 2, 3] += 1
    assert "an input, changed" in place.finish([x])[1]


def test_tensors_come_together_and_each_has_its_own_guards(place):
    both = [tensor("read"), tensor("write")]
    both[1].name = "y"
    place.bring(both)
    assert place._framework.uploads == 1 and all(np.array_equal(place.show(t), t.storage) for t in both)
    assert place._framework.waits == 1  # a kernel on a stream of its own begins with inputs that are there
    assert place.fetch({"o": 5}) == {"o": 5} and place.finish(both) is None
    assert place._framework.waits_at_fetch == [2]  # and has ended
    place.show(both[1]).base[place._pieces[0].placed[1].offset - 4] ^= 1
    assert place.finish(both) == ("oob", "y: written 4 bytes before its start, on the device")
    place.show(both[0]).base[place._pieces[0].placed[0].end - 1] ^= 1  # the first fault is told
    assert place.finish(both)[1].startswith("x: written ")
    assert place._framework.uploads == 1
