#!/usr/bin/env python3
"""A candidate for test_rules.sh: the plain child of tests/exec/child2.py within small limits, or one that cheats.

usage: child.py CHEAT [FILE]    FILE: what it keeps between processes"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "exec"))
import child2  # noqa: E402

LIMITS = {"batch": {"max": 2}, "heads_q": {"max": 4}, "seqlen_q": {"max": 24}, "seqlen_k": {"max": 40}, "head_dim": {"max": 16}}


class Candidate(child2.Child):
    def __init__(self, cheat: str, file: str):
        super().__init__({})
        self.cheat, self.file, self.n_calls, self.bank = cheat, file, 0, {}
        self.mine: int | None = None

    def hello(self) -> dict[str, Any]:
        said = {**super().hello(), "dtypes": ["f32"], "features": [], "passes": ["forward"], "limits": LIMITS}
        if self.cheat == "honest":
            said.update({"dtypes": ["f16", "f32"], "features": ["causal", "bottom_right", "gqa"], "passes": ["forward", "backward"]})
        elif self.cheat == "other_hello":
            said["device"] = f"process {os.getpid()}"
        elif self.cheat == "coarse":
            said["arithmetic"] = {"name": "recorded", "p": "e4m3", "ds": "e4m3"}
        elif self.cheat == "no_o":
            said["outputs"] = ["lse"]
        elif self.cheat == "any":
            said["empty_o"] = "any"
        elif self.cheat == "asked":
            said["supports"] = True
        elif self.cheat == "empty_claim":
            said["features"] += ["paged"]
        return said

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["type"] == "supports":
            return {"passes": [], "reason": "too hard today", "id": request["id"]}
        return super().answer(request)

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        self.n_calls += 1
        memory = self.region.at(request["memory"], request["bytes"])
        t = {name: child2.Tensor(memory, entry) for name, entry in request["tensors"].items()}
        if self.cheat == "late":
            return {"state": "unsupported", "text": "no more of these"}
        if self.cheat == "error":
            return {"state": "error", "text": "a bad day"}
        if self.cheat == "leaves_out":
            super().run(request)
            return {"state": "ok", "outputs": ["o"]}
        if self.cheat.startswith("replay"):
            return self.replay(request, memory, t)
        said = super().run(request) if self.cheat != "lazy" else {"state": "ok"}
        self.change(t, memory)
        return said

    # ---- answers from memory ----

    def replay(self, request: dict[str, Any], memory: Any, t: dict[str, Any]) -> dict[str, Any]:
        key = self.key(request, memory, t)
        kept = self.bank.get(key)
        if kept is None:
            said = super().run(request)
            self.bank[key] = {n: bytes(memory[s]) for n, s in self.spans(request, t)}
            return said
        for name, span in self.spans(request, t):
            memory[span] = kept[name]
        return {"state": "ok"}

    def spans(self, request: dict[str, Any], t: dict[str, Any]) -> list[tuple[str, slice]]:
        written = [n for n, e in request["tensors"].items() if e["access"] == "write"]
        ends = {n: t[n].place([k - 1 for k in t[n].shape]) + t[n].size for n in written}
        return [(n, slice(t[n].offset, ends[n])) for n in written]

    def key(self, request: dict[str, Any], memory: Any, t: dict[str, Any]) -> str:
        shapes = str([(n, x.shape) for n, x in t.items()])
        data = {"replay": [], "replay_q": ["q"], "replay_data": ["q", "k", "v", "do"]}[self.cheat]
        texts = [str([t[n].row(*self.index(t[n], i)) for i in range(self.rows(t[n]))]) for n in data if n in t]
        return hashlib.sha256("".join([shapes, *texts]).encode()).hexdigest()

    @staticmethod
    def rows(x: Any) -> int:
        return child2.math.prod(x.shape[:-1])

    @staticmethod
    def index(x: Any, flat: int) -> list[int]:
        where: list[int] = []
        for n in reversed(x.shape[:-1]):
            where.insert(0, flat % n)
            flat //= n
        return where

    # ---- right answers, changed ----

    def change(self, t: dict[str, Any], memory: Any) -> None:
        o = t["o"]
        last, first = [n - 1 for n in o.shape], [0] * len(o.shape)
        if self.cheat == "coarse":
            for i in range(self.rows(o)):  # as if P had three bits
                o.set_row(self.index(o, i), [x * (1 + 1e-3 * (-1) ** c) for c, x in enumerate(o.row(*self.index(o, i)))])
        elif self.cheat == "near":
            o[last] += 5e-3
        elif self.cheat == "counts":  # within its bound, and never the same twice
            o[first] *= 1 + 1.2e-7 * self.n_calls
        elif self.cheat == "by_process":
            o[first] *= 1 + 1.2e-7 * self.number()
        elif self.cheat == "input":
            t["q"][first] = 7
        elif self.cheat == "spy" and self.n_calls == 1:
            with open(self.file, "a") as f:
                f.write(hashlib.sha256(str(t["q"].row(*first[:-1])).encode()).hexdigest() + "\n")

    def number(self) -> int:
        """Of this process among those that were given the file: 0 to 8, and another one for the next."""
        if self.mine is None:
            with open(self.file, "a") as f:
                f.write("x")
            self.mine = os.path.getsize(self.file) % 9
        return self.mine


if __name__ == "__main__":
    candidate = Candidate(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "")
    child2.serve(candidate, sys.stdin, lambda text: print(text, end="", flush=True))
