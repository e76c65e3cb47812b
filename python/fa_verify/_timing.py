"""Many problems in one request (docs/reference/protocol.md, "Timing"): inputs lie where the kernel wants them before the clock
starts, outputs are fetched after it has stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fa_verify._arrays import Place, Tensor, store, to_numpy
from fa_verify._call import Call, Result, value_of
from fa_verify._case import Json
from fa_verify._dtypes import STORAGE, Array, bf16_to_f32, f32_to_bf16
from fa_verify._kernel import Kernel

#: Outputs whose words are summed, in any order.
SUMMED = ("o", "dq", "dk", "dv")
_MASK = (1 << 64) - 1


class Staged:
    """The inputs of one place, as the kernel sees them."""

    def __init__(self, tensors: Sequence[Tensor], place: Place):
        self.tensors = {t.name: t for t in tensors}
        self._arrays = {name: place.show(t) for name, t in self.tensors.items()}
        self._place = place  # keeps its memory alive

    def array(self, name: str) -> Any:
        return self._arrays[name]

    def any_array(self) -> Any:
        """One of them: which framework it is of, and where."""
        return next(iter(self._arrays.values()), None)


class _Taken:
    """One problem's tensors: each input from the place that the request names, outputs of no particular content."""

    def __init__(self, places: Mapping[int, Staged], at: Mapping[str, int], place: Callable[[], Place]):
        self._places, self._at, self._place = places, at, place
        self.written: dict[str, Any] = {}

    def bring(self, tensors: Sequence[Tensor]) -> None:
        return None

    def fetch(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return dict(values)

    def show(self, tensor: Tensor) -> Any:
        if tensor.access != "write":
            return self._places[self._at.get(tensor.name, 0)].array(tensor.name)
        if tensor.name not in self.written:
            self.written[tensor.name] = self._empty(tensor)
        return self.written[tensor.name]

    def _empty(self, tensor: Tensor) -> Any:
        like, storage = self._places[0].any_array(), tensor.storage
        if _is_torch(like) and like.is_cuda:
            import torch

            kind = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}[tensor.dtype]
            steps = [stride // storage.itemsize for stride in storage.strides]
            return torch.empty_strided(storage.shape, steps, dtype=kind, device=like.device)
        return self._place().show(Tensor(tensor.name, tensor.dtype, _room_like(storage), "write"))

    def finish(self, tensors: Sequence[Tensor]) -> None:
        return None


class Timer:
    """Answers "stage", "time" and "fetch" for one kernel."""

    def __init__(self, kernel: Kernel):
        self._kernel = kernel
        self._places: dict[int, Staged] = {}
        self._outputs: list[Tensor] = []
        self._results: list[Result] = []

    def stage(self, request: Json, tensors: Sequence[Tensor]) -> Json:
        """Takes a copy of a place's inputs."""
        own = [Tensor(t.name, t.dtype, _copy(t.storage)) for t in tensors if t.access != "write"]
        self._outputs = [t for t in tensors if t.access == "write"]
        self._results = []
        self._places[request["place"]] = Staged(own, self._kernel.place())
        for place in [p for p in self._places if p >= request["places"]]:
            del self._places[place]
        _synchronize(self._places[request["place"]])
        return {"state": "ok"}

    def time(self, request: Json) -> Json:
        """Computes all problems, one behind the other, and sums the words of their outputs."""
        self._results = []
        clock = _clock(self._places[0])
        clock.begin()
        for problem in request["problems"]:
            self._results.append(self._one(request, problem))
        clock.end(self._results)
        sums = _sums(self._results, request["case"].get("dtype", "f16"))
        return {"state": "ok", "seconds": clock.seconds(), "sums": [f"{s & _MASK:016x}" for s in sums]}

    def _one(self, request: Json, problem: Json) -> Result:
        place = _Taken(self._places, problem["at"], self._kernel.place)
        case = {**request["case"], "scale": problem["scale"]}
        tensors = [*self._places[0].tensors.values(), *self._outputs]
        result = self._kernel.run(Call(case, tensors, request["passes"], request.get("threads", 1), place))
        for name, array in place.written.items():
            if not name.startswith("dbuffer:") and getattr(result, name) is None:
                setattr(result, name, array)
        return result

    def fetch(self, request: Json, tensors: Sequence[Tensor]) -> Json:
        """Writes the outputs of one problem into the harness's memory."""
        result = self._results[request["problem"]]
        for tensor in tensors:
            value = value_of(result, tensor.name)
            if value is not None:
                store(tensor, value)
        return {"state": "ok", "kernel": result.kernel or self._kernel.name}


def _room_like(storage: Array) -> Array:
    """Elements of the same shape, strides and alignment, in memory of our own."""
    span = sum((n - 1) * stride for n, stride in zip(storage.shape, storage.strides)) + storage.itemsize if storage.size else 8
    memory = np.zeros(span + 256, np.uint8)
    start = (storage.ctypes.data - memory.ctypes.data) % 256
    return np.ndarray(storage.shape, storage.dtype, memory, start, storage.strides)


def _copy(storage: Array) -> Array:
    copy = _room_like(storage)
    if storage.size:
        copy[...] = storage
    return copy


def _is_torch(array: Any) -> bool:
    return type(array).__module__.split(".")[0] == "torch"


# ---- clocks ----


class _Events:
    """Between two events of the stream that PyTorch's kernels run in."""

    def __init__(self, torch: Any):
        self._torch = torch
        self._marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)]

    def begin(self) -> None:
        self._marks[0].record()

    def end(self, results: Sequence[Result]) -> None:
        self._marks[1].record()

    def seconds(self) -> float:
        self._torch.cuda.synchronize()
        return float(self._marks[0].elapsed_time(self._marks[1])) * 1e-3


class _Wall:
    """The processor's clock; what another device has been handed must have ended."""

    def __init__(self, staged: Staged):
        self._staged = staged
        self._marks = [0.0, 0.0]

    def begin(self) -> None:
        self._marks[0] = time.perf_counter()

    def end(self, results: Sequence[Result]) -> None:
        for result in results:
            for value in vars(result).values():
                if hasattr(value, "block_until_ready"):  # of jax
                    value.block_until_ready()
        _synchronize(self._staged)
        self._marks[1] = time.perf_counter()

    def seconds(self) -> float:
        return self._marks[1] - self._marks[0]


def _clock(staged: Staged) -> Any:
    if _is_torch(staged.any_array()) and staged.any_array().is_cuda:
        import torch

        return _Events(torch)
    return _Wall(staged)


def _synchronize(staged: Staged) -> None:
    """Waits until the device has done what it was told."""
    array = staged.any_array()
    if _is_torch(array) and array.is_cuda:
        import torch

        torch.cuda.synchronize(array.device)
    elif type(array).__module__.split(".")[0] == "cupy":
        import cupy

        cupy.cuda.Device().synchronize()


# ---- sums ----


def _sums(results: Sequence[Result], dtype: str) -> list[int]:
    """For each result the sum of the 32-bit words of its outputs' rows, a last odd element of 16 bits by itself."""
    parts = [[_sum(getattr(r, name), dtype) for name in SUMMED if getattr(r, name) is not None] for r in results]
    numbers = iter(_as_ints([part for of_one in parts for part in of_one]))
    return [sum(next(numbers) for _ in of_one) for of_one in parts]


def _as_ints(numbers: Sequence[Any]) -> list[int]:
    """Those on a device are fetched in one go."""
    if numbers and all(_is_torch(number) for number in numbers):
        import torch

        return [int(number) for number in torch.stack(list(numbers)).tolist()]
    return [int(number) for number in numbers]


def _sum(value: Any, dtype: str) -> Any:
    if _is_torch(value):
        return _torch_sum(value, dtype)
    return _numpy_sum(_stored(value, dtype))


def _torch_sum(value: Any, dtype: str) -> Any:
    """A tensor of one number on the device: nobody waits for it yet."""
    import torch

    kind = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}[dtype]
    bits = value.detach().to(kind)
    if value.ndim == 0 or bits.stride(-1) != 1:
        bits = bits.contiguous()
    if kind == torch.float32:
        return bits.view(torch.int32).sum(dtype=torch.int64)
    even = bits.shape[-1] // 2 * 2
    single = bits[..., even:].view(torch.int16).sum(dtype=torch.int64) if even < bits.shape[-1] else 0
    if not even:
        return single
    pairs = bits[..., :even]
    if any(stride % 2 for stride in pairs.stride()[:-1]) or pairs.storage_offset() % 2:
        pairs = pairs.clone(memory_format=torch.contiguous_format)
    return pairs.view(torch.int32).sum(dtype=torch.int64) + single


def _stored(value: Any, dtype: str) -> Array:
    """The elements as the harness stores them."""
    array, is_bf16 = to_numpy(value)
    if dtype == "bf16":
        return array if is_bf16 or array.dtype == np.uint16 else f32_to_bf16(array)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        return (bf16_to_f32(array) if is_bf16 else array).astype(STORAGE[dtype], copy=False)


def _numpy_sum(array: Array) -> int:
    rows = np.ascontiguousarray(array)
    if rows.size == 0:
        return 0
    if rows.itemsize == 4:
        return int(rows.view(np.int32).sum(dtype=np.int64))
    even = rows.shape[-1] // 2 * 2
    total = int(np.ascontiguousarray(rows[..., :even]).view(np.int32).sum(dtype=np.int64)) if even else 0
    return total if even == rows.shape[-1] else total + int(np.ascontiguousarray(rows[..., even:]).view(np.int16).sum(dtype=np.int64))
