"""Device tensors in guarded memory.

Each tensor of a call gets an allocation of its own on the device: a guard, the tensor with the case's strides and
alignment, another guard. Guards, and gaps between elements, hold NaN patterns. After the kernel every byte that it may
not write is compared with what was there, on the device.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from fa_verify._arrays import Tensor, store
from fa_verify._dtypes import STORAGE, Array

GUARD_BYTES = 1 << 16
_LARGEST_SPAN = 1 << 31  # bytes; tensors with wider gaps are placed densely
_PATTERNS = (0xFFFF, 0x7FFF)  # NaN as f16, bf16 and, twice, as f32
_turn = itertools.count()


class _Torch:
    def __init__(self, device: str):
        import torch

        self._torch, self._device = torch, torch.device(device)
        self._dtypes = {
            "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
            "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8, "bool": torch.bool,
            "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "i8": torch.int8,
        }  # fmt: skip
        self._bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

    def upload(self, image: Array) -> Any:
        return self._torch.from_numpy(image).to(self._device, copy=True)

    def copy(self, image: Any) -> Any:
        return image.clone()

    def view(self, image: Any, tensor: Tensor, strides: Sequence[int], offset: int, bits: bool = False) -> Any:
        size = tensor.storage.itemsize
        kind = self._bits[size] if bits else self._dtypes[tensor.dtype]
        steps = [stride // size for stride in strides]
        return image.view(kind).as_strided(tensor.storage.shape, steps, offset // size)

    def first_difference(self, a: Any, b: Any) -> int | None:
        if self._torch.equal(a, b):
            return None
        return int((a != b).nonzero()[0, 0])

    def synchronize(self) -> None:
        if self._device.type == "cuda":
            self._torch.cuda.synchronize(self._device)


class _Cupy:
    """bf16 is uint16 there: the bits."""

    def __init__(self, device: str):
        import cupy

        self._cupy = cupy
        cupy.cuda.Device(int(device.partition(":")[2] or 0)).use()

    def upload(self, image: Array) -> Any:
        return self._cupy.array(image)

    def copy(self, image: Any) -> Any:
        return image.copy()

    def view(self, image: Any, tensor: Tensor, strides: Sequence[int], offset: int, bits: bool = False) -> Any:
        kind = np.dtype(f"u{tensor.storage.itemsize}") if bits else np.dtype(STORAGE[tensor.dtype])
        return self._cupy.ndarray(tensor.storage.shape, kind, image.data + offset, tuple(strides))

    def first_difference(self, a: Any, b: Any) -> int | None:
        bad = self._cupy.flatnonzero(a != b)
        return int(bad[0]) if bad.size else None

    def synchronize(self) -> None:
        self._cupy.cuda.Device().synchronize()


_FRAMEWORKS = {"torch": _Torch, "cupy": _Cupy}


@dataclasses.dataclass
class _Placed:
    tensor: Tensor
    memory: Any  # bytes on the device
    before: Any  # the same bytes before the kernel
    strides: tuple[int, ...]  # bytes
    offset: int  # bytes
    span: int  # bytes from the first element's start to the last one's end


class Guarded:
    """A place for one call's tensors on a device."""

    def __init__(self, arrays: str, device: str):
        self._framework: Any = _FRAMEWORKS[arrays](device)
        self._pattern = _PATTERNS[next(_turn) % len(_PATTERNS)]
        self._placed: dict[str, _Placed] = {}
        self._shown: dict[str, Any] = {}

    def show(self, tensor: Tensor) -> Any:
        if tensor.storage.size == 0:
            return self._framework.view(self._framework.upload(np.zeros(8, np.uint8)), tensor, tensor.storage.strides, 0)
        if tensor.name not in self._placed:
            placed = self._place(tensor)
            self._placed[tensor.name] = placed
            self._shown[tensor.name] = self._framework.view(placed.memory, tensor, placed.strides, placed.offset)
        return self._shown[tensor.name]

    def _place(self, tensor: Tensor) -> _Placed:
        source = tensor.storage
        strides = source.strides
        if _span(source.shape, strides, source.itemsize) > _LARGEST_SPAN:
            strides = np.empty(source.shape, source.dtype).strides
        span = _span(source.shape, strides, source.itemsize)
        offset = GUARD_BYTES + source.ctypes.data % 256
        n_bytes = -(-(offset + span + GUARD_BYTES) // 256) * 256
        image = np.full(n_bytes // 2, self._pattern, np.uint16).view(np.uint8)
        inside: Array = np.ndarray(source.shape, source.dtype, image, offset, strides)
        inside[...] = source
        memory = self._framework.upload(image)
        return _Placed(tensor, memory, self._framework.copy(memory), strides, offset, span)

    def finish(self, tensors: Sequence[Tensor]) -> tuple[str, str] | None:
        self._framework.synchronize()
        fault = None
        for placed in self._placed.values():
            fault = self._check(placed) or fault
            if placed.tensor.access != "read":
                store(placed.tensor, self._shown[placed.tensor.name])
        return fault

    def _check(self, placed: _Placed) -> tuple[str, str] | None:
        """Compares all bytes; of what may be written, those that are no elements."""
        f, tensor = self._framework, placed.tensor
        want = placed.before
        if tensor.access != "read":
            elements = f.view(want, tensor, placed.strides, placed.offset, bits=True)
            elements[...] = f.view(placed.memory, tensor, placed.strides, placed.offset, bits=True)
        at = f.first_difference(want, placed.memory)
        if at is None:
            return None
        where = at - placed.offset
        if where < 0:
            return "oob", f"{tensor.name}: written {-where} bytes before its start, on the device"
        if where >= placed.span:
            return "oob", f"{tensor.name}: written {where - placed.span} bytes past its end, on the device"
        if tensor.access == "read":
            return "oob", f"{tensor.name}: an input, changed at byte {where} on the device"
        return "oob", f"{tensor.name}: written into a gap between its elements, at byte {where}, on the device"


def _span(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> int:
    return sum((n - 1) * stride for n, stride in zip(shape, strides)) + itemsize
