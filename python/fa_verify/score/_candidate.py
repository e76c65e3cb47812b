"""A candidate's file as a kernel that can be judged. This runs in the candidate's process, never in the judge's."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

from fa_verify._call import Call, Result
from fa_verify._case import Case
from fa_verify._kernel import Kernel, Support, kernel
from fa_verify.score._task import Task
from fa_verify.serve import load

#: Names of a parameter, and what a call gives it.
_GIVEN: dict[str, Callable[[Case], Any]] = {
    "causal": lambda call: call.causal,
    "is_causal": lambda call: call.causal,
    "scale": lambda call: call.scale,
    "sm_scale": lambda call: call.scale,
    "softmax_scale": lambda call: call.scale,
    "softcap": lambda call: call.softcap,
    "window": lambda call: call.window,
    "window_size": lambda call: call.window,
}


def wrap(path: str, task: Task) -> Kernel:
    """The kernel in a file, with the task's claims. LookupError: the file has none; TypeError: it cannot be called."""
    target = _find(load(path), path)
    if isinstance(target, Kernel):  # it takes a Call already
        return _kernel(target.function, target.name, task, None)
    names = _parameters(target, path)

    @functools.wraps(target)  # so that reports name the candidate's line, not this one
    def run(call: Call) -> Result:
        return _run(target, names, call, task)

    return _kernel(run, getattr(target, "__name__", type(target).__name__), task, _support(names, task))


class _Candidate(Kernel):
    """A kernel whose place is told from the candidate's folder, so that its reports are the same wherever that is."""

    @classmethod
    def of(cls, made: Kernel) -> _Candidate:
        candidate = cls.__new__(cls)
        candidate.__dict__.update(made.__dict__)
        return candidate

    def source(self) -> str | None:
        place = super().source()
        return os.path.relpath(place) if place else None


def _kernel(function: Callable[[Call], Any], name: str, task: Task, supports: Callable[[Case], Support] | None) -> Kernel:
    return _Candidate.of(kernel(name=name, arrays=task.arrays, device=task.device, supports=supports, **task.claims)(function))


def _find(module: ModuleType, path: str) -> Any:
    """A kernel, a model made ready, or a function."""
    found = vars(module)
    kernels = [value for value in found.values() if isinstance(value, Kernel)]
    if kernels:
        return kernels[0]
    for name in ("ModelNew", "attention", "Model"):
        if name in found:
            return _model(found[name], module) if isinstance(found[name], type) else found[name]
    raise LookupError(f"{path} has neither ModelNew, Model nor attention, nor a kernel of fa_verify")


def _model(kind: type, module: ModuleType) -> Any:
    """An instance, made as benchmarks make it; of torch's modules one that computes no gradients."""
    arguments = module.get_init_inputs() if hasattr(module, "get_init_inputs") else []
    instance = kind(*arguments)
    if hasattr(instance, "eval") and hasattr(instance, "parameters"):
        import torch

        instance.eval()
        return _without_gradients(instance, torch)
    return instance if callable(instance) else instance.forward


def _without_gradients(instance: Any, torch: Any) -> Callable[..., Any]:
    @functools.wraps(instance.forward)
    def forward(*tensors: Any, **options: Any) -> Any:
        with torch.no_grad():
            return instance(*tensors, **options)

    return forward


def _parameters(target: Callable[..., Any], path: str) -> list[str]:
    """The names behind q, k, v that a call can fill."""
    parameters = list(inspect.signature(target).parameters.values())[3:]
    needed = [p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL) and p.name not in _GIVEN]
    if needed:
        raise TypeError(f"{path}: nothing is known to give its parameter {needed[0]!r}; known are {', '.join(_GIVEN)}")
    return [p.name for p in parameters if p.name in _GIVEN]


def _support(names: list[str], task: Task) -> Callable[[Case], Support] | None:
    """Refuses calls that ask for what the candidate has no parameter for. None: it has one for everything."""
    has_causal = bool({"causal", "is_causal"} & set(names))
    has_scale = bool({"scale", "sm_scale", "softmax_scale"} & set(names))
    if has_causal and has_scale:
        return None

    def supports(case: Case) -> Support:
        if not has_scale and case.scale != case.head_dim**-0.5:
            return "it has no parameter for the scale"
        if not has_causal and case.causal != task.always_causal:
            return "it has no parameter for the mask"
        return True

    return supports


def _run(target: Callable[..., Any], names: list[str], call: Call, task: Task) -> Result:
    tensors = [x if task.layout == "bshd" else x.swapaxes(1, 2) for x in (call.q, call.k, call.v)]
    result = Result.of(target(*tensors, **{name: _GIVEN[name](call) for name in names}))
    if task.layout == "bhsd" and result.o is not None:
        result.o = result.o.swapaxes(1, 2)
    return result
