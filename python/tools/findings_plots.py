"""Draws how much of their bounds a library's kernels use: one small picture a library, from the counts in docs/findings/adapters/NAME.json.

A case that passed has a worst element, whose error is some part of its bound. `part` sorts these parts into bins, by element type;
`plots` makes of them docs/findings/plots/LIBRARY.svg. Needs nothing but Python."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

#: Bins of half a power of two from 2^LOW on. The first has all that is smaller, an error of 0 too; the last what is above a bound.
LOW, BINS = -10, 22
TYPES = {"f32": "#3b6fb6", "f16": "#d9822b", "bf16": "#3f9b58"}
WIDTH, LEFT, ROW, TOP = 660, 150, 64, 26
STEP = (WIDTH - LEFT - 10) / BINS


def bin_of(ratio: float) -> int:
    """The bin of an error in units of its bound."""
    if not ratio > 0:
        return 0
    return max(0, min(BINS - 1, math.floor(2 * (math.log2(ratio) - LOW))))


def parts(cases: Iterable[dict[str, Any]]) -> dict[str, list[int]]:
    """Counts by element type and bin, of the cases of a report that passed."""
    counted: dict[str, list[int]] = {}
    for case in cases:
        ratio, dtype = case.get("worst_ratio"), case.get("features", "").split(" ")[0]
        if case["state"] == "PASS" and isinstance(ratio, (int, float)) and dtype in TYPES:
            counted.setdefault(dtype, [0] * BINS)[bin_of(ratio)] += 1
    return counted


def line(counts: list[int], base: float, most: float) -> str:
    """The outline of one type's bars: path data."""
    data = f"M{LEFT} {base:.0f}"
    for k, n in enumerate(counts):
        data += f"V{base - (ROW - 14) * min(1, n / most):.1f}H{LEFT + (k + 1) * STEP:.1f}"
    return f"{data}V{base:.0f}"


def axis(height: float) -> list[str]:
    """Powers of two below the rows; the bound itself is a line of its own."""
    drawn = []
    for power in range(LOW, LOW + BINS // 2 + 1, 2):
        x = LEFT + 2 * (power - LOW) * STEP
        stroke = "#b03030" if power == 0 else "#dddddd"
        label = "bound" if power == 0 else f"1/{2**-power}" if power < 0 else ""
        drawn += [f'<path d="M{x:.1f} {TOP}V{height - 18}" stroke="{stroke}"/>', f'<text x="{x:.1f}" y="{height - 5}" text-anchor="middle">{label}</text>']
    return drawn


def plot(library: str, adapters: list[dict[str, Any]]) -> str:
    """One library's picture: a row for each adapter, an outline for each element type, whose highest bar but the first is as high as the row."""
    height = TOP + ROW * len(adapters) + 20
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" font-family="sans-serif" font-size="11">',
        f"<title>{library}: the worst error of each case that passed, as a part of its bound</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        *axis(height),
        *(f'<text x="{LEFT + 60 * k}" y="16" fill="{colour}">{name}</text>' for k, (name, colour) in enumerate(TYPES.items())),
    ]
    for k, told in enumerate(adapters):
        base = TOP + ROW * (k + 1)
        n = sum(map(sum, told["parts"].values()))
        out.append(f'<text x="6" y="{base - 22}">{told["adapter"]}</text><text x="6" y="{base - 8}" fill="#777777">{n:,} cases</text>')
        for dtype, counts in told["parts"].items():
            out.append(f'<path d="{line(counts, base, max(1, *counts[1:]))}" fill="{TYPES[dtype]}" fill-opacity="0.18" stroke="{TYPES[dtype]}"/>')
    return "\n".join([*out, "</svg>", ""])


def plots(counted: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Each library's picture, by the library's name."""
    by_library: dict[str, list[dict[str, Any]]] = {}
    for told in counted:
        if told.get("parts"):
            by_library.setdefault(told["library"], []).append(told)
    return {name: plot(name, adapters) for name, adapters in sorted(by_library.items())}
