"""Expressions on torch tensors: functions that flex_attention takes as score_mod and mask_mod.

The tree is walked while the function is traced or called, so nothing is generated as text. Constants are
Python numbers as long as they can be; `both` makes tensors of them where torch asks for two tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fa_verify.adapters._expr import Node


def both(torch: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """a and b as tensors of one type, if at least one of them is a tensor."""
    if not isinstance(a, torch.Tensor):
        a = torch.full_like(b, a)
    if not isinstance(b, torch.Tensor):
        b = torch.full_like(a, b)
    return a, b


def _quotient(torch: Any, rounding: str, a: Any, b: Any) -> Any:
    """The quotient of ints, rounded by "trunc" or "floor"; x / 0 is 0."""
    if not isinstance(a, torch.Tensor) and not isinstance(b, torch.Tensor):
        if b == 0 or rounding == "floor":
            return 0 if b == 0 else a // b
        return int(abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)
    if not isinstance(b, torch.Tensor):
        return a * 0 if b == 0 else torch.div(a, b, rounding_mode=rounding)
    a, b = both(torch, a, b)
    none = b == 0
    return torch.where(none, torch.zeros_like(a), torch.div(a, torch.where(none, torch.ones_like(b), b), rounding_mode=rounding))


def _divide(torch: Any, kind: str, a: Any, b: Any) -> Any:
    """C's division: ints truncate."""
    return a / b if kind == "float" else _quotient(torch, "trunc", a, b)


_BITWISE: dict[str, Callable[[Any, Any], Any]] = {
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
}


def _binary(torch: Any, op: str, kind: str, a: Any, b: Any) -> Any:
    if op == "+":
        return a + b
    if op == "-":
        return a - b
    if op == "*":
        return a * b
    if op == "/":
        return _divide(torch, kind, a, b)
    if op == "%":
        return a - _divide(torch, "int", a, b) * b
    if op in _BITWISE:
        return _BITWISE[op](a, b)
    if op == "&&":
        return a & b
    if op == "||":
        return a | b
    return {"==": lambda: a == b, "!=": lambda: a != b, "<": lambda: a < b, "<=": lambda: a <= b, ">": lambda: a > b, ">=": lambda: a >= b}[op]()


def _call(torch: Any, name: str, args: list[Any], like: Any) -> Any:
    if name in ("min", "max"):
        a, b = args
        if not isinstance(a, torch.Tensor) and not isinstance(b, torch.Tensor):
            return min(a, b) if name == "min" else max(a, b)
        a, b = both(torch, a, b)
        return torch.minimum(a, b) if name == "min" else torch.maximum(a, b)
    if name in ("floordiv", "floormod"):
        quotient = _quotient(torch, "floor", *args)
        return quotient if name == "floordiv" else args[0] - quotient * args[1]
    if name == "pow":
        a, b = both(torch, *args) if any(isinstance(x, torch.Tensor) for x in args) else (torch.full_like(like, args[0]), args[1])
        return torch.pow(a, b)
    x = args[0] if isinstance(args[0], torch.Tensor) else torch.full_like(like, args[0])
    return getattr(torch, name)(x)


def _convert(torch: Any, x: Any, kind: str) -> Any:
    if isinstance(x, torch.Tensor):
        return x.to(torch.int32 if kind == "int" else torch.float32)
    return int(x) if kind == "int" else float(x)


def evaluate(torch: Any, node: Node, env: dict[str, Any], buffers: dict[str, Any]) -> Any:
    """The node's value: a tensor, or a Python number where nothing in it is a tensor."""
    kind = node[0]
    if kind == "number":
        return node[2]
    if kind == "name":
        return env[node[2]]
    if kind == "as":
        return _convert(torch, evaluate(torch, node[2], env, buffers), node[1])
    if kind == "read":
        sure = [i[0] == "name" and i[2] in ("b", "h") for i in node[3]]
        return _read(torch, buffers[node[2]], [evaluate(torch, i, env, buffers) for i in node[3]], sure)
    if kind == "prefix":
        x = evaluate(torch, node[3], env, buffers)
        if node[2] == "-":
            return -x
        if node[2] == "~":
            return ~x
        return torch.logical_not(x) if isinstance(x, torch.Tensor) else not x
    if kind == "binary":
        return _binary(torch, node[2], node[3][1], evaluate(torch, node[3], env, buffers), evaluate(torch, node[4], env, buffers))
    if kind == "call":
        return _call(torch, node[2], [evaluate(torch, a, env, buffers) for a in node[3]], env["like"])
    condition, a, b = (evaluate(torch, x, env, buffers) for x in node[2:])
    if not isinstance(condition, torch.Tensor):
        return a if condition else b
    if not isinstance(a, torch.Tensor) and not isinstance(b, torch.Tensor):
        a = torch.full_like(env["like"], a) if node[1] == "float" else torch.full_like(env["q_idx"], int(a))
    a, b = both(torch, a, b)
    return torch.where(condition, a, b)


def _read(torch: Any, buffer: Any, indices: list[Any], sure: list[bool]) -> Any:
    """An element; an index out of its range, which only a pair that does not count can have, is clamped. Those of sequence and head
    are sure to be in it; clamped they would only keep flex_attention from compiling the buffer's gradient."""
    if not indices:
        return _widened(torch, buffer.reshape(()))
    inside = []
    for i, n, in_range in zip(indices, buffer.shape, sure):
        clamped = torch.clamp if isinstance(i, torch.Tensor) else lambda x, low, high: min(max(x, low), high)
        inside.append(i if in_range else clamped(i, 0, n - 1))
    return _widened(torch, buffer[tuple(inside)])


def _widened(torch: Any, x: Any) -> Any:
    """An element of 16 bits as the float that it is in expressions: of itself PyTorch would go on in 16 bits."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def function(torch: Any, node: Node, buffers: dict[str, Any], seqlen_q: int, seqlen_k: int) -> Callable[..., Any]:
    """f(score or None, b, h, q_idx, kv_idx) of the tree; buffers by name."""

    def f(score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        like = score if score is not None else q_idx.to(torch.float32)
        env = {"score": score, "b": b, "h": h, "q_idx": q_idx, "kv_idx": kv_idx, "seqlen_q": seqlen_q, "seqlen_k": seqlen_k, "like": like}
        return evaluate(torch, node, env, buffers)

    return f
