"""The expressions of score_mod and mask_mod (docs/reference/expressions.md): text to a typed tree.

A node is a tuple (kind, type, ...), with type "cond", "int" or "float":
("number", t, value)  ("name", t, name)  ("read", t, buffer, (index, ...))  ("prefix", t, op, x)
("binary", t, op, a, b)  ("call", t, function, (x, ...))  ("choose", t, condition, a, b)  ("as", t, x)"""

from __future__ import annotations

import re
from typing import Any

Node = tuple[Any, ...]

_TOKEN = re.compile(r"\s*(?:(\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)|(\d+)|([A-Za-z_]\w*)|(\|\||&&|==|!=|<=|>=|<<|>>|[-+*/%<>!?:(),\[\]&|^~]))")
_LEVELS = (
    *(("||",), ("&&",), ("|",), ("^",), ("&",)),
    *(("==", "!="), ("<", "<=", ">", ">="), ("<<", ">>"), ("+", "-"), ("*", "/", "%")),
)
_INTS = ("b", "h", "q_idx", "kv_idx", "seqlen_q", "seqlen_k")
_KINDS = {"i32": "int", "i64": "int", "bool": "cond"}  # of elements of buffers; others are floats
_RANK = {"cond": 0, "int": 1, "float": 2}


def widen(x: Node, to: str) -> Node:
    """x as a type that is not narrower than its own."""
    return x if x[1] == to else ("as", to, x)


class _Parser:
    def __init__(self, text: str, buffers: dict[str, dict[str, Any]]) -> None:
        self.tokens = self._split(text)
        self.at = 0
        self.buffers = buffers

    @staticmethod
    def _split(text: str) -> list[tuple[str, str]]:
        found, at, text = [], 0, text.rstrip()
        while at < len(text):
            m = _TOKEN.match(text, at)
            if not m:
                raise ValueError(f"column {at + 1}: not understood")
            kind = ("float", "int", "name", "op")[m.lastindex - 1]  # type: ignore[operator]
            found.append((kind, m.group(m.lastindex)))  # type: ignore[arg-type]
            at = m.end()
        return [*found, ("end", "")]

    def take(self, *wanted: str) -> str:
        kind, text = self.tokens[self.at]
        if kind == "op" and text in wanted:
            self.at += 1
            return text
        return ""

    def need(self, wanted: str) -> None:
        if not self.take(wanted):
            raise ValueError(f"{wanted} expected at token {self.at}")

    def whole(self) -> Node:
        x = self.choice()
        if self.tokens[self.at][0] != "end":
            raise ValueError(f"more than one expression at token {self.at}")
        return x

    def choice(self) -> Node:
        condition = self.level(0)
        if not self.take("?"):
            return condition
        a = self.choice()
        self.need(":")
        b = self.choice()
        t = max(a[1], b[1], key=_RANK.__getitem__)
        return ("choose", t, widen_to_condition(condition), widen(a, t), widen(b, t))

    def level(self, n: int) -> Node:
        if n == len(_LEVELS):
            return self.prefix()
        a = self.level(n + 1)
        while op := self.take(*_LEVELS[n]):
            a = self.join(op, a, self.level(n + 1))
        return a

    @staticmethod
    def join(op: str, a: Node, b: Node) -> Node:
        if op in ("||", "&&"):
            return ("binary", "cond", op, widen_to_condition(a), widen_to_condition(b))
        if op in ("&", "|", "^") and a[1] == b[1] == "cond":
            return ("binary", "cond", op, a, b)
        t = max(a[1], b[1], "int", key=_RANK.__getitem__)
        result = "cond" if op in ("==", "!=", "<", "<=", ">", ">=") else t
        return ("binary", result, op, widen(a, t), widen(b, t))

    def prefix(self) -> Node:
        op = self.take("-", "+", "!", "~")
        if not op:
            return self.operand()
        x = self.prefix()
        if op == "!" or (op == "~" and x[1] == "cond"):
            return ("prefix", "cond", "!", widen_to_condition(x))
        t = max(x[1], "int", key=_RANK.__getitem__)
        return widen(x, t) if op == "+" else ("prefix", t, op, widen(x, t))

    def arguments(self, end: str) -> list[Node]:
        found = [self.choice()]
        while self.take(","):
            found.append(self.choice())
        self.need(end)
        return found

    def operand(self) -> Node:
        if self.take("("):
            x = self.choice()
            self.need(")")
            return x
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind in ("int", "float"):
            return ("number", kind, int(text) if kind == "int" else float(text))
        if kind != "name":
            raise ValueError(f"an operand expected at token {self.at - 1}")
        return self.named(text)

    def named(self, text: str) -> Node:
        if text in ("true", "false"):
            return ("number", "cond", text == "true")
        if text == "inf":
            return ("number", "float", float("inf"))
        if text == "score":
            return ("name", "float", text)
        if text in _INTS:
            return ("name", "int", text)
        if text in self.buffers:
            return self.read(text)
        self.need("(")
        return self.function(text, self.arguments(")"))

    def read(self, name: str) -> Node:
        indices: list[Node] = []
        while self.take("["):
            indices += self.arguments("]")
        kind = _KINDS.get(self.buffers[name].get("dtype", "f32"), "float")
        return ("read", kind, name, tuple(widen(i, "int") for i in indices))

    @staticmethod
    def function(name: str, args: list[Node]) -> Node:
        if name == "where":
            t = max(args[1][1], args[2][1], key=_RANK.__getitem__)
            return ("choose", t, widen_to_condition(args[0]), widen(args[1], t), widen(args[2], t))
        if name == "float":
            return widen(args[0], "float")
        if name == "int":
            x = widen(args[0], "int") if args[0][1] == "cond" else args[0]
            return x if x[1] == "int" else ("as", "int", x)
        if name in ("floordiv", "floormod"):
            t = "int"
        elif name in ("abs", "min", "max"):
            t = max(*(a[1] for a in args), "int", key=_RANK.__getitem__)
        else:
            t = "float"
        return ("call", t, name, tuple(widen(a, t) for a in args))


def widen_to_condition(x: Node) -> Node:
    """An int is a condition where one is asked for: not 0."""
    return x if x[1] == "cond" else ("binary", "cond", "!=", x, ("number", x[1], 0))


def parse(text: str, buffers: dict[str, dict[str, Any]]) -> Node:
    """The tree of an expression that the harness has accepted already; ValueError if it is none."""
    return _Parser(text, buffers).whole()
