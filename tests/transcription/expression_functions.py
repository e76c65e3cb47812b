"""Operators and functions of expressions, each with its slopes (docs/reference/expressions.md, "Derivatives")."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from expression_values import Tape, Value, as_condition, as_float, as_number, times
from rules import changed

Slope = Callable[[], np.ndarray]
erf_of = np.vectorize(math.erf, otypes=[np.float64])


def _float(array: np.ndarray, operands: list[tuple[Value, Slope]], tape: Tape) -> Value:
    """A float of operands, each with the slope by which it gets its part of the gradient."""
    result = Value("float", np.asarray(array, np.float64))

    def step() -> None:
        if result.gradient is None:
            return
        with np.errstate(all="ignore"):
            for operand, slope in operands:
                if operand.kind == "float":
                    part = slope()
                    operand.add_gradient(times(result.gradient, np.abs(part) if tape.magnitudes else part))

    tape.steps.append(step)
    return result


def _is_float(*operands: Value) -> bool:
    return any(x.kind == "float" for x in operands)


def prefix(operator: str, x: Value, tape: Tape) -> Value:
    if operator == "!":
        return Value("condition", ~as_condition(x))
    if operator == "~":
        return Value(x.kind, ~x.array)
    sign = -1 if operator == "-" else 1
    if x.kind != "float":
        return Value("int", sign * as_number(x))
    return _float(sign * x.array, [(x, lambda: np.asarray(float(sign)))], tape)


def divide_toward_zero(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    b = np.where(b == 0, 1, b)
    return np.abs(a) // np.abs(b) * np.sign(a) * np.sign(b)


def remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a - divide_toward_zero(a, b) * np.where(b == 0, 1, b)


def divide_down(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return divide_toward_zero(a, b) if changed("floor_truncates") else a // np.where(b == 0, 1, b)


def modulo_down(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a - divide_down(a, b) * np.where(b == 0, 1, b)


INTS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": divide_toward_zero,
    "%": remainder,
    "<<": lambda a, b: np.left_shift(a, b & 31),
    ">>": lambda a, b: np.right_shift(a, b & 31),
    "floordiv": divide_down,
    "floormod": modulo_down,
}
BITS = {"&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor}
COMPARISONS = {"==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


def binary(operator: str, x: Value, y: Value, tape: Tape) -> Value:
    if operator in ("&&", "||"):
        both = np.logical_and if operator == "&&" else np.logical_or
        return Value("condition", both(as_condition(x), as_condition(y)))
    if operator in COMPARISONS:
        return Value("condition", COMPARISONS[operator](as_number(x), as_number(y)))
    if operator in BITS:
        if x.kind == y.kind == "condition":
            return Value("condition", BITS[operator](x.array, y.array))
        return Value("int", BITS[operator](as_number(x), as_number(y)))
    if not _is_float(x, y):
        return Value("int", np.asarray(INTS[operator](as_number(x), as_number(y))))
    a, b = as_float(x), as_float(y)
    one = np.asarray(1.0)
    if operator in "+-":
        sign = 1.0 if operator == "+" else -1.0
        return _float(a + sign * b, [(x, lambda: one), (y, lambda: one * sign)], tape)
    if operator == "*":
        return _float(a * b, [(x, lambda: b), (y, lambda: a)], tape)
    assert operator == "/", operator
    return _float(a / b, [(x, lambda: 1 / b), (y, lambda: -a / (b * b))], tape)


def where(operands: list[Value], tape: Tape) -> Value:
    condition, this, that = as_condition(operands[0]), operands[1], operands[2]
    if not _is_float(this, that):
        kind = "condition" if this.kind == that.kind == "condition" else "int"
        numbers = [x.array if kind == "condition" else as_number(x) for x in (this, that)]
        return Value(kind, np.where(condition, *numbers))
    chosen = [(this, lambda: condition.astype(np.float64)), (that, lambda: (~condition).astype(np.float64))]
    return _float(np.where(condition, as_float(this), as_float(that)), chosen, tape)


def extreme(pick: np.ufunc) -> Callable[[list[Value], Tape], Value]:
    """min, max: at a tie each side has half of the slope."""

    def call(operands: list[Value], tape: Tape) -> Value:
        x, y = operands
        if not _is_float(x, y):
            return Value("int", pick(as_number(x), as_number(y)))
        a, b = as_float(x), as_float(y)
        chosen = pick(a, b)
        share = lambda mine, other: np.where(mine == other, 0.5, (mine == chosen).astype(np.float64))  # noqa: E731
        return _float(chosen, [(x, lambda: share(a, b)), (y, lambda: share(b, a))], tape)

    return call


def absolute(operands: list[Value], tape: Tape) -> Value:
    (x,) = operands
    if x.kind != "float":
        return Value("int", np.abs(as_number(x)))
    return _float(np.abs(x.array), [(x, lambda: np.sign(x.array))], tape)


def power(operands: list[Value], tape: Tape) -> Value:
    x, y = operands
    a, b = np.broadcast_arrays(as_float(x), as_float(y))
    result = a**b
    by_base = lambda: np.where(b == 0, 0.0, b * a ** (b - 1))  # noqa: E731
    by_exponent = lambda: np.where(a == 0, 0.0, result * np.log(a))  # noqa: E731
    return _float(result, [(x, by_base), (y, by_exponent)], tape)


def ints(name: str) -> Callable[[list[Value], Tape], Value]:
    return lambda operands, tape: Value("int", np.asarray(INTS[name](as_number(operands[0]), as_number(operands[1]))))


def to_int(operands: list[Value], tape: Tape) -> Value:
    x = as_number(operands[0])
    return Value("int", np.trunc(np.nan_to_num(np.clip(x, -(2.0**31), 2.0**31))).astype(np.int64))


def smooth(
    value: Callable[[np.ndarray], np.ndarray], slope: Callable[[np.ndarray, np.ndarray], np.ndarray], near_one: bool = False
) -> Callable[[list[Value], Tape], Value]:
    """A function of one float; its slope is given the argument and the result. `near_one`: the slope is a difference of numbers near 1,
    whose rounding is no part of the slope itself."""

    def call(operands: list[Value], tape: Tape) -> Value:
        (x,) = operands
        a = as_float(x)
        result = value(a)
        return _float(result, [(x, lambda: slope(a, result) + (2.0**-10 if near_one and tape.magnitudes else 0.0))], tape)

    return call


def sigmoid_of(a: np.ndarray) -> np.ndarray:
    small = np.exp(-np.abs(a))
    return np.where(a >= 0, 1.0, small) / (1.0 + small)


def _flat(a: np.ndarray, _: np.ndarray) -> np.ndarray:
    return np.zeros_like(a)


CALLS: dict[str, Callable[[list[Value], Tape], Value]] = {
    "where": where,
    "min": extreme(np.minimum),
    "max": extreme(np.maximum),
    "abs": absolute,
    "pow": power,
    "floordiv": ints("floordiv"),
    "floormod": ints("floormod"),
    "int": to_int,
    "float": smooth(lambda a: a, lambda a, _: np.ones_like(a)),
    "floor": smooth(np.floor, _flat),
    "ceil": smooth(np.ceil, _flat),
    "exp": smooth(np.exp, lambda _, r: r),
    "log": smooth(np.log, lambda a, _: 1 / a),
    "sqrt": smooth(np.sqrt, lambda _, r: 0.5 / r),
    "tanh": smooth(np.tanh, lambda _, r: 1 - r * r, near_one=True),
    "sin": smooth(np.sin, lambda a, _: np.cos(a)),
    "cos": smooth(np.cos, lambda a, _: -np.sin(a)),
    "erf": smooth(erf_of, lambda a, _: 2 / math.sqrt(math.pi) * np.exp(-a * a)),
    "sigmoid": smooth(sigmoid_of, lambda a, _: sigmoid_of(a) * sigmoid_of(-a), near_one=True),
}
