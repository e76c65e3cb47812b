"""Just enough of safetensors: files as arrays in place, and small files written."""

from __future__ import annotations

import json
import mmap
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from fa_verify._dtypes import STORAGE, Array, from_safetensors

_WORD = {"f16": "F16", "bf16": "BF16", "f32": "F32", "f64": "F64", "i32": "I32", "i64": "I64", "u8": "U8", "bool": "BOOL",
         "e4m3": "F8_E4M3", "e5m2": "F8_E5M2", "i8": "I8"}  # fmt: skip


def load(path: str | Path, writable: bool = False) -> dict[str, tuple[str, Array]]:
    """{name: (dtype, array)}. Writable: what is written to the arrays goes to the file; otherwise it stays private."""
    with open(path, "r+b" if writable else "rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_WRITE if writable else mmap.ACCESS_COPY)
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    found = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        dtype = from_safetensors(entry["dtype"])
        begin = 8 + length + entry["data_offsets"][0]
        found[name] = (
            dtype,
            np.ndarray(entry["shape"], STORAGE[dtype], data, begin)
            if 0 not in entry["shape"]
            else np.empty(entry["shape"], STORAGE[dtype]),
        )
    return found


def save(path: str | Path, tensors: Mapping[str, tuple[str, Array]], metadata: Mapping[str, str]) -> None:
    """Writes {name: (dtype, array)}; larger elements first, because each tensor is aligned to its element size."""
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    parts, at = [], 0
    for name, (dtype, array) in sorted(tensors.items(), key=lambda item: -item[1][1].itemsize):
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": _WORD[dtype], "shape": list(array.shape), "data_offsets": [at, at + len(raw)]}
        parts.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))
