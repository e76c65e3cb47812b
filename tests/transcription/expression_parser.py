"""score_mod and mask_mod: from text to a tree. What is malformed is not looked for: cases come from the program, which has read them."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

FLOAT = r"\d+\.\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+"
TOKEN = re.compile(rf"\s*(?:({FLOAT})|(\d+)|([A-Za-z_]\w*)|(<<|>>|\|\||&&|[=!<>]=|.))")
BINARY = [["||"], ["&&"], ["|"], ["^"], ["&"], ["==", "!="], ["<", "<=", ">", ">="], ["<<", ">>"], ["+", "-"], ["*", "/", "%"]]


@dataclass(frozen=True)
class Node:
    """An operation, or a leaf: "float" and "int" (a number, as `value`), "name"; `text` is an operator's or a name's."""

    kind: str
    text: str
    children: tuple[Node, ...] = ()
    value: float = 0.0


class Parser:
    """One expression, by recursive descent over C's precedences."""

    def __init__(self, text: str):
        self.tokens = [m for m in TOKEN.finditer(text.strip())]
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at].group(0).strip() if self.at < len(self.tokens) else ""

    def take(self, *allowed: str) -> str:
        """The next token, if it is one of these; else ""."""
        text = self.peek()
        if text and text in allowed:
            self.at += 1
            return text
        return ""

    def expect(self, text: str) -> None:
        assert self.take(text), f"{text} is missing before {self.peek()!r}"

    def whole(self) -> Node:
        node = self.ternary()
        assert not self.peek(), f"{self.peek()!r} is left"
        return node

    def ternary(self) -> Node:
        condition = self.binary(0)
        if not self.take("?"):
            return condition
        this = self.ternary()
        self.expect(":")
        return Node("call", "where", (condition, this, self.ternary()))

    def binary(self, level: int) -> Node:
        if level == len(BINARY):
            return self.prefix()
        node = self.binary(level + 1)
        while operator := self.take(*BINARY[level]):
            node = Node("binary", operator, (node, self.binary(level + 1)))
        return node

    def prefix(self) -> Node:
        operator = self.take("-", "+", "!", "~")
        return Node("prefix", operator, (self.prefix(),)) if operator else self.leaf()

    def leaf(self) -> Node:
        if self.take("("):
            node = self.ternary()
            self.expect(")")
            return node
        real, whole, name, _ = self.tokens[self.at].groups()
        self.at += 1
        if real:
            return Node("float", real, value=float(np.float32(real)))
        if whole:
            return Node("int", whole, value=int(whole))
        assert name, self.tokens[self.at - 1].group(0)
        return self.named(name)

    def named(self, name: str) -> Node:
        if name in ("true", "false"):
            return Node("condition", name)
        if name == "inf":
            return Node("float", name, value=float("inf"))
        if self.take("("):
            return Node("call", name, self.arguments(")"))
        indices: tuple[Node, ...] = ()
        while self.take("["):
            indices += self.arguments("]")
        return Node("name", name, indices)

    def arguments(self, end: str) -> tuple[Node, ...]:
        nodes = [self.ternary()]
        while self.take(","):
            nodes.append(self.ternary())
        self.expect(end)
        return tuple(nodes)


def parse(text: str) -> Node:
    return Parser(text).whole()
