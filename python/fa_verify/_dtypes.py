"""Element types. numpy has no bf16: its bits travel as uint16, and its values are shown as float32, exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

#: How each type is stored.
STORAGE: dict[str, npt.DTypeLike] = {
    "f16": np.float16, "bf16": np.uint16, "f32": np.float32, "f64": np.float64,
    "i32": np.int32, "i64": np.int64, "u8": np.uint8, "bool": np.bool_,
}  # fmt: skip

_SAFETENSORS = {"F16": "f16", "BF16": "bf16", "F32": "f32", "F64": "f64", "I32": "i32", "I64": "i64", "U8": "u8", "BOOL": "bool"}


def itemsize(dtype: str) -> int:
    return np.dtype(STORAGE[dtype]).itemsize


def from_safetensors(word: str) -> str:
    """The name that this package uses for a type of a safetensors header."""
    return _SAFETENSORS[word]


def rounded(values: Array, dtype: str) -> Array:
    """Values as float32 after rounding to a type, "f16", "bf16" or "f32": what a kernel keeps of an O that it stores.

    >>> rounded(np.array([1.0001, 1.00390625]), "bf16")
    array([1., 1.], dtype=float32)
    """
    if dtype == "bf16":
        return bf16_to_f32(f32_to_bf16(values))
    return np.asarray(values).astype(STORAGE[dtype]).astype(np.float32)


def bf16_to_f32(bits: Array) -> Array:
    """The values of bf16 bits (uint16), as float32.

    >>> bf16_to_f32(np.array([0x3F80, 0xC040], np.uint16))
    array([ 1., -3.], dtype=float32)
    """
    return (bits.astype(np.uint32) << 16).view(np.float32)


def f32_to_bf16(values: Array) -> Array:
    """float32 values rounded to bf16, to nearest even, as bits (uint16). A NaN stays a NaN.

    >>> [hex(x) for x in f32_to_bf16(np.array([1.0, 1.00390625, -3.0], np.float32))]
    ['0x3f80', '0x3f80', '0xc040']
    """
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    nan = (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    return np.where(nan, (bits >> np.uint32(16)) | np.uint32(0x40), rounded >> np.uint32(16)).astype(np.uint16)
