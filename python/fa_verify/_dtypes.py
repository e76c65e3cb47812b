"""Element types. numpy has no bf16 and no floats of 8 bits: their bits travel as uint16 and uint8, and their
values are shown as float32, exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

#: How each type is stored.
STORAGE: dict[str, npt.DTypeLike] = {
    "f16": np.float16, "bf16": np.uint16, "f32": np.float32, "f64": np.float64,
    "i32": np.int32, "i64": np.int64, "u8": np.uint8, "bool": np.bool_,
    "e4m3": np.uint8, "e5m2": np.uint8, "i8": np.int8,
}  # fmt: skip

_SAFETENSORS = {"F16": "f16", "BF16": "bf16", "F32": "f32", "F64": "f64", "I32": "i32", "I64": "i64", "U8": "u8", "BOOL": "bool",
                "F8_E4M3": "e4m3", "F8_E5M2": "e5m2", "I8": "i8"}  # fmt: skip


def itemsize(dtype: str) -> int:
    return np.dtype(STORAGE[dtype]).itemsize


def from_safetensors(word: str) -> str:
    """The name that this package uses for a type of a safetensors header."""
    return _SAFETENSORS[word]


def rounded(values: Array, dtype: str) -> Array:
    """Values as float32 after rounding to a type, "f16", "bf16", "f32", "e4m3" or "e5m2": what a kernel keeps of an O that it stores.

    >>> rounded(np.array([1.0001, 1.00390625]), "bf16")
    array([1., 1.], dtype=float32)
    """
    if dtype == "bf16":
        return bf16_to_f32(f32_to_bf16(values))
    if dtype in EIGHT_BITS:
        return from_eight_bits(to_eight_bits(values, dtype), dtype)
    return np.asarray(values).astype(STORAGE[dtype]).astype(np.float32)


def _values_of_e4m3() -> Array:
    bits = np.arange(256)
    exponent, fraction = bits >> 3 & 15, bits & 7
    size = np.where(exponent == 0, fraction * 2.0**-9, (8 + fraction) * 2.0 ** (exponent - 10.0))
    size[[0x7F, 0xFF]] = np.nan
    return np.where(bits < 128, size, -size).astype(np.float32)


def _values_of_e5m2() -> Array:
    return (np.arange(256, dtype=np.uint16) << 8).view(np.float16).astype(np.float32)


#: The value of every byte of a float of 8 bits.
EIGHT_BITS: dict[str, Array] = {"e4m3": _values_of_e4m3(), "e5m2": _values_of_e5m2()}
_LARGEST = {"e4m3": 0x7E, "e5m2": 0x7B}


def from_eight_bits(bits: Array, dtype: str) -> Array:
    """The values of bytes (uint8) of type "e4m3" or "e5m2", as float32.

    >>> from_eight_bits(np.array([0x38, 0x7E, 0xB8], np.uint8), "e4m3")
    array([  1., 448.,  -1.], dtype=float32)
    """
    return EIGHT_BITS[dtype][bits]


def to_eight_bits(values: Array, dtype: str) -> Array:
    """Values rounded to "e4m3" or "e5m2", to nearest even, as bytes (uint8). What is too large becomes the largest.

    >>> [hex(x) for x in to_eight_bits(np.array([1.0, 1.0625, -500.0, np.nan]), "e4m3")]
    ['0x38', '0x38', '0xfe', '0x7f']
    """
    table = EIGHT_BITS[dtype][: _LARGEST[dtype] + 1].astype(np.float64)
    middle = (table[:-1] + table[1:]) / 2
    x = np.asarray(values, np.float64)
    low = np.searchsorted(middle, np.abs(x), side="left")  # a tie belongs to the number below ...
    tie = (low < len(middle)) & (np.abs(x) == middle[np.minimum(low, len(middle) - 1)])
    bits = low + (tie & (low % 2 == 1)) + np.where(np.signbit(x), 128, 0)  # ... unless that is odd
    return np.where(np.isnan(x), 0x7F, bits).astype(np.uint8)


#: The value of every pattern of e2m1.
_FOUR_BITS: Array = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def from_four_bits(pairs: Array) -> Array:
    """The values of bytes (uint8) with two numbers of e2m1 in each, the first in the low bits, as float32: the last axis twice as long.

    >>> from_four_bits(np.array([0x21, 0xF7], np.uint8))
    array([ 0.5,  1. ,  6. , -6. ], dtype=float32)
    """
    both = np.stack((pairs & 15, pairs >> 4), axis=-1)
    return _FOUR_BITS[both.reshape(*pairs.shape[:-1], 2 * pairs.shape[-1])]


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
