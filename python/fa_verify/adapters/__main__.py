"""python -m fa_verify.adapters [NAME]: lists the adapters, or serves one to the harness."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

from fa_verify.adapters import NAMES, get
from fa_verify.adapters._adapter import Adapter


def _line(name: str) -> str:
    adapter = get(name).adapter
    reason = adapter.why_not()
    state = f"no: {reason}" if reason else f"{adapter.library} {adapter.version()}"
    said = f"{'/'.join(adapter.families)}; {' '.join(adapter.dtypes)}; {'+'.join(adapter.passes)}; writes {' '.join(adapter.outputs)}"
    more = " ".join(adapter.features) or "nothing beyond plain attention"
    return f"{name:20} {adapter.what}\n{'':20}   here: {state}\n{'':20}   {said}\n{'':20}   {more}"


def _arithmetic(said: dict[str, Any]) -> str:
    """The named sets; those of single element types with the type."""
    if "name" in said:
        return f"{said['name']}{' and more' if len(said) > 1 else ''}"
    return ", ".join(f"{dtype} {fields['name']}{' and more' if len(fields) > 1 else ''}" for dtype, fields in said.items())


def _lse(adapter: Adapter) -> str:
    if "lse" not in adapter.outputs:
        return "none"
    words = [f"base {adapter.lse['base']}"]
    words += [adapter.lse["layout"]] if adapter.lse["layout"] != "as_call" else []
    return ", ".join([*words, f"empty {adapter.lse['empty']}"])


def table() -> list[str]:
    """The two tables of docs/guide/adapters.md, Markdown."""
    lines = ["| adapter | what | library | families | elements | writes |", "|---|---|---|---|---|---|"]
    for name in NAMES:
        a = get(name).adapter
        lines.append(f"| `{name}` | {a.what} | {a.library} | {', '.join(a.families)} | {', '.join(a.dtypes)} | {', '.join(a.outputs)} |")
    lines += ["", "| adapter | beyond plain attention | limits | LSE | O of empty rows | arithmetic |", "|---|---|---|---|---|---|"]
    for name in NAMES:
        a = get(name).adapter
        limits = "; ".join(f"{size} {' '.join(f'{k} {v}' for k, v in limit.items())}" for size, limit in a.limits.items()) or "none"
        lines.append(f"| `{name}` | {', '.join(a.features)} | {limits} | {_lse(a)} | {a.empty_o} | {_arithmetic(a.arithmetic)} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fa_verify.adapters", description=__doc__)
    parser.add_argument("name", nargs="?", help="the adapter to serve; without it they are listed")
    parser.add_argument("--hello", action="store_true", help="print what the adapter declares, as JSON, and end")
    parser.add_argument("--prepare", action="store_true", help="compile what most cases need, so that none of them waits for it, and end")
    parser.add_argument(
        "--fork", action="store_true", help="import once, and serve in a child for each request on stdin (gpu/child/forks.h)"
    )
    parser.add_argument("--table", action="store_true", help="print the tables of the guide, and end")
    options = parser.parse_args()
    if options.table:
        print("\n".join(table()))
        return 0
    if options.name is None:
        print("\n".join(_line(name) for name in NAMES))
        return 0
    if options.name not in NAMES:
        if options.fork:  # which a child will say
            return 2
        print(f"there is no adapter {options.name!r}; there are {', '.join(NAMES)}", file=sys.stderr)
        return 2
    if options.hello:
        print(json.dumps({"name": options.name, **get(options.name).adapter.declaration()}, indent=2))
        return 0
    if options.prepare:
        get(options.name).adapter.prepare()
        return 0
    if options.fork:
        from fa_verify._forks import fork_children

        if not fork_children(get(options.name).adapter.load):
            return 0
    from fa_verify.serve import serve

    try:
        serve(get(options.name))
    except BrokenPipeError:  # the harness has ended, or gave the case up
        os._exit(0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
