"""A case as adapters read it: the package's Case, and what follows from its lengths and its mask."""

from __future__ import annotations

from typing import Any

from fa_verify._case import Case


class Problem(Case):
    """Reads the JSON of one case (docs/reference/case-file.md). Holds no tensor."""

    def __init__(self, case: dict[str, Any]) -> None:
        super().__init__(case)
        self.bias_spec: dict[str, Any] = case.get("bias", {})
        self.buffer_specs: dict[str, dict[str, Any]] = case.get("buffers", {})
        self.left, self.right = self.window
        self.top_left = self.align == "top_left"
        self.cached = self.family == "kvcache"
        self.lens_q = _lengths(self.cu_seqlens_q, self.seqlen_q, self.batch)
        self.lens_k = _lengths(self.cu_seqlens_k, self.seqlen_k, self.batch)
        self.keys = self._keys()

    def _keys(self) -> list[int]:
        """How many keys each sequence attends to, masks aside."""
        if self.cache_seqlens is not None:
            n = [length + self.new for length in self.cache_seqlens]
        else:
            n = list(self.seqused_k) if self.seqused_k else self.lens_k
        return [a - b for a, b in zip(n, self.leftpad_k)] if self.leftpad_k else n

    @property
    def learnt(self) -> list[str]:
        """Captured buffers whose gradient is asked for."""
        if not (self.backward and self.score_mod):
            return []
        return [name for name, spec in self.buffer_specs.items() if spec.get("dtype", "f32") in ("f32", "f16", "bf16") and spec.get("grad", True)]

    @property
    def masked(self) -> bool:
        """A built-in mask hides keys by their distance from the diagonal."""
        return self.left >= 0 or self.right >= 0

    @property
    def nothing_there(self) -> bool:
        """Some sequence has no query, or some has no key."""
        return min(self.lens_q, default=0) == 0 or min(self.keys, default=0) <= 0

    @property
    def square(self) -> bool:
        """Every sequence has as many keys as queries, so that both corners are the same."""
        return all(k == q for k, q in zip(self.keys, self.lens_q))

    @property
    def corner_matters(self) -> bool:
        return self.masked and not self.square

    def shift(self, b: int = 0) -> int:
        """What is added to a row's number to get its diagonal."""
        return 0 if self.top_left else self.keys[b] - self.lens_q[b]

    def rows_without_keys(self, b: int = 0) -> bool:
        """True if a built-in mask, or the lack of keys, leaves some row of a sequence without one."""
        sq, sk, shift = self.lens_q[b], self.keys[b], self.shift(b)
        if sk <= 0:
            return sq > 0
        first_row_ends_early = self.right >= 0 and shift + self.right < 0
        last_row_begins_late = self.left >= 0 and sq - 1 + shift - self.left > sk - 1
        return first_row_ends_early or last_row_begins_late

    @property
    def some_row_is_empty(self) -> bool:
        return any(self.rows_without_keys(b) for b in range(self.batch))


def _lengths(offsets: tuple[int, ...] | None, length: int, batch: int) -> list[int]:
    return [length] * batch if offsets is None else [b - a for a, b in zip(offsets, offsets[1:])]
