"""Which features a case has: the rows of the table."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sequences import Case, batch_of

Has = Callable[[Case], Any]


def family(case: Case) -> str:
    return str(case.get("family", "flash"))


def mask(case: Case, key: str, default: Any = None) -> Any:
    return case.get("mask", {}).get(key, default)


def sinks(case: Case) -> dict[str, Any]:
    asked = case.get("sinks")
    return asked if isinstance(asked, dict) else {}


def texts(case: Case) -> str:
    return f"{case.get('score_mod', '')} ; {case.get('mask_mod', '')}"


def text_has(pattern: str) -> Has:
    return lambda case: re.search(pattern, texts(case))


def lists(case: Case) -> bool:
    return "block_sparse" in case and "from" not in case["block_sparse"]


def shared_lists(case: Case) -> bool:
    written = case.get("block_sparse", {}).get("kv_num_blocks")
    return bool(written) and (len(written) not in (1, batch_of(case)) or len(written[0]) not in (1, case.get("heads_q", 1)))


def backward(case: Case) -> bool:
    return bool(case.get("backward", family(case) != "kvcache"))


FLOATS = ("f32", "f16", "bf16")


def has_buffers_of(*dtypes: str) -> Has:
    return lambda c: any(b.get("dtype", "f32") in dtypes for b in c.get("buffers", {}).values())


def has_gradients_of_buffers(case: Case) -> bool:
    return backward(case) and any(b.get("dtype", "f32") in FLOATS and b.get("grad", True) for b in case.get("buffers", {}).values())


def cache(case: Case) -> dict[str, Any]:
    return dict(case.get("kvcache", {}))


NEW: dict[str, Has] = {
    "sinks, family flash": lambda c: "sinks" in c and family(c) == "flash",
    "sinks, family memeff": lambda c: "sinks" in c and family(c) == "memeff",
    "sinks, family flex": lambda c: "sinks" in c and family(c) == "flex",
    "sinks over a cache": lambda c: "sinks" in c and family(c) == "kvcache",
    "gradient of sinks": lambda c: "sinks" in c and backward(c) and sinks(c).get("grad", True),
    "gradient of sinks, with dLSE": lambda c: "sinks" in c and backward(c) and c.get("grad_lse"),
    "LSE without its sink": lambda c: "sinks" in c and not sinks(c).get("in_lse", True),
    "chunked mask": lambda c: mask(c, "type") == "chunk",
    "chunked mask with a left edge": lambda c: mask(c, "type") == "chunk" and mask(c, "left", -1) >= 0,
    "chunked mask over a cache": lambda c: mask(c, "type") == "chunk" and "kvcache" in c,
    "custom mask": lambda c: "mask_bits" in c and "tree" not in c["mask_bits"],
    "custom mask, a tree": lambda c: "mask_bits" in c and "tree" in c["mask_bits"],
    "custom mask over a cache": lambda c: "mask_bits" in c and "kvcache" in c,
    "packed queries, contiguous cache": lambda c: "kvcache" in c and "cu_seqlens_q" in c and not cache(c).get("page_size"),
    "packed queries, pages": lambda c: "kvcache" in c and "cu_seqlens_q" in c and cache(c).get("page_size"),
    "splits of ordinary calls": lambda c: c.get("splits") and "kvcache" not in c,
    "merge, base e": lambda c: family(c) == "merge" and c.get("merge", {}).get("base", "e") == "e",
    "merge, base 2": lambda c: family(c) == "merge" and c.get("merge", {}).get("base") == "2",
    "merge backward, base e": lambda c: NEW["merge, base e"](c) and backward(c),
    "merge backward, base 2": lambda c: NEW["merge, base 2"](c) and backward(c),
    "expressions: & of ints or conditions": text_has(r"(?<!&)&(?!&)"),
    "expressions: ^": text_has(r"\^"),
    "expressions: |": text_has(r"(?<!\|)\|(?!\|)"),
    "expressions: ~": text_has("~"),
    "expressions: << or >>": text_has("<<|>>"),
    **{f"expressions: {name}": text_has(rf"\b{name}\(") for name in "ceil erf sigmoid pow where int float floordiv floormod".split()},
    "block lists for a divisor": shared_lists,
    "latent cache": lambda c: "mla" in c,
    "latent cache, new keys": lambda c: "mla" in c and cache(c).get("new"),
    "lists of keys": lambda c: "topk" in c,
    "lists of keys, pages": lambda c: "topk" in c and cache(c).get("page_size"),
    "lists of keys, packed rows": lambda c: "topk" in c and "cu_seqlens_q" in c,
    "head_dim above 256 over a cache": lambda c: "kvcache" in c and c.get("head_dim", 64) > 256,
    "padded LSE": lambda c: c.get("lse_layout") == "padded",
    "padded dLSE": lambda c: c.get("lse_layout") == "padded" and c.get("grad_lse") and backward(c),
    "buffers of bool": has_buffers_of("bool"),
    "buffers of i64": has_buffers_of("i64"),
    "buffers of f16 or bf16": has_buffers_of("f16", "bf16"),
    "buffers with strides": lambda c: any(b.get("strides") for b in c.get("buffers", {}).values()),
    "more than 8 buffers": lambda c: len(c.get("buffers", {})) > 8,
    "bias of packed sequences": lambda c: "bias" in c and "cu_seqlens_k" in c,
    "block lists of packed sequences": lambda c: "block_sparse" in c and "cu_seqlens_k" in c,
    "dropout with expressions or block lists": lambda c: "dropout" in c and ("score_mod" in c or "mask_mod" in c or "block_sparse" in c),
}
OLD: dict[str, Has] = {
    "causal": lambda c: mask(c, "type") == "causal",
    "window": lambda c: mask(c, "type") == "window",
    "aligned with the first row": lambda c: mask(c, "align") == "top_left",
    "softcap": lambda c: c.get("softcap"),
    "ALiBi": lambda c: "alibi" in c,
    "bias": lambda c: "bias" in c,
    "gradient of a bias": lambda c: "bias" in c and backward(c) and c["bias"].get("grad", True),
    "dropout, flash": lambda c: "dropout" in c and family(c) != "memeff",
    "dropout, memeff": lambda c: "dropout" in c and family(c) == "memeff",
    "packed sequences": lambda c: "cu_seqlens_k" in c,
    "seqused_k": lambda c: "seqused_k" in c,
    "leftpad_k": lambda c: "leftpad_k" in c or "leftpad" in cache(c),
    "grouped heads": lambda c: c.get("heads_kv", c.get("heads_q", 1)) != c.get("heads_q", 1),
    "V of another head dim": lambda c: c.get("head_dim_v", c.get("head_dim", 64)) != c.get("head_dim", 64),
    "dLSE": lambda c: c.get("grad_lse") and backward(c) and family(c) != "merge",
    "score_mod": lambda c: "score_mod" in c,
    "mask_mod": lambda c: "mask_mod" in c,
    "gradients of buffers": has_gradients_of_buffers,
    "block lists": lambda c: lists(c),
    "cache": lambda c: "kvcache" in c,
    "pages": lambda c: cache(c).get("page_size"),
    "appended keys": lambda c: cache(c).get("new"),
    "rotary positions": lambda c: "rotary" in cache(c),
    "cache in splits": lambda c: c.get("splits") and "kvcache" in c,
    "scale that is not positive": lambda c: c.get("scale", 1) <= 0,
}


def features_of(case: Case) -> list[str]:
    return [name for name, has in {**NEW, **OLD}.items() if has(case)]


def is_new(case: Case) -> bool:
    return any(has(case) for has in NEW.values())
