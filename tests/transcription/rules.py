"""Rules of the page that can be changed on purpose, to see that the comparison notices: compare.py --perturb RULE."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

RULES = {
    "sink_scaled": "a sink is multiplied by the scale of the scores",
    "sink_gradient_without_dlse": "delta has no dLSE in the gradient of sinks",
    "chunk_of_the_next": "a row's chunk is that of the position behind it",
    "bits_from_the_top": "a custom mask's bits are counted from the most significant one",
    "causal_from_the_top": "masks that are aligned with the last row are taken as aligned with the first",
    "merge_in_base_e": "every merge takes natural logarithms",
    "merge_gradient_without_ln_2": "dL of a merge in base 2 lacks the factor ln 2",
    "floor_truncates": "floordiv and floormod truncate as / and % do",
    "lists_from_the_end": "of n block lists for fewer entries, entry b has list n - 1 - b % n",
    "dropout_seed_plus_one": "the key of Philox is the next one",
    "dropout_rate": "a byte below T is kept, T itself is not",
    "alibi_from_the_start": "biases of ALiBi count from the first row, whatever the lengths",
    "softcap_after_bias": "the softcap comes after the bias",
    "rotary_from_zero": "queries rotate at their row, not behind the cache's keys",
    "packed_queries_from_the_top": "packed queries over a cache are aligned with the first key",
    "named_twice_counts_once": "a key that a list names twice counts as if it were named once",
    "heads_interleaved": "query head h reads KV head h % Hk",
}

_changed: set[str] = set()


def changed(rule: str) -> bool:
    """Whether this run breaks the rule."""
    assert rule in RULES, rule
    return rule in _changed


@contextmanager
def breaking(rule: str | None) -> Iterator[None]:
    """Within it, the rule is another one."""
    _changed.clear()
    if rule:
        assert rule in RULES, rule
        _changed.add(rule)
    try:
        yield
    finally:
        _changed.clear()
