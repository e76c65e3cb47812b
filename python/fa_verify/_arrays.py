"""Tensors of a call as arrays of numpy, torch, jax or cupy, and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

import numpy as np

from fa_verify._dtypes import EIGHT_BITS, Array, bf16_to_f32, f32_to_bf16, from_eight_bits, to_eight_bits

Kind = Literal["numpy", "torch", "jax", "cupy"]


@dataclasses.dataclass
class Tensor:
    """A tensor in the harness's memory. bf16 is stored as uint16, e4m3 and e5m2 as uint8."""

    name: str
    dtype: str
    storage: Array  #: strided as the case lays it out
    access: Literal["read", "write", "update"] = "read"


class Place(Protocol):
    """Where a call's tensors lie for the kernel."""

    def bring(self, tensors: Sequence[Tensor]) -> None:
        """Makes them ready to be shown, which together may cost less than one by one."""

    def show(self, tensor: Tensor) -> Any:
        """The array that the kernel gets."""

    def fetch(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """What a kernel returned, on its way to the host: after finish it can be stored."""

    def finish(self, tensors: Sequence[Tensor]) -> tuple[str, str] | None:
        """Waits for the kernel. A fault as (state, text), if it wrote where it must not."""


def store(tensor: Tensor, value: Any) -> None:
    """Writes an array of any framework into a tensor, rounded to its type. ValueError: the shapes differ."""
    source, is_bf16 = to_numpy(value)
    target = tensor.storage
    is_bf16 = is_bf16 or (tensor.dtype == "bf16" and source.dtype == np.uint16)
    if source.shape != target.shape:
        raise ValueError(f"{tensor.name} has shape {list(source.shape)}, the call needs {list(target.shape)}")
    if _same_memory(source, target):
        return
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        if is_bf16:
            target[...] = source if tensor.dtype == "bf16" else bf16_to_f32(source)
        elif tensor.dtype == "bf16":
            target[...] = f32_to_bf16(source)
        elif tensor.dtype in EIGHT_BITS and source.dtype != np.uint8:
            target[...] = to_eight_bits(source, tensor.dtype)
        else:
            target[...] = source


def _same_memory(a: Array, b: Array) -> bool:
    return a.ctypes.data == b.ctypes.data and a.strides == b.strides and a.dtype.itemsize == b.dtype.itemsize


def to_numpy(value: Any) -> tuple[Array, bool]:
    """An array of any framework as numpy's; True: uint16 that are the bits of bf16."""
    module = type(value).__module__.split(".")[0]
    if module == "torch":
        return _torch_to_numpy(value)
    if module == "cupy":
        value = value.get()
    elif not isinstance(value, np.ndarray) and not hasattr(value, "__array__") and hasattr(value, "__dlpack__"):
        value = np.from_dlpack(value)
    array = np.asarray(value)
    if array.dtype.name == "bfloat16":  # of ml_dtypes
        return array.view(np.uint16), True
    return array, False


def _torch_to_numpy(value: Any) -> tuple[Array, bool]:
    import torch

    host = value.detach().cpu()
    if host.dtype == torch.bfloat16:
        return host.view(torch.int16).numpy().view(np.uint16), True
    if host.dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        return host.view(torch.uint8).numpy(), False
    return host.numpy(), False


class Host:
    """Arrays of the host. numpy and torch see the harness's memory itself, but for numpy's bf16 and floats of 8 bits: a float32 copy."""

    def __init__(self, kind: Kind, device: str | None = None):
        self._show = {"numpy": _show_numpy, "torch": _show_torch, "jax": _show_jax}[kind]
        self._shown: dict[str, Any] = {}

    def bring(self, tensors: Sequence[Tensor]) -> None:
        return None

    def fetch(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return dict(values)

    def show(self, tensor: Tensor) -> Any:
        if tensor.name not in self._shown:
            self._shown[tensor.name] = self._show(tensor)
        return self._shown[tensor.name]

    def finish(self, tensors: Sequence[Tensor]) -> tuple[str, str] | None:
        """Copies back what was updated in place in a copy."""
        for tensor in tensors:
            if tensor.access != "read" and tensor.name in self._shown:
                store(tensor, self._shown[tensor.name])
        return None


def _show_numpy(tensor: Tensor) -> Array:
    if tensor.dtype in EIGHT_BITS:
        return from_eight_bits(tensor.storage, tensor.dtype)
    return bf16_to_f32(tensor.storage) if tensor.dtype == "bf16" else tensor.storage


def _show_torch(tensor: Tensor) -> Any:
    import torch

    if tensor.dtype == "bf16":
        return torch.from_numpy(tensor.storage.view(np.int16)).view(torch.bfloat16)
    if tensor.dtype in EIGHT_BITS:
        return torch.from_numpy(tensor.storage).view({"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}[tensor.dtype])
    return torch.from_numpy(tensor.storage)


def _show_jax(tensor: Tensor) -> Any:
    import jax.numpy as jnp
    import ml_dtypes  # a part of every jax

    floats = {"bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}
    storage = tensor.storage
    return jnp.array(storage.view(floats[tensor.dtype]) if tensor.dtype in floats else storage)
