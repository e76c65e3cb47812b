"""The case: what is to be computed, without data."""

from __future__ import annotations

import itertools
from typing import Any

Json = dict[str, Any]

#: Tensors that a call may have as inputs, by the names that a case file gives them.
INPUTS = (
    "q", "k", "v", "bias", "alibi_slopes", "do", "dlse", "cu_seqlens_q", "cu_seqlens_k", "seqused_k", "leftpad_k",
    "k_new", "v_new", "cache_seqlens", "cache_batch_idx", "block_table", "rotary_cos", "rotary_sin",
    "kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices",
    "q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices",
    "mask_bits", "mask_indptr", "sinks", "topk_indices", "topk_length",
    "q_descale", "k_descale", "v_descale", "k_scales", "v_scales", "o_scale",
)  # fmt: skip


def _ints(values: list[int] | None) -> tuple[int, ...] | None:
    return None if values is None else tuple(values)


class Case:
    """A case's fields, by the names that a case file gives them (docs/reference/case-file.md).

    Whatever is absent has its default. Lengths are tuples here; in a :class:`fa_verify.Call` they are arrays.

    >>> case = Case({"heads_q": 4, "heads_kv": 2, "seqlen_q": 65, "mask": {"type": "causal"}})
    >>> case.causal, case.window, case.heads_kv, case.seqlen_k, case.head_dim
    (True, (-1, 0), 2, 65, 64)
    >>> latent = Case({"family": "kvcache", "mla": {}})
    >>> latent.head_dim, latent.head_dim_v, latent.heads_kv, latent.scale == 192**-0.5
    (576, 512, 1, True)
    """

    json: Json  #: the case as it came, defaults left out
    family: str  #: "flash", "memeff", "flex" or "kvcache"
    dtype: str  #: "f16", "bf16" or "f32"
    batch: int
    heads_q: int
    heads_kv: int  #: query head h reads KV head h // (heads_q // heads_kv)
    seqlen_q: int  #: with cu_seqlens: of the longest sequence
    seqlen_k: int  #: likewise; of a cache: its capacity
    head_dim: int
    head_dim_v: int
    scale: float
    softcap: float  #: 0: none
    mask: str  #: "none", "causal", "window" or "chunk"
    causal: bool
    window: tuple[int, int]  #: (left, right), -1: no bound; causal is (-1, 0), a chunk (left, 0)
    chunk: int  #: keys of a chunk, 0: no chunks
    has_mask_bits: bool
    align: str  #: "bottom_right" or "top_left"
    dropout: float  #: probability of dropping, 0: none
    dropout_seed: int
    dropout_offset: int
    score_mod: str | None
    mask_mod: str | None
    has_alibi: bool
    has_bias: bool
    has_bias_grad: bool
    has_sinks: bool
    has_sinks_grad: bool
    sinks_in_lse: bool  #: the LSE counts the sink
    has_blocks: bool
    q_block: int
    kv_block: int
    varlen: bool
    new: int  #: keys that a call appends to its cache
    page_size: int  #: 0: the cache has no pages
    has_mla: bool  #: a latent cache: v is a view of k's first head_dim_v columns, and v_new of k_new's
    topk: int  #: entries of each row's list of keys, 0: no lists
    quantized: str | None  #: "e4m3", "e5m2", "i8" or "e2m1": the type of keys and values; None: that of the case
    quantized_queries: bool  #: q has it too
    quantized_per: str  #: "tensor", "head", "token", "page" or "tile": what has a descale of its own
    quantized_o: str | None  #: "e4m3" or "e5m2": o is stored in it, times o_scale; None: it has the case's type
    has_amax: bool  #: amax_p and amax_o are outputs: the largest magnitudes of P and of O
    rotary_dim: int  #: 0: no rotary embedding
    rotary_interleaved: bool
    splits: int  #: 0: as the kernel chooses
    deterministic: bool
    backward: bool
    return_softmax: bool
    has_dlse: bool
    empty_lse: float  #: LSE of a row that sees no key
    padded_lse: bool  #: packed sequences: lse and dlse are [B, Hq, Sq] of the longest; what is behind a sequence's rows is nobody's

    def __init__(self, case: Json):
        self.json = case
        self._shape(case)
        self._scores(case)
        self._memory(case)

    def _shape(self, case: Json) -> None:
        self.family = case.get("family", "flash")
        self.dtype = case.get("dtype", "f16")
        self.cu_seqlens_q: Any = _ints(case.get("cu_seqlens_q"))
        self.cu_seqlens_k: Any = _ints(case.get("cu_seqlens_k"))
        self.seqused_k: Any = _ints(case.get("seqused_k"))
        self.varlen = self.cu_seqlens_q is not None
        self.batch = case.get("batch", 1)
        self.seqlen_q = case.get("seqlen_q", 1)
        self.seqlen_k = case.get("seqlen_k", self.seqlen_q)
        if self.cu_seqlens_q is not None:
            self.batch = len(self.cu_seqlens_q) - 1
            self.seqlen_q = _longest(self.cu_seqlens_q)
        if self.cu_seqlens_k is not None:
            self.seqlen_k = _longest(self.cu_seqlens_k)
        self.heads_q = case.get("heads_q", 1)
        self.heads_kv = case.get("heads_kv", 1 if "mla" in case else self.heads_q)
        latent = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, **case["mla"]} if "mla" in case else None
        self.head_dim = case.get("head_dim", latent["kv_lora_rank"] + latent["qk_rope_head_dim"] if latent else 64)
        self.head_dim_v = case.get("head_dim_v", latent["kv_lora_rank"] if latent else self.head_dim)
        scored = latent["qk_nope_head_dim"] + latent["qk_rope_head_dim"] if latent else self.head_dim
        self.scale = float(case.get("scale", scored**-0.5))

    def _scores(self, case: Json) -> None:
        self.softcap = float(case.get("softcap", 0))
        mask = case.get("mask", {})
        self.mask = mask.get("type", "none")
        self.causal = self.mask == "causal"
        self.align = mask.get("align", "bottom_right")
        ends_at_row = self.mask in ("causal", "chunk")
        self.window = (mask.get("left", -1), 0 if ends_at_row else mask.get("right", -1))
        self.chunk = mask.get("size", 0)
        self.has_mask_bits = "mask_bits" in case
        dropout = case.get("dropout", {})
        self.dropout = float(dropout.get("p", 0))
        self.dropout_seed = int(dropout.get("seed", "0"), 0)
        self.dropout_offset = int(dropout.get("offset", "0"), 0)
        self.score_mod = case.get("score_mod")
        self.mask_mod = case.get("mask_mod")
        self.has_alibi = "alibi" in case
        self.has_bias = "bias" in case
        self.backward = bool(case.get("backward", self.family != "kvcache" and "quantized" not in case))
        self.has_bias_grad = self.has_bias and self.backward and bool(case["bias"].get("grad", True))
        self.has_sinks = bool(case.get("sinks", False))
        sinks = case["sinks"] if isinstance(case.get("sinks"), dict) else {}
        self.has_sinks_grad = self.has_sinks and self.backward and bool(sinks.get("grad", True))
        self.sinks_in_lse = bool(sinks.get("in_lse", True))
        self.has_dlse = bool(case.get("grad_lse", False)) and self.backward
        self.empty_lse = float(case.get("empty_lse", "-inf" if self.family == "flex" else "+inf"))
        self.padded_lse = case.get("lse_layout") == "padded"

    def _memory(self, case: Json) -> None:
        blocks, cache = case.get("block_sparse"), case.get("kvcache", {})
        self.has_blocks = blocks is not None
        self.q_block = (blocks or {}).get("q_block", 128)
        self.kv_block = (blocks or {}).get("kv_block", 128)
        self.leftpad_k: Any = _ints(case.get("leftpad_k", cache.get("leftpad")))
        self.cache_seqlens: Any = _ints(cache.get("len"))
        self.cache_batch_idx: Any = _ints(cache.get("batch_idx"))
        self.new = cache.get("new", 0)
        self.page_size = cache.get("page_size", 0)
        self.has_mla = "mla" in case
        self.topk = case["topk"].get("k", 64) if "topk" in case else 0
        quantized = case.get("quantized")
        self.quantized = None if quantized is None else quantized.get("dtype", "e4m3")
        default = case.get("family") != "kvcache" and self.quantized not in ("i8", "e2m1")
        self.quantized_queries = quantized is not None and quantized.get("queries", default)
        self.quantized_per = (quantized or {}).get("descale", "tensor")
        stored = (quantized or {}).get("o", "io")
        self.quantized_o = None if stored == "io" else stored
        self.has_amax = (quantized or {}).get("amax", False)
        rotary = cache.get("rotary", {})
        self.rotary_dim = rotary.get("dim", 0)
        self.rotary_interleaved = rotary.get("interleaved", False)
        self.splits = case.get("splits", 0)
        self.deterministic = case.get("deterministic", False)
        self.return_softmax = case.get("return_softmax", False)

    @property
    def group(self) -> int:
        """Query heads that read one KV head."""
        return self.heads_q // self.heads_kv

    @property
    def buffer_names(self) -> list[str]:
        """Captured buffers of score_mod and mask_mod, in the case's order."""
        return list(self.json.get("buffers", {}))


def _longest(cu_seqlens: tuple[int, ...]) -> int:
    return max(b - a for a, b in itertools.pairwise(cu_seqlens))
