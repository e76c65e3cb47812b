"""What every adapter is made of: a declaration that holds without the library, and a function that calls it.

The modules beside this one import their library inside functions only, so that the table of adapters can be
printed, and compared with the documentation, where nothing of it is installed."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from fa_verify._case import Case
from fa_verify._kernel import Kernel
from fa_verify.adapters._problem import Problem

Reason = str  # a short clause; empty: none


def nothing_more(problem: Problem, backward: bool) -> Reason:
    """The `refuses` of an adapter whose lists and limits say everything."""
    return ""


def as_declared(problem: Problem) -> dict[str, Any]:
    """The `arithmetic_of` of an adapter that computes all its cases alike."""
    return {}


def nothing_missing() -> Reason:
    return ""


def nothing_to_prepare() -> None:
    return None


def has_cuda() -> bool:
    """True if PyTorch has a GPU here that an adapter may take; FA_VERIFY_DEVICE=cpu keeps it off."""
    import torch

    return os.environ.get("FA_VERIFY_DEVICE", "") != "cpu" and torch.cuda.is_available()


@dataclass(frozen=True)
class Adapter:
    """One library's attention, as it is declared to the harness.

    `run(call)` computes: it gets the package's call and returns an fa_verify.Result. `refuses(problem,
    backward)` says why a case that the lists let through is not taken. `features` and `limits` are those of the
    hello (docs/reference/protocol.md)."""

    name: str
    what: str
    library: str  # the distribution whose version is reported
    modules: tuple[str, ...]  # must be importable
    run: Callable[[Any], Any]
    families: tuple[str, ...] = ("flash", "memeff", "flex")
    dtypes: tuple[str, ...] = ("f16", "bf16", "f32")
    features: tuple[str, ...] = ()
    passes: tuple[str, ...] = ("forward",)
    outputs: tuple[str, ...] = ("o",)
    lse: dict[str, Any] = field(default_factory=dict)
    empty_o: str = "0"
    limits: dict[str, dict[str, Any]] = field(default_factory=dict)
    arithmetic: dict[str, Any] = field(default_factory=dict)
    arithmetic_of: Callable[[Problem], dict[str, Any]] = as_declared  # what holds for this case instead, or beside it
    refuses: Callable[[Problem, bool], Reason] = nothing_more
    missing: Callable[[], Reason] = nothing_missing  # what else it needs here: a device, a version
    prepare: Callable[[], None] = nothing_to_prepare  # what takes minutes and is kept on disk: compiles what most cases need
    arrays: Literal["numpy", "torch", "jax"] = "numpy"
    device: str = "cpu"  # of arrays "torch"; "auto": the GPU if there is one

    def version(self) -> str:
        """The version of the library here, "" if it is not installed."""
        try:
            return importlib.metadata.version(self.library)
        except importlib.metadata.PackageNotFoundError:
            return ""

    def load(self) -> None:
        """Imports the library, and of the package what a child needs, and touches no device: what is left of each start is its own."""
        for module in (*self.modules, "fa_verify.serve", "fa_verify._guarded"):
            importlib.import_module(module)

    def why_not(self) -> Reason:
        """Why it cannot run here; empty if it can. Imports the library."""
        for module in self.modules:
            try:
                importlib.import_module(module)
            except Exception as e:  # a broken installation raises anything at all
                return f"import {module}: {type(e).__name__}: {str(e).splitlines()[0][:160] if str(e) else ''}"
        return self.missing()

    def supports(self, case: Case) -> bool | str | tuple[list[str], str]:
        """Whether it takes a case that the lists and limits let through, as the package's Kernel asks it."""
        problem = Problem(case.json)
        reason = self.refuses(problem, False)
        if reason:
            return reason
        reason = self.refuses(problem, True) if "backward" in self.passes else ""
        return (["forward"], reason) if reason else True

    def declaration(self) -> dict[str, Any]:
        """Everything of the hello that does not depend on where it runs."""
        said: dict[str, Any] = {
            "families": list(self.families),
            "dtypes": list(self.dtypes),
            "features": list(self.features),
            "passes": list(self.passes),
            "outputs": list(self.outputs),
            "empty_o": self.empty_o,
        }
        for key, value in (("lse", self.lse), ("limits", self.limits), ("arithmetic", self.arithmetic)):
            if value:
                said[key] = value
        return said

    def kernel(self) -> AdapterKernel:
        return AdapterKernel(self)


class AdapterKernel(Kernel):
    """An adapter as the package's kernel, which can be served and judged."""

    def __init__(self, adapter: Adapter) -> None:
        declared = {"name": adapter.name, **adapter.declaration()}
        super().__init__(adapter.run, declared, adapter.supports, adapter.arrays, adapter.device)
        self.adapter = adapter

    def supports(self, case: Case) -> dict[str, Any]:
        """As a kernel's, with the case's arithmetic where it has one of its own."""
        own = self.adapter.arithmetic_of(Problem(case.json))
        return {**super().supports(case), **({"arithmetic": own} if own else {})}

    def place(self) -> Any:
        if self._device == "auto":
            self._device = "cuda:0" if has_cuda() else "cpu"
        return super().place()

    def hello(self, version: int = 2, takes: Sequence[str] = ()) -> dict[str, Any]:
        """As a kernel's, but without a place in a source file: what is judged is not the adapter."""
        reason = self.adapter.why_not()
        if reason:
            return {"fa_exec": version, "name": self.adapter.name, "why_not": reason}
        self.place()
        hello = super().hello(version)
        hello["name"] = f"{self.adapter.name}: {self.adapter.library} {self.adapter.version()}"
        return hello


def result(**outputs: Any) -> Any:
    """The package's Result with these outputs."""
    from fa_verify._call import Result

    return Result(**outputs)
