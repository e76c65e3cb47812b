"""Expressions: their values over all pairs of a head at once, and their derivatives in reverse order.

Operands that are not looked at are computed like the others, with stand-ins where they have no value; `where` does not let them through."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from expression_functions import CALLS, binary, prefix
from expression_parser import Node, parse
from expression_values import Tape, Value, as_number
from stored import Arrays


@dataclass
class Surroundings:
    """What names stand for: ints and arrays that broadcast to [sq, sk], and buffers by their names."""

    names: dict[str, Value]
    buffers: Arrays
    gradients: dict[str, np.ndarray] = field(default_factory=dict)  # by buffer, added to


class Evaluation:
    """One expression at all pairs: `value`, and `back` for what its operands get of a gradient."""

    def __init__(self, text: str, around: Surroundings, magnitudes: bool):
        self.around = around
        self.tape = Tape(magnitudes)
        self.value = self.visit(parse(text))

    def visit(self, node: Node) -> Value:
        if node.kind == "condition":
            return Value("condition", np.asarray(node.text == "true"))
        if node.kind in ("int", "float"):
            return Value(node.kind, np.asarray(node.value, np.int64 if node.kind == "int" else np.float64))
        children = [self.visit(child) for child in node.children]
        if node.kind == "name":
            return self.named(node.text, children)
        if node.kind == "prefix":
            return prefix(node.text, children[0], self.tape)
        if node.kind == "binary":
            return binary(node.text, children[0], children[1], self.tape)
        return CALLS[node.text](children, self.tape)

    def named(self, name: str, indices: list[Value]) -> Value:
        if name in self.around.names:
            return self.around.names[name]
        buffer = self.around.buffers[name]
        at = tuple(np.clip(as_number(x), 0, max(n - 1, 0)) for x, n in zip(indices, buffer.shape, strict=True))
        if buffer.size == 0:
            return Value("float", np.zeros(np.broadcast_shapes(*(x.shape for x in at))))
        if buffer.dtype.kind == "b":
            return Value("condition", np.asarray(buffer[at]))
        if buffer.dtype.kind == "i":
            return Value("int", np.asarray(buffer[at], np.int64))
        value = Value("float", np.asarray(buffer[at]))
        if name in self.around.gradients:
            self.tape.steps.append(lambda: np.add.at(self.around.gradients[name], at, value.gradient_or_zero()))
        return value

    def back(self, gradient: np.ndarray) -> None:
        """Hands the gradient [sq, sk] of a score_mod's result down to all that it is made of."""
        self.value.add_gradient(gradient)
        for step in reversed(self.tape.steps):
            step()


def evaluate(text: str, around: Surroundings, magnitudes: bool = False) -> Evaluation:
    with np.errstate(all="ignore"):
        return Evaluation(text, around, magnitudes)
