"""The call: a case, its tensors as arrays, and what is to be done."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from fa_verify._arrays import Host, Place, Tensor, store
from fa_verify._case import INPUTS, Case, Json

#: The array of a result, by the name of the tensor that it is for.
_UPDATED = {"k": "k_after", "v": "v_after"}


@dataclasses.dataclass
class Result:
    """What a kernel computed. What it leaves None it has written in place, or does not deliver.

    o [B, Sq, Hq, Dv]; lse [B, Hq, Sq]; dq, dk, dv, dbias, dsinks: shaped as their inputs; packed calls: o [total, Hq, Dv],
    lse [Hq, total], or where padded_lse is True [B, Hq, Sq] of the longest. amax_p, amax_o [1]: where has_amax is True. dbuffers: gradients of captured buffers, by the buffers' names. k, v: the caches after a call
    that appends to them, unless it did so in place. kernel: a name for the report.
    """

    o: Any = None
    lse: Any = None
    dq: Any = None
    dk: Any = None
    dv: Any = None
    dbias: Any = None
    dsinks: Any = None
    amax_p: Any = None
    amax_o: Any = None
    p_debug: Any = None
    dbuffers: Mapping[str, Any] | None = None
    k: Any = None
    v: Any = None
    kernel: str | None = None

    @classmethod
    def of(cls, value: Any) -> Result:
        """A kernel's return value: o, (o, lse), a dict, a Result, or None (all written in place)."""
        if isinstance(value, Result):
            return value
        if value is None:
            return cls()
        if isinstance(value, Mapping):
            unknown = set(value) - {f.name for f in dataclasses.fields(cls)}
            if unknown:
                raise TypeError(f"the kernel returned {sorted(unknown)}, which are no names of outputs")
            return cls(**value)
        if isinstance(value, (tuple, list)):
            if len(value) != 2:
                raise TypeError(f"the kernel returned {len(value)} values; o, (o, lse), a dict or a Result is needed")
            return cls(o=value[0], lse=value[1])
        return cls(o=value)


class Call(Case):
    """A case together with its tensors; the tensors' names are those of a case file.

    Inputs are arrays, or None where the call has none of that name. They have the case's strides. numpy gets bf16,
    e4m3 and e5m2 as float32, which holds the same values; whatever is returned is rounded to the output's type.
    """

    q: Any  #: [B, Sq, Hq, D]; packed: [total_q, Hq, D]
    k: Any  #: [B, Sk, Hk, D]; packed: [total_k, Hk, D]; a cache: [rows, capacity, Hk, D] or [pages, page_size, Hk, D]
    v: Any  #: as k, with Dv
    bias: Any  #: [B or 1, Hq or 1, Sq or 1, Sk]
    alibi_slopes: Any  #: float32 [Hq] or [B, Hq]
    sinks: Any  #: float32 [Hq]
    mask_bits: Any  #: uint8: a bit for every pair, of a sequence's rows one after another, the lowest first
    mask_indptr: Any  #: int32 [B + 1]: the byte where a sequence's bits begin
    topk_indices: Any  #: int32 [B, Sq, topk], packed [total_q, topk]: slots of the keys that a row sees, -1: none
    topk_length: Any  #: int32 [B]: entries that are of the lists; None: all
    q_descale: Any  #: float32, where q is of 8 bits: see quantized_per, and docs/reference/semantics.md, "Eight bits"
    k_descale: Any
    v_descale: Any
    k_scales: Any  #: e4m3 as k, with a column for every 16, where quantized is "e2m1"; k and v are uint8 then: two numbers in each
    v_scales: Any
    o_scale: Any  #: float32 [1], where quantized_o says that o is of 8 bits: what is stored is o times it, saturating
    do: Any  #: as o
    dlse: Any  #: as lse
    k_new: Any  #: [B, new, Hk, D]
    v_new: Any
    cache_seqlens: Any  #: int32 [B]: valid keys before the call
    cache_batch_idx: Any  #: int32 [B]: the cache's row of each sequence
    block_table: Any  #: int32 [B, pages of a sequence]
    rotary_cos: Any  #: [positions, rotary_dim / 2]
    rotary_sin: Any
    kv_num_blocks: Any  #: int32 [B or 1, Hq or 1, query blocks]: partial blocks
    kv_indices: Any  #: int32 [..., key blocks]
    full_kv_num_blocks: Any
    full_kv_indices: Any
    q_num_blocks: Any  #: the same lists by key block, for a backward
    q_indices: Any
    full_q_num_blocks: Any
    full_q_indices: Any
    buffers: dict[str, Any]  #: captured buffers of score_mod and mask_mod, by name

    def __init__(self, case: Json, tensors: Sequence[Tensor], passes: Sequence[str], threads: int = 1, place: Place | None = None):
        super().__init__(case)
        self.passes = tuple(passes)  #: "forward", and "backward" if gradients are wanted
        self.threads = threads  #: how many threads the kernel may use
        self._place = place or Host("numpy")
        self._inputs = [t for t in tensors if t.access != "write"]
        self._outputs = {t.name: t for t in tensors if t.access == "write"}
        self.outputs = tuple(self._outputs)  #: names of the tensors that are to be written
        for name in INPUTS:
            setattr(self, name, None)
        self.buffers = {}
        self._place.bring(self._inputs)
        for t in self._inputs:
            self._give(t)

    def _give(self, tensor: Tensor) -> None:
        array = self._place.show(tensor)
        if tensor.name.startswith("buffer:"):
            self.buffers[tensor.name.removeprefix("buffer:")] = array
        else:
            setattr(self, tensor.name, array)

    @property
    def wants_gradients(self) -> bool:
        """Whether dq, dk, dv ... are to be computed."""
        return "backward" in self.passes

    def empty(self, name: str) -> Any:
        """An output in the memory that the case gives it (its strides; poisoned), for kernels that write into one.

        name is one of :attr:`outputs`. What is written there counts; it need not be returned.
        """
        return self._place.show(self._outputs[name])

    def finish(self, result: Result) -> tuple[str, str] | None:
        """Stores what the kernel returned. A fault as (state, text), if it wrote where it must not."""
        targets = dict(self._outputs)
        targets.update({t.name: t for t in self._inputs if t.access == "update"})
        returned = {name: value_of(result, name) for name in targets}
        fetched = self._place.fetch({name: value for name, value in returned.items() if value is not None})
        fault = self._place.finish([*self._inputs, *self._outputs.values()])
        for name, value in fetched.items():
            store(targets[name], value)
        return fault


def value_of(result: Result, name: str) -> Any:
    """What a result has for the output of that name; None: nothing."""
    if name.startswith("dbuffer:"):
        return (result.dbuffers or {}).get(name.removeprefix("dbuffer:"))
    return getattr(result, name, None)
