"""Which features a case has: the rows of the table."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sequences import Case
from stored import Arrays

Has = Callable[[Case, Arrays], Any]


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
    return lambda case, t: re.search(pattern, texts(case))


def shared_lists(case: Case, t: Arrays) -> bool:
    n, m = t["kv_num_blocks"].shape[:2] if "kv_num_blocks" in t else (1, 1)
    batch = t["cu_seqlens_q"].size - 1 if "cu_seqlens_q" in t else t["q"].shape[0] if "q" in t else 1
    return n not in (1, batch) or m not in (1, case.get("heads_q", 1))


def cache(case: Case) -> dict[str, Any]:
    return dict(case.get("kvcache", {}))


NEW: dict[str, Has] = {
    "sinks, family flash": lambda c, t: "sinks" in t and family(c) == "flash",
    "sinks, family memeff": lambda c, t: "sinks" in t and family(c) == "memeff",
    "sinks, family flex": lambda c, t: "sinks" in t and family(c) == "flex",
    "sinks over a cache": lambda c, t: "sinks" in t and family(c) == "kvcache",
    "gradient of sinks": lambda c, t: "sinks" in t and "do" in t and sinks(c).get("grad", True),
    "gradient of sinks, with dLSE": lambda c, t: "sinks" in t and "dlse" in t,
    "LSE without its sink": lambda c, t: "sinks" in t and not sinks(c).get("in_lse", True),
    "chunked mask": lambda c, t: mask(c, "type") == "chunk",
    "chunked mask with a left edge": lambda c, t: mask(c, "type") == "chunk" and mask(c, "left", -1) >= 0,
    "chunked mask over a cache": lambda c, t: mask(c, "type") == "chunk" and "kvcache" in c,
    "custom mask": lambda c, t: "mask_bits" in t and "tree" not in c["mask_bits"],
    "custom mask, a tree": lambda c, t: "mask_bits" in t and "tree" in c["mask_bits"],
    "custom mask over a cache": lambda c, t: "mask_bits" in t and "kvcache" in c,
    "packed queries, contiguous cache": lambda c, t: "kvcache" in c and "cu_seqlens_q" in c and not cache(c).get("page_size"),
    "packed queries, pages": lambda c, t: "kvcache" in c and "cu_seqlens_q" in c and cache(c).get("page_size"),
    "splits of ordinary calls": lambda c, t: c.get("splits") and "kvcache" not in c,
    "merge, base e": lambda c, t: family(c) == "merge" and c.get("merge", {}).get("base", "e") == "e",
    "merge, base 2": lambda c, t: family(c) == "merge" and c.get("merge", {}).get("base") == "2",
    "merge backward, base e": lambda c, t: NEW["merge, base e"](c, t) and "do" in t,
    "merge backward, base 2": lambda c, t: NEW["merge, base 2"](c, t) and "do" in t,
    "expressions: & of ints or conditions": text_has(r"(?<!&)&(?!&)"),
    "expressions: ^": text_has(r"\^"),
    "expressions: |": text_has(r"(?<!\|)\|(?!\|)"),
    "expressions: ~": text_has("~"),
    "expressions: << or >>": text_has("<<|>>"),
    **{f"expressions: {name}": text_has(rf"\b{name}\(") for name in "ceil erf sigmoid pow where int float floordiv floormod".split()},
    "block lists for a divisor": shared_lists,
}
OLD: dict[str, Has] = {
    "causal": lambda c, t: mask(c, "type") == "causal",
    "window": lambda c, t: mask(c, "type") == "window",
    "aligned with the first row": lambda c, t: mask(c, "align") == "top_left",
    "softcap": lambda c, t: c.get("softcap"),
    "ALiBi": lambda c, t: "alibi_slopes" in t,
    "bias": lambda c, t: "bias" in t,
    "gradient of a bias": lambda c, t: "bias" in t and "do" in t and c["bias"].get("grad", True),
    "dropout, flash": lambda c, t: "dropout" in c and family(c) != "memeff",
    "dropout, memeff": lambda c, t: "dropout" in c and family(c) == "memeff",
    "packed sequences": lambda c, t: "cu_seqlens_k" in c,
    "seqused_k": lambda c, t: "seqused_k" in c,
    "leftpad_k": lambda c, t: "leftpad_k" in t,
    "grouped heads": lambda c, t: c.get("heads_kv", c.get("heads_q", 1)) != c.get("heads_q", 1),
    "V of another head dim": lambda c, t: "q" in t and t["v"].shape[-1] != t["q"].shape[-1],
    "dLSE": lambda c, t: "dlse" in t and "q" in t,
    "score_mod": lambda c, t: "score_mod" in c,
    "mask_mod": lambda c, t: "mask_mod" in c,
    "gradients of buffers": lambda c, t: any(b.get("dtype", "f32") == "f32" for b in c.get("buffers", {}).values()) and "do" in t,
    "block lists": lambda c, t: "kv_num_blocks" in t,
    "cache": lambda c, t: "kvcache" in c,
    "pages": lambda c, t: cache(c).get("page_size"),
    "appended keys": lambda c, t: cache(c).get("new"),
    "rotary positions": lambda c, t: "rotary" in cache(c),
    "cache in splits": lambda c, t: c.get("splits") and "kvcache" in c,
    "scale that is not positive": lambda c, t: c.get("scale", 1) <= 0,
}


def features_of(case: Case, t: Arrays) -> list[str]:
    return [name for name, has in {**NEW, **OLD}.items() if has(case, t)]


def is_new(case: Case, t: Arrays) -> bool:
    return any(has(case, t) for has in NEW.values())
