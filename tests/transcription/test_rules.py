#!/usr/bin/env python3
"""The comparison can fail: test_rules.py PROGRAM. Every rule that compare.py --perturb knows has a case here whose golden agrees with
the transcription, and does not once the rule is broken. Philox gives the page's table of numbers. 77: there is no numpy."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
try:
    import numpy as np
except ImportError:
    print(f"skipped: {sys.executable} has no numpy")
    sys.exit(77)

from agreement import hold
from goldens import written
from philox import halves, philox
from rules import RULES, breaking
from sequences import Case

SMALL: Case = {"heads_q": 4, "heads_kv": 2, "seqlen_q": 9, "seqlen_k": 14, "head_dim": 8}
LISTS: Case = {
    **{"q_block": 8, "kv_block": 8, "kv_num_blocks": [[[1, 2]], [[2, 1]]], "kv_indices": [[[[0, 1], [0, 1]]], [[[1, 0], [1, 0]]]]},
    **{"full_kv_num_blocks": [[[0, 0]], [[0, 0]]], "full_kv_indices": [[[[0, 1], [0, 1]]], [[[0, 1], [0, 1]]]]},
}
CACHE: Case = {"family": "kvcache", "batch": 2, "heads_q": 2, "seqlen_q": 3, "seqlen_k": 32, "head_dim": 8}
MERGE: Case = {"family": "merge", "heads_q": 2, "seqlen_q": 5, "head_dim": 8, "merge": {"parts": 3, "base": "2"}, "grad_lse": True}
CAUSAL = {"type": "causal"}
CASES: dict[str, Case] = {
    "sink_scaled": {**SMALL, "sinks": True},
    "sink_gradient_without_dlse": {**SMALL, "sinks": True, "grad_lse": True},
    "chunk_of_the_next": {**SMALL, "mask": {"type": "chunk", "size": 5}},
    "bits_from_the_top": {**SMALL, "mask_bits": {"density": 0.5}},
    "causal_from_the_top": {**SMALL, "mask": CAUSAL},
    "merge_in_base_e": MERGE,
    "merge_gradient_without_ln_2": MERGE,
    "floor_truncates": {**SMALL, "family": "flex", "score_mod": "score + 0.5 * floordiv(q_idx - kv_idx, 3)"},
    "dropout_seed_plus_one": {**SMALL, "dropout": {"p": 0.4, "seed": "7"}},
    "dropout_rate": {**SMALL, "seqlen_q": 64, "seqlen_k": 64, "dropout": {"p": 0.4, "seed": "7"}},
    "alibi_from_the_start": {**SMALL, "alibi": {"slopes": "standard"}},
    "softcap_after_bias": {**SMALL, "softcap": 2, "bias": {"shape": ["b", "h", "q", "k"]}},
    "rotary_from_zero": {**CACHE, "mask": CAUSAL, "kvcache": {"len": [9, 4], "new": 2, "rotary": {"dim": 8}}},
    "packed_queries_from_the_top": {**CACHE, "cu_seqlens_q": [0, 3, 8], "mask": CAUSAL, "kvcache": {"len": [20, 11], "page_size": 8}},
    "named_twice_counts_once": {**CACHE, "kvcache": {"len": [30, 20]}, "topk": {"k": 12, "repeated": 0.5}},
    "heads_interleaved": {**SMALL, "mask": CAUSAL},
    "lists_from_the_end": {**SMALL, "family": "flex", "batch": 4, "block_sparse": LISTS},
}
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "semantics.md"
NUMBERS = re.compile(r"^\| (7|10) \| (\w+) \| (\w+) \| (\d+), (\d+) \| ((?:[0-9a-f]{8} ?){4})\|$", re.M)


def other_numbers() -> list[str]:
    """Rows of the page's table that Philox does not give."""
    rows = NUMBERS.findall(PAGE.read_text(encoding="utf-8"))
    assert len(rows) == 6, f"{PAGE.name} has {len(rows)} rows of numbers"
    bad = []
    for rounds, seed, xy, z, w, result in rows:
        words = philox(*halves(np.array([int(xy, 0)], np.uint64)), np.uint64(z), np.uint64(w), int(seed, 0), int(rounds))
        text = " ".join(f"{int(word):08x}" for word in words[:, 0])
        bad += [] if text == result.strip() else [f"Philox of seed {seed} at {xy}: {text}, not {result}"]
    return bad


def main() -> int:
    program = sys.argv[1]
    missing = set(RULES) ^ set(CASES)
    bad = other_numbers() + [f"no case for {rule}, or no such rule" for rule in sorted(missing)]
    goldens = {golden.name: golden for golden in written(program, [{**case, "name": rule} for rule, case in CASES.items()])}
    for rule, golden in goldens.items():
        bad += [f"{rule}: disagrees before it is broken: {text}" for text in hold(golden).wrong]
        with breaking(rule):
            noticed = hold(golden).wrong
        bad += [] if noticed else [f"{rule}: broken, and nothing disagrees"]
    print("\n".join(bad) or f"{len(goldens)} rules, each of which is noticed when it is broken")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
