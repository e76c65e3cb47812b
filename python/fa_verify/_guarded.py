"""Device tensors in guarded memory.

Each tensor of a call has a guard before it, the case's strides and alignment, and a guard behind it. Guards, and gaps between
elements, hold NaN patterns. After the kernel every byte that it may not write is compared with what was there, on the device.

All inputs lie in one allocation, which one copy brings to the device, and outputs come back by copies that nobody waits for one
by one: where many processes share a GPU, each wait is for a turn of its context. A kernel may run on a stream of its own, so
its inputs are there before it begins, and it has ended before its outputs are copied.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fa_verify._arrays import Tensor, store
from fa_verify._dtypes import STORAGE, Array
from fa_verify._forks import in_turn

GUARD_BYTES = 1 << 16
_LARGEST_SPAN = 1 << 31  # bytes; tensors with wider gaps are placed densely
_LARGEST_SEARCH = 1 << 30  # elements; torch's nonzero takes no more than an int counts
_LARGEST_PINNED = 1 << 26  # bytes; page-locked memory is kept by the process, and larger copies are worth a wait
_PATTERNS = (0xFFFF, 0x7FFF)  # NaN as f16, bf16 and, twice, as f32
_turn = itertools.count()
_opened: set[str] = set()  # devices on which this process has a context


class _Torch:
    def __init__(self, device: str):
        import torch

        self._torch, self._device = torch, torch.device(device)
        self._at: Any = None  # the device, with its number
        if self._device.type == "cuda" and device not in _opened:
            with in_turn():
                torch.empty(1, device=self._device)
                self.synchronize()
            _opened.add(device)
        if self._device.type == "cuda":
            self._at = torch.empty(0, device=self._device).device
        self._dtypes = {
            "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
            "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8, "bool": torch.bool,
            "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "i8": torch.int8,
        }  # fmt: skip
        self._bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

    def upload(self, n_bytes: int, fill: Callable[[Array], None]) -> Any:
        """Memory of the device with what fill writes into as many bytes of the host."""
        pinned = self._is_pinned(n_bytes)
        host = self._torch.empty(n_bytes, dtype=self._torch.uint8, pin_memory=pinned)
        fill(host.numpy())
        return host.to(self._device, copy=True, non_blocking=pinned)

    def fetch(self, value: Any) -> Any:
        """The value, or where it lies on the device its copy on the host, which is complete after the next synchronize."""
        if type(value).__module__.split(".")[0] != "torch" or not value.is_cuda:
            return value
        n_bytes = value.numel() * value.element_size()
        if not self._is_pinned(n_bytes) or value.device != self._at:
            return value
        host = self._torch.empty(value.shape, dtype=value.dtype, pin_memory=True)
        return host.copy_(value.detach(), non_blocking=True)

    def _is_pinned(self, n_bytes: int) -> bool:
        return self._device.type == "cuda" and n_bytes <= _LARGEST_PINNED

    def copy(self, image: Any) -> Any:
        return image.clone()

    def view(self, image: Any, tensor: Tensor, strides: Sequence[int], offset: int, bits: bool = False) -> Any:
        size = tensor.storage.itemsize
        kind = self._bits[size] if bits else self._dtypes[tensor.dtype]
        steps = [stride // size for stride in strides]
        return image.view(kind).as_strided(tensor.storage.shape, steps, offset // size)

    def first_difference(self, a: Any, b: Any) -> int | None:
        if self._torch.equal(a.view(self._torch.int64), b.view(self._torch.int64)):
            return None
        for at in range(0, a.numel(), _LARGEST_SEARCH):
            bad = (a[at : at + _LARGEST_SEARCH] != b[at : at + _LARGEST_SEARCH]).nonzero()
            if bad.numel():
                return at + int(bad[0, 0])
        return None

    def synchronize(self) -> None:
        if self._device.type == "cuda":
            self._torch.cuda.synchronize(self._device)


class _Cupy:
    """bf16 is uint16 there: the bits."""

    def __init__(self, device: str):
        import cupy

        self._cupy = cupy
        cupy.cuda.Device(int(device.partition(":")[2] or 0)).use()

    def upload(self, n_bytes: int, fill: Callable[[Array], None]) -> Any:
        image = np.empty(n_bytes, np.uint8)
        fill(image)
        return self._cupy.array(image)

    def fetch(self, value: Any) -> Any:
        return value

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
    strides: tuple[int, ...]  # bytes
    offset: int  # byte of its piece where its first element begins
    span: int  # bytes from the first element's start to the last one's end

    @property
    def end(self) -> int:
        """Where its back guard ends: a multiple of 256."""
        return -(-(self.offset + self.span + GUARD_BYTES) // 256) * 256


@dataclasses.dataclass
class _Piece:
    """Tensors that came to the device together."""

    placed: list[_Placed]
    memory: Any  # bytes on the device
    before: Any  # the same bytes before the kernel


class Guarded:
    """A place for one call's tensors on a device."""

    def __init__(self, arrays: str, device: str):
        self._framework: Any = _FRAMEWORKS[arrays](device)
        self._pattern = _PATTERNS[next(_turn) % len(_PATTERNS)]
        self._pieces: list[_Piece] = []
        self._shown: dict[str, Any] = {}

    def bring(self, tensors: Sequence[Tensor]) -> None:
        """Places all that have elements and are not there yet, in one piece."""
        placed: list[_Placed] = []
        for tensor in tensors:
            if tensor.storage.size and tensor.name not in self._shown:
                placed.append(_lay_out(tensor, placed[-1].end if placed else 0))
        if not placed:
            return
        memory = self._framework.upload(placed[-1].end, lambda image: self._fill(image, placed))
        self._pieces.append(_Piece(placed, memory, self._framework.copy(memory)))
        self._framework.synchronize()
        for p in placed:
            self._shown[p.tensor.name] = self._framework.view(memory, p.tensor, p.strides, p.offset)

    def _fill(self, image: Array, placed: Sequence[_Placed]) -> None:
        image.view(np.uint16)[...] = self._pattern
        for p in placed:
            inside: Array = np.ndarray(p.tensor.storage.shape, p.tensor.storage.dtype, image, p.offset, p.strides)
            inside[...] = p.tensor.storage

    def show(self, tensor: Tensor) -> Any:
        if tensor.storage.size == 0:
            return self._framework.view(self._framework.upload(8, lambda image: image.fill(0)), tensor, tensor.storage.strides, 0)
        self.bring([tensor])
        return self._shown[tensor.name]

    def fetch(self, values: Mapping[str, Any]) -> dict[str, Any]:
        self._framework.synchronize()
        return {name: self._framework.fetch(value) for name, value in values.items()}

    def finish(self, tensors: Sequence[Tensor]) -> tuple[str, str] | None:
        self._framework.synchronize()
        fault = None
        for piece in self._pieces:
            fault = self._check(piece) or fault
            for p in piece.placed:
                if p.tensor.access != "read":
                    store(p.tensor, self._shown[p.tensor.name])
        return fault

    def _check(self, piece: _Piece) -> tuple[str, str] | None:
        """Compares all bytes; of what may be written, those that are no elements."""
        f = self._framework
        for p in piece.placed:
            if p.tensor.access != "read":
                elements = f.view(piece.before, p.tensor, p.strides, p.offset, bits=True)
                elements[...] = f.view(piece.memory, p.tensor, p.strides, p.offset, bits=True)
        at = f.first_difference(piece.before, piece.memory)
        return None if at is None else _describe(next(p for p in piece.placed if at < p.end), at)


def _lay_out(tensor: Tensor, begin: int) -> _Placed:
    source = tensor.storage
    strides = source.strides
    if _span(source.shape, strides, source.itemsize) > _LARGEST_SPAN:
        strides = np.empty(source.shape, source.dtype).strides
    offset = begin + GUARD_BYTES + source.ctypes.data % 256
    return _Placed(tensor, strides, offset, _span(source.shape, strides, source.itemsize))


def _describe(placed: _Placed, at: int) -> tuple[str, str]:
    """What is wrong where a byte of a tensor's, its gaps' or its guards' has changed."""
    where, name = at - placed.offset, placed.tensor.name
    if where < 0:
        return "oob", f"{name}: written {-where} bytes before its start, on the device"
    if where >= placed.span:
        return "oob", f"{name}: written {where - placed.span} bytes past its end, on the device"
    if placed.tensor.access == "read":
        return "oob", f"{name}: an input, changed at byte {where} on the device"
    return "oob", f"{name}: written into a gap between its elements, at byte {where}, on the device"


def _span(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> int:
    return sum((n - 1) * stride for n, stride in zip(shape, strides)) + itemsize
