"""The child of `exec:`: serves one kernel over stdin and stdout.

    fa-verify run --backend 'exec:python -m fa_verify.serve my_module:attention' --cases cases/causal.json

TARGET is MODULE, MODULE:NAME or FILE.py:NAME. Without a name it is the module's KERNEL, or the only kernel in it.
Whatever the kernel prints goes to stderr.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from types import ModuleType

from fa_verify._kernel import Kernel
from fa_verify._session import Session


def load(target: str) -> ModuleType:
    """The module of that name, or of the file of that name."""
    if not target.endswith(".py"):
        sys.path.insert(0, os.getcwd())
        return importlib.import_module(target)
    name = os.path.splitext(os.path.basename(target))[0]
    spec = importlib.util.spec_from_file_location(name, target)
    if spec is None or spec.loader is None:
        raise ImportError(f"{target} cannot be imported")
    sys.path.insert(0, os.path.dirname(os.path.abspath(target)))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def find(target: str) -> Kernel:
    """The kernel of that name: MODULE, MODULE:NAME or FILE.py:NAME.

    ImportError: there is no such module; LookupError: it has no such kernel.
    """
    path, _, name = target.partition(":")
    found = vars(load(path))
    kernels = {key: value for key, value in found.items() if isinstance(value, Kernel)}
    wanted = name or ("KERNEL" if "KERNEL" in kernels else "")
    if wanted in kernels:
        return kernels[wanted]
    if not wanted and len(set(map(id, kernels.values()))) == 1:
        return next(iter(kernels.values()))
    raise LookupError(f"{path} has {'no kernel ' + wanted if wanted else 'not one kernel'}; it has {', '.join(kernels) or 'none'}")


def serve(kernel: Kernel) -> None:
    """Serves the kernel over this process's stdin and stdout, until stdin ends. Prints go to stderr from now on."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    Session(kernel, may_exit=True).serve(sys.stdin, answers)


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m fa_verify.serve MODULE[:NAME]", file=sys.stderr)
        return 2
    answers = os.dup(1)
    os.dup2(2, 1)  # importing may print too
    kernel = find(arguments[0])
    os.dup2(answers, 1)
    serve(kernel)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
