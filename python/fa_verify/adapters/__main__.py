"""python -m fa_verify.adapters [NAME]: lists the adapters, or serves one to the harness."""

from __future__ import annotations

import argparse
import json
import sys

from fa_verify.adapters import NAMES, get


def _line(name: str) -> str:
    adapter = get(name).adapter
    reason = adapter.why_not()
    state = f"no: {reason}" if reason else f"{adapter.library} {adapter.version()}"
    said = f"{'/'.join(adapter.families)}; {' '.join(adapter.dtypes)}; {'+'.join(adapter.passes)}; writes {' '.join(adapter.outputs)}"
    more = " ".join(adapter.features) or "nothing beyond plain attention"
    return f"{name:20} {adapter.what}\n{'':20}   here: {state}\n{'':20}   {said}\n{'':20}   {more}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fa_verify.adapters", description=__doc__)
    parser.add_argument("name", nargs="?", help="the adapter to serve; without it they are listed")
    parser.add_argument("--hello", action="store_true", help="print what the adapter declares, as JSON, and end")
    options = parser.parse_args()
    if options.name is None:
        print("\n".join(_line(name) for name in NAMES))
        return 0
    if options.name not in NAMES:
        print(f"there is no adapter {options.name!r}; there are {', '.join(NAMES)}", file=sys.stderr)
        return 2
    if options.hello:
        print(json.dumps({"name": options.name, **get(options.name).adapter.declaration()}, indent=2))
        return 0
    from fa_verify.serve import serve

    serve(get(options.name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
