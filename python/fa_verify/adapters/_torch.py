"""What the adapters of PyTorch's kernels share. `torch` is handed in, so that nothing is imported before it is needed."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from fa_verify.adapters._adapter import result
from fa_verify.adapters._problem import Problem


def cuda_missing() -> str:
    """Why no CUDA kernel of PyTorch can run here; empty if one can."""
    import torch

    return "" if torch.cuda.is_available() else "PyTorch sees no CUDA device"


def cuda_name() -> str:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else ""


def swap(x: Any) -> Any:
    """[B, S, H, D] as [B, H, S, D], and back."""
    return x.transpose(1, 2)


def padded(torch: Any, x: Any, multiple: int) -> Any:
    """x with zeros at the end of its last axis, up to a multiple; the kernels that ask for one compute the same then."""
    lacks = -x.shape[-1] % multiple
    return torch.nn.functional.pad(x, (0, lacks)) if lacks else x


def aligned(x: Any) -> Any:
    """x, or a copy where its rows do not begin at multiples of 16 bytes. The kernels read 16 bytes at a time; of other tensors some
    end in a CUDA error that no later call survives, some in wrong numbers, some refuse them, also for the stride of an axis of one
    element. PyTorch's own tensors are aligned. FA_VERIFY_ALIGN=0: x as it is."""
    size = x.element_size()
    fits = x.stride(-1) == 1 and x.data_ptr() % 16 == 0 and all(s * size % 16 == 0 for s in x.stride()[:-1])
    fits = fits or os.environ.get("FA_VERIFY_ALIGN") == "0"
    return x if fits else copied(x)


def copied(x: Any) -> Any:
    """A copy without gaps; contiguous() gives x itself where only axes of one element have other strides."""
    import torch

    return x.clone(memory_format=torch.contiguous_format)


def distances(torch: Any, p: Problem, device: Any, b: int = 0) -> Any:
    """j - (i + shift) for every pair of one sequence: int64 [Sq, Sk]."""
    i = torch.arange(p.lens_q[b], device=device)[:, None] + p.shift(b)
    return torch.arange(p.lens_k[b], device=device)[None, :] - i


def visible(torch: Any, p: Problem, device: Any) -> Any:
    """What the built-in mask shows: bool [Sq, Sk], or None if it hides nothing."""
    if not p.masked:
        return None
    d = distances(torch, p, device)
    shown = torch.ones_like(d, dtype=torch.bool)
    if p.right >= 0:
        shown &= d <= p.right
    if p.left >= 0:
        shown &= d >= -p.left
    return shown


def alibi(torch: Any, p: Problem, slopes: Any) -> Any:
    """-slope |i + Sk - Sq - j|: f32 [B or 1, H, Sq, Sk]; the corner is bottom right whatever the mask's is."""
    i = torch.arange(p.seqlen_q, device=slopes.device)[:, None] + (p.keys[0] - p.seqlen_q)
    distance = (i - torch.arange(p.seqlen_k, device=slopes.device)[None, :]).abs().to(torch.float32)
    return -slopes.reshape(-1, p.heads_q, 1, 1) * distance


def additive(torch: Any, p: Problem, call: Any, mask: bool) -> Any:
    """Bias, ALiBi and (if `mask`) the built-in mask in one additive tensor of four axes that broadcasts to [B, H, Sq, Sk]: f32 with
    ALiBi, else of the call's element type; None if there is nothing to add."""
    total = call.bias if p.has_bias else None
    if p.has_alibi:
        lines = alibi(torch, p, call.alibi_slopes)
        total = lines if total is None else total.to(torch.float32) + lines
    shown = visible(torch, p, call.q.device) if mask else None
    if shown is None:
        return total
    if total is None:
        total = torch.zeros(shown.shape, dtype=call.q.dtype, device=shown.device)[None, None]
    return total.masked_fill(~shown, float("-inf"))


def with_gradients(call: Any, names: tuple[str, ...], forward: Any, given: Callable[[Any], Any] = lambda do: do) -> Any:
    """A Result of forward(inputs by name) -> (o, lse or None), all of them [B, S, H, D]; with a backward also the
    gradients of `names` that automatic differentiation gives for given(dO)."""
    import torch

    names = tuple(name for name in names if getattr(call, name) is not None)
    inputs = {name: getattr(call, name).detach().requires_grad_(call.wants_gradients) for name in names}
    with torch.set_grad_enabled(call.wants_gradients):
        o, lse = forward(inputs)
    out = result(o=o.detach(), lse=None if lse is None else lse.detach())
    if not call.wants_gradients:
        return out
    ends, seeds = ([o, lse], [given(call.do), call.dlse]) if call.dlse is not None else ([o], [given(call.do)])
    grads = torch.autograd.grad(ends, list(inputs.values()), seeds, allow_unused=True)
    for name, x, g in zip(names, inputs.values(), grads):
        setattr(out, f"d{name}", torch.zeros_like(x) if g is None else g)
    return out


def seeded(torch: Any, p: Problem) -> None:
    """Makes the default CUDA generator draw the case's random numbers next."""
    generator = torch.cuda.default_generators[torch.cuda.current_device()]
    generator.manual_seed(p.dropout_seed)
    generator.set_offset(p.dropout_offset)


def unusable_seed(p: Problem) -> str:
    """Why PyTorch's generator cannot be set to the case's seed and offset."""
    if p.dropout and p.dropout_offset % 4:
        return "PyTorch's generator takes offsets in multiples of 4"
    return ""
