"""The tensors of a request: in files (version 1) or in memory that both processes see (version 2)."""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from fa_verify import _safetensors
from fa_verify._arrays import Tensor
from fa_verify._dtypes import STORAGE, itemsize

Request = Mapping[str, Any]


def from_files(request: Request) -> list[Tensor]:
    """Inputs as arrays of their own, outputs as arrays in the file itself. Caches that a call appends to are k_after."""
    names = list(request["case"].get("buffers", {}))
    inputs = _safetensors.load(request["inputs"])
    outputs = _safetensors.load(request["outputs"], writable=True)
    found = {_named(name, names): Tensor(_named(name, names), *x) for name, x in inputs.items()}
    for name, (dtype, array) in outputs.items():
        after = name.endswith("_after")
        short = _named(name.removesuffix("_after"), names)
        found[short] = Tensor(short, dtype, array, "update" if after else "write")
    return list(found.values())


def _named(name: str, buffers: list[str]) -> str:
    """Captured buffers are numbered there, and have their own names here."""
    for kind in ("buffer", "dbuffer"):
        if name.startswith(kind + "_") and name[len(kind) + 1 :].isdigit():
            return f"{kind}:{buffers[int(name[len(kind) + 1 :])]}"
    return name


class Memory:
    """A region shared with the harness, mapped once and again only when it has grown or moved."""

    def __init__(self) -> None:
        self._key: tuple[str, int] | None = None
        self._map: mmap.mmap | None = None

    def tensors(self, request: Request) -> list[Tensor]:
        key = (request["memory"], request["bytes"])
        if key != self._key or self._map is None:
            self._map, self._key = _map(*key), key
        found = [self._one(name, entry) for name, entry in request["tensors"].items()]
        found += [self._one(f"buffer:{name}", entry) for name, entry in request.get("buffers", {}).items()]
        return found + [self._one(f"dbuffer:{name}", entry) for name, entry in request.get("dbuffers", {}).items()]

    def _one(self, name: str, entry: Mapping[str, Any]) -> Tensor:
        dtype, shape = entry["dtype"], entry["shape"]
        size = itemsize(dtype)
        strides = [stride * size for stride in entry["strides"]]
        if 0 in shape:
            array = np.empty(shape, STORAGE[dtype])
        else:
            array = np.ndarray(shape, STORAGE[dtype], self._map, entry["offset"], strides)
        access: Literal["read", "write", "update"] = entry.get("access", "read")
        return Tensor(name, dtype, array, access)


def _map(path: str, n_bytes: int) -> mmap.mmap:
    fd = os.open(path, os.O_RDWR)
    try:
        return mmap.mmap(fd, n_bytes)
    finally:
        os.close(fd)
