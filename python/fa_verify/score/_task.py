"""What every candidate has to be able to do, and how it is called: said by whoever judges, not by the candidate."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, Literal

Layout = Literal["bhsd", "bshd"]


@dataclasses.dataclass(frozen=True)
class Task:
    """How candidates are called, and what they are held to. As a file: a JSON object of these fields, all optional."""

    #: Axes of q, k, v and o as the candidate has them: B batch, H heads, S tokens, D head dim.
    layout: Layout = "bhsd"
    #: What the tensors are: "numpy", "torch", "jax", "cupy".
    arrays: str = "numpy"
    #: Where they lie: "cuda:0"; None: in host memory.
    device: str | None = None
    #: Whether all calls are causal, for candidates without a parameter for it.
    always_causal: bool = False
    #: Options of :func:`fa_verify.kernel`: causal, gqa, dtypes, lse, arithmetic, head_dim ...
    claims: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.layout not in ("bhsd", "bshd"):
            raise ValueError(f'"layout" is {self.layout!r}; "bhsd" or "bshd" is needed')

    @classmethod
    def load(cls, path: Path | None) -> Task:
        """Reads a file; None: everything has its default. ValueError: it has a key that is none of the fields."""
        if path is None:
            return cls()
        fields = json.loads(path.read_text())
        known = [field.name for field in dataclasses.fields(cls)]
        unknown = [key for key in fields if key not in known]
        if unknown:
            raise ValueError(f"{path}: {unknown[0]!r} is none of {', '.join(known)}")
        return cls(**fields)

    def text(self) -> str:
        """As :meth:`load` reads it."""
        return json.dumps(dataclasses.asdict(self), indent=2, sort_keys=True) + "\n"
