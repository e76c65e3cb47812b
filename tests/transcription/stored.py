"""Golden files: what they hold, as numpy arrays. The format is that of safetensors: a length, a JSON header, the bytes."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]
TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I32": "<i4", "I64": "<i8", "U8": "u1", "BOOL": "?"}


@dataclass
class Golden:
    """A case, its inputs, and what the reference made of them (float64, in `want`)."""

    case: dict[str, Any]
    inputs: Arrays
    want: Arrays

    @property
    def name(self) -> str:
        return str(self.case["name"])


def from_bf16(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def to_type(x: np.ndarray, dtype: str) -> np.ndarray:
    """Float64 numbers rounded once to f16, bf16 or f32, ties to even, as float64."""
    if dtype != "bf16":
        return x.astype({"f16": np.float16, "f32": np.float32}[dtype]).astype(np.float64)
    mantissa, exponent = np.frexp(x)
    spacing = np.ldexp(1.0, np.maximum(exponent - 8, -133))
    return np.where(np.isfinite(x), np.rint(x / spacing) * spacing, x)


def _array(entry: dict[str, Any], payload: memoryview) -> np.ndarray:
    begin, end = entry["data_offsets"]
    assert end - begin == math.prod(entry["shape"]) * np.dtype(TYPES[entry["dtype"]]).itemsize
    flat = np.frombuffer(payload[begin:end], dtype=TYPES[entry["dtype"]])
    if entry["dtype"] == "BF16":
        flat = from_bf16(flat)
    return flat.reshape(entry["shape"])


def read_file(path: Path) -> Golden:
    """One pass of one case. Inputs of floating types become float64."""
    data = memoryview(path.read_bytes())
    begin = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(bytes(data[8:begin]))
    metadata = header.pop("__metadata__")
    (case,) = (json.loads(text) for text in metadata.values() if text.startswith("{"))
    golden = Golden(case, {}, {})
    for name, entry in header.items():
        array = _array(entry, data[begin:])
        if entry["dtype"] == "F64":
            golden.want[name.rsplit("/", 1)[1]] = array
        else:
            floating = np.issubdtype(array.dtype, np.floating)
            golden.inputs[name.rsplit("/", 1)[1]] = array.astype(np.float64) if floating else array
    return golden


def read_folder(folder: Path) -> list[Golden]:
    """All cases of a folder, the passes of each put together."""
    goldens: dict[str, Golden] = {}
    for path in sorted(folder.glob("*.safetensors")):
        one = read_file(path)
        whole = goldens.setdefault(one.name, one)
        whole.inputs.update(one.inputs)
        whole.want.update(one.want)
    return list(goldens.values())
