"""What the adapters of JAX share. JAX is imported inside the functions, and told not to take a GPU's whole memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from fa_verify.adapters._adapter import result
from fa_verify.adapters._problem import Problem

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def gpu_missing() -> str:
    """Why no GPU kernel of JAX can run here; empty if one can."""
    import jax

    return "" if jax.default_backend() == "gpu" else f"JAX has no GPU here, only {jax.default_backend()}"


def interprets() -> bool:
    """True where Pallas kernels run in the interpreter, for want of a GPU."""
    return bool(gpu_missing())


def visible(p: Problem) -> Any:
    """What the built-in mask shows: numpy bool [Sq, Sk]."""
    import numpy as np

    away = np.arange(p.seqlen_k)[None, :] - np.arange(p.seqlen_q)[:, None] - p.shift()
    shown = np.ones(away.shape, bool)
    if p.right >= 0:
        shown &= away <= p.right
    if p.left >= 0:
        shown &= away >= -p.left
    return shown


def with_gradients(call: Any, names: tuple[str, ...], forward: Callable[..., Any], compiled: bool = True) -> Any:
    """A Result of forward(inputs by name) -> (o, lse or None), o [B, S, H, D]; with a backward also the gradients
    of `names` by jax.vjp of o. compiled: under jax.jit."""
    import jax

    inputs = {name: getattr(call, name) for name in names if getattr(call, name) is not None}
    forward = jax.jit(forward) if compiled else forward
    if not call.wants_gradients:
        o, lse = forward(inputs)
        return result(o=o, lse=lse)
    o, back, lse = jax.vjp(forward, inputs, has_aux=True)
    (grads,) = back(call.do)
    return result(o=o, lse=lse, **{f"d{name}": g for name, g in grads.items()})


def power_of_two(n: int, largest: int) -> int:
    """The largest power of two up to `largest` that divides n."""
    return min(n & -n, largest)
