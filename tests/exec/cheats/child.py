#!/usr/bin/env python3
"""A child for `fa-verify --backend exec:'python3 child.py NAME [ARGUMENT [FEATURES]]'`: NAME is a class of one of the modules
beside this file, honest or a cheat; the argument, in hexadecimal digits, is what the exploit needs to know (a path, a port):
what a command names the sandbox shows. The features are what it claims, "f32,causal,backward", where that is not all that the honest child has."""

from __future__ import annotations

import importlib
import os
import sys

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # it starts sooner, and does not compete with the judge
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import base  # noqa: E402


def found(name: str) -> base.Honest:
    """A child of this class. Only its own module is loaded: it starts sooner."""
    for module in ("base", "tiled", "answers", "evasions", "replays", "walls", "endings", "redteam"):
        with open(f"{os.path.dirname(os.path.abspath(__file__))}/{module}.py") as f:
            if f"class {name}(" in f.read() or (module, name) == ("base", "Honest"):
                return getattr(importlib.import_module(module), name)()
    sys.exit(f"no class {name}")


if __name__ == "__main__":
    child = found(sys.argv[1])
    child.argument = bytes.fromhex(sys.argv[2]).decode() if len(sys.argv) > 2 else ""
    if len(sys.argv) > 3:
        claims = [word for word in sys.argv[3].split(",") if word]
        child.dtypes = [word for word in claims if word in ("f16", "bf16", "f32")]
        child.features = [word for word in claims if word not in ("backward", *child.dtypes)]
        child.passes = ["forward", "backward"] if "backward" in claims else ["forward"]
    base.serve(child)
