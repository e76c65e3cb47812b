"""The decorator that makes a function a kernel that can be judged."""

from __future__ import annotations

import functools
import inspect
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, overload

from fa_verify._arrays import Host, Kind, Place
from fa_verify._call import Call, Result
from fa_verify._case import Case, Json
from fa_verify._features import DTYPES, FEATURES, SINCE_VERSION_2

#: Short names of conventions of the LSE; their keys are those of a hello (docs/reference/protocol.md).
LSE: dict[str, Json] = {
    "natural": {"base": "e", "scaled": True},
    "base2": {"base": "2", "scaled": True},
}

#: True: everything. A text: nothing, and why. Passes, and why not all: (["forward"], "no backward for ...").
Support = bool | str | tuple[Sequence[str], str]


class Unsupported(Exception):
    """Raised by a kernel that finds that it cannot do a call: the case is skipped, with this text."""


class Kernel:
    """A function and what it says about itself. Made by :func:`kernel`; calling it calls the function."""

    def __init__(
        self, function: Callable[[Call], Any], declared: Json, supports: Callable[[Case], Support] | None, arrays: Kind, device: str | None
    ):
        functools.update_wrapper(self, function)
        self.function = function
        self.name: str = declared["name"]
        self._declared = declared
        self._supports = supports
        self._arrays: Kind = arrays
        self._device = device

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def hello(self, version: int = 2, takes: Sequence[str] = ()) -> Json:
        """What it says about itself, as the protocol has it. Version 1 knows less: there, "why_not" may be the answer.

        takes: keys that are newer than version 2, and that the other side knows.
        """
        hello = {"fa_exec": version, **self._declared, "device": self._describe()}
        if self._supports:
            hello["supports"] = True
        source = self.source()
        if source and "source" in takes:
            hello["source"] = source
        return hello if version >= 2 else _as_version_1(hello)

    def source(self) -> str | None:
        """Where the function is written: "attention.py:12". None for what was not written in Python."""
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        return f"{code.co_filename}:{code.co_firstlineno}" if code else None

    def supports(self, case: Case) -> Json:
        """The answer to the question whether it can do a case."""
        said = self._supports(case) if self._supports else True
        if isinstance(said, str):
            return {"passes": [], "reason": said}
        if isinstance(said, tuple):
            return {"passes": list(said[0]), "reason": said[1]}
        return {} if said or said is None else {"passes": [], "reason": "it does not take this case"}

    def place(self) -> Place:
        """Where the tensors of the next call are to lie."""
        if self._arrays == "cupy" or (self._arrays == "torch" and self._device not in (None, "cpu")):
            from fa_verify._guarded import Guarded

            return Guarded(self._arrays, self._device or "cuda:0")
        return Host(self._arrays, self._device)

    def run(self, call: Call) -> Result:
        """Calls the function. The result is not yet stored: :meth:`Call.finish`."""
        return Result.of(self.function(call))

    def _describe(self) -> str:
        if self._arrays == "torch" and self._device and self._device.startswith("cuda"):
            import torch

            return str(torch.cuda.get_device_name(self._device))
        return f"Python {platform.python_version()}"


def _as_version_1(hello: Json) -> Json:
    """Version 1 delivers every output in the harness's conventions, or cannot be judged."""
    lse, passes = hello.get("lse", {}), hello["passes"]
    if "lse" not in hello["outputs"]:
        return {"fa_exec": 1, "why_not": "without an LSE it needs version 2 of the protocol"}
    if lse and (lse.get("base", "e") != "e" or not lse.get("scaled", True) or lse.get("layout", "as_call") != "as_call"):
        return {"fa_exec": 1, "why_not": "its LSE needs version 2 of the protocol"}
    kept = ("fa_exec", "name", "device", "families", "dtypes", "features", "supports")
    arithmetic = hello.get("arithmetic", {})
    old = {"name": arithmetic["name"]} if arithmetic.get("name") in _SETS_OF_VERSION_1 else {}
    features = [word for word in hello["features"] if word in FEATURES and word not in SINCE_VERSION_2]
    return {**{key: hello[key] for key in kept if key in hello}, "features": features, "passes": passes, "arithmetic": old}


_SETS_OF_VERSION_1 = ("mma-hopper", "mma-ampere", "mma-volta", "simt-f32", "3xtf32", "recorded", "recorded-memeff")


@overload
def kernel(function: Callable[[Call], Any], /) -> Kernel: ...
@overload
def kernel(
    *,
    name: str | None = None,
    backward: bool = False,
    lse: bool | str | Mapping[str, Any] = False,
    dtypes: Iterable[str] = DTYPES,
    families: Iterable[str] | None = None,
    head_dim: int | Mapping[str, Any] | None = None,
    limits: Mapping[str, Mapping[str, Any]] | None = None,
    outputs: Iterable[str] | None = None,
    empty_o: str | None = None,
    arithmetic: str | Mapping[str, Any] | None = None,
    supports: Callable[[Case], Support] | None = None,
    arrays: Kind = "numpy",
    device: str | None = None,
    features: Iterable[str] = (),
    causal: bool = False,
    window: bool = False,
    bottom_right: bool = True,
    top_left: bool = False,
    varlen: bool = False,
    seqused_k: bool = False,
    leftpad_k: bool = False,
    gqa: bool = False,
    head_dim_v: bool = False,
    softcap: bool = False,
    alibi: bool = False,
    bias: bool = False,
    bias_grad: bool = False,
    dropout: bool = False,
    dlse: bool = False,
    return_softmax: bool = False,
    score_mod: bool = False,
    mask_mod: bool = False,
    captures: bool = True,
    captures_grad: bool = False,
    captures_bool: bool = False,
    captures_i64: bool = False,
    captures_half: bool = False,
    captures_half_grad: bool = False,
    captures_strides: bool = False,
    captures_many: bool = False,
    block_sparse: bool = False,
    kvcache: bool = False,
    append: bool = False,
    paged: bool = False,
    batch_idx: bool = False,
    rotary: bool = False,
    splits: bool = False,
    deterministic: bool = False,
    empty_lse: bool = False,
    chunk: bool = False,
    mask_bits: bool = False,
    sinks: bool = False,
    sinks_grad: bool = False,
    lse_without_sinks: bool = False,
    padded_lse: bool = False,
    mla: bool = False,
    topk: bool = False,
    quantized: bool = False,
    quantized_keys: bool = False,
    quantized_tokens: bool = False,
    quantized_mixed: bool = False,
    quantized_append: bool = False,
    quantized_e2m1: bool = False,
    quantized_amax: bool = False,
    quantized_o: bool = False,
) -> Callable[[Callable[[Call], Any]], Kernel]: ...
def kernel(function: Callable[[Call], Any] | None = None, /, **options: Any) -> Any:
    """Makes a function a kernel that can be judged. Cases that ask for what is not declared are skipped.

    The function takes a :class:`Call` and returns o, (o, lse), a dict, or a :class:`Result`.

    causal, window, gqa ...: it can do these. backward: it computes dq, dk and dv when :attr:`Call.wants_gradients`.
    lse: False: it returns none; "natural" or "base2"; a dict of conventions (docs/reference/protocol.md); True: it
    returns one, and the harness finds out which. features: pairs of features that it can do together, as
    "bias_varlen" (docs/reference/protocol.md). dtypes: out of "f16", "bf16", "f32". head_dim: the largest, or
    {"min", "max", "multiple_of", "among"}; limits: the same for other sizes. arithmetic: how it computes, the name of a set
    or its fields; without it the harness finds out. supports(case): True; a text: no, and why; (["forward"], why).
    arrays: what the tensors are; device: where ("cuda:0"; of torch and cupy, in guarded memory). families: out of
    "flash", "memeff", "flex", "kvcache"; by default the first two, and the others if something is declared that only they have.

    >>> @kernel(causal=True, gqa=True, lse="natural", head_dim=128)
    ... def attention(call): ...
    >>> hello = attention.hello()
    >>> hello["features"], hello["outputs"], hello["limits"]
    (['causal', 'bottom_right', 'gqa'], ['o', 'lse'], {'head_dim': {'max': 128}})
    """
    if function is not None:
        return kernel(**options)(function)
    known = inspect.signature(_declare).parameters
    supports, arrays, device = options.pop("supports", None), options.pop("arrays", "numpy"), options.pop("device", None)
    unknown = [key for key in options if key not in known and key not in FEATURES]
    if unknown:
        raise TypeError(f"kernel() has no option {unknown[0]!r}; it has {', '.join([*known, *FEATURES])}")

    def decorate(target: Callable[[Call], Any]) -> Kernel:
        flags = {key: options[key] for key in FEATURES if key in options}
        rest = {key: value for key, value in options.items() if key not in FEATURES and key != "name"}
        named = options.get("name") or target.__name__
        return Kernel(target, _declare(named, flags=flags, **rest), supports, arrays, device)

    return decorate


def _declare(
    name: str,
    *,
    flags: Mapping[str, bool],
    backward: bool = False,
    lse: bool | str | Mapping[str, Any] = False,
    dtypes: Iterable[str] = DTYPES,
    families: Iterable[str] | None = None,
    head_dim: int | Mapping[str, Any] | None = None,
    limits: Mapping[str, Mapping[str, Any]] | None = None,
    outputs: Iterable[str] | None = None,
    empty_o: str | None = None,
    arithmetic: str | Mapping[str, Any] | None = None,
    features: Iterable[str] = (),
    kvcache: bool = False,
) -> Json:
    """The hello, without what depends on the machine."""
    words = [word for word in FEATURES if flags.get(word, _is_implied(word, flags))] + list(features)
    caches = kvcache or any(word in words for word in ("append", "paged", "batch_idx", "rotary", "mla", "topk"))
    flex = any(word in words for word in ("score_mod", "mask_mod", "block_sparse"))
    declared: Json = {
        "name": name,
        "families": list(families) if families is not None else ["flash", "memeff"] + ["flex"] * flex + ["kvcache"] * caches,
        "dtypes": list(dtypes),
        "features": words,
        "passes": ["forward", "backward"] if backward else ["forward"],
        "outputs": list(outputs) if outputs is not None else _outputs(backward, bool(lse), words),
    }
    sizes = {**(limits or {}), **({} if head_dim is None else {"head_dim": head_dim})}
    if sizes:
        declared["limits"] = {size: {"max": limit} if isinstance(limit, int) else dict(limit) for size, limit in sizes.items()}
    if isinstance(lse, str) and lse not in LSE:
        raise ValueError(f"lse={lse!r}: one of {', '.join(LSE)}, True, False or a dict is needed")
    if lse and lse is not True:
        declared["lse"] = LSE[lse] if isinstance(lse, str) else dict(lse)
    if empty_o is not None:
        declared["empty_o"] = empty_o
    if arithmetic is not None:
        declared["arithmetic"] = {"name": arithmetic} if isinstance(arithmetic, str) else dict(arithmetic)
    return declared


def _is_implied(word: str, flags: Mapping[str, bool]) -> bool:
    """Features that usually come with others."""
    with_it = {"bottom_right": ("causal", "window"), "captures": ("score_mod", "mask_mod")}
    return any(flags.get(other, False) for other in with_it.get(word, ()))


def _outputs(backward: bool, lse: bool, words: Sequence[str]) -> list[str]:
    names = ["o"] + ["lse"] * lse + ["p_debug"] * ("return_softmax" in words) + ["amax_p", "amax_o"] * ("quantized_amax" in words)
    if backward:
        names += (
            ["dq", "dk", "dv"]
            + ["dbias"] * ("bias_grad" in words)
            + ["dsinks"] * ("sinks_grad" in words)
            + ["dbuffers"] * ("captures_grad" in words or "captures_half_grad" in words)
        )
    return names
