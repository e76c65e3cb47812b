"""The three types of an expression, and how gradients are kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Value:
    """What a node is worth: bool, int64 or float64, of a shape that broadcasts to [sq, sk]. Floats may get a gradient."""

    kind: str  # "condition", "int", "float"
    array: np.ndarray
    gradient: np.ndarray | None = None

    def add_gradient(self, gradient: np.ndarray) -> None:
        """Of the broadcast shape or larger; what is larger is added up over the axes that the value was repeated along."""
        if self.kind != "float":
            return
        part = gradient
        extra = part.ndim - self.array.ndim
        if extra > 0:
            part = part.sum(tuple(range(extra)))
        for axis, n in enumerate(self.array.shape):
            if n == 1 and part.shape[axis] != 1:
                part = part.sum(axis, keepdims=True)
        part = np.broadcast_to(part, self.array.shape)
        self.gradient = part.copy() if self.gradient is None else self.gradient + part

    def gradient_or_zero(self) -> np.ndarray:
        return np.zeros(self.array.shape) if self.gradient is None else self.gradient


@dataclass
class Tape:
    """The way back through an evaluation. With `magnitudes` slopes have no signs: what comes is how large a gradient's terms are."""

    magnitudes: bool = False
    steps: list[Callable[[], None]] = field(default_factory=list)


def as_number(x: Value) -> np.ndarray:
    """Conditions as 0 and 1."""
    return x.array.astype(np.int64) if x.kind == "condition" else x.array


def as_float(x: Value) -> np.ndarray:
    return x.array.astype(np.float64)


def as_condition(x: Value) -> np.ndarray:
    return x.array != 0


def times(gradient: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """0 where no gradient comes, whatever the slope: an infinite one of a branch that is not taken counts for nothing."""
    gradient, slope = np.broadcast_arrays(gradient, slope)
    return np.multiply(gradient, slope, out=np.zeros(gradient.shape), where=gradient != 0)
