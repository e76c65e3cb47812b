#!/usr/bin/env python3
"""Mistakes that are known are explained as what they are.

usage: planted.py FA-VERIFY PLANTED.so [NAME...]   (-v before them: what was said of every case)

Makes each mistake of the plugin `planted` on a few cases that show it, and holds the explanation against the
hypothesis of that name. Exit 1: fewer than 28 of 30 are explained, one is explained by other hypotheses alone, no case
of one failed, or a case failed without a mistake. Exit 77: this program explains nothing."""
import pathlib
import re
import sys

import cases

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from share import share

NEEDED = 28 / 30
DTYPES = ("f32", "bf16", "f16")
PLAIN = {"batch": 2, "heads_q": 2, "seqlen_q": 70, "seqlen_k": 140, "head_dim": 32}
WIDE_WINDOW = {**PLAIN, "seqlen_q": 300, "seqlen_k": 300, "mask": {"type": "window", "left": 100, "right": 9}}
SQUARE = {**PLAIN, "seqlen_q": 140}
CAUSAL = {**PLAIN, "seqlen_q": 130, "mask": {"type": "causal"}}
WINDOW = {**PLAIN, "seqlen_q": 130, "mask": {"type": "window", "left": 20, "right": 9}}
GROUPS = {**PLAIN, "heads_q": 6, "heads_kv": 3}
TALL = {**PLAIN, "seqlen_q": 130}
FORWARD = {"backward": False}
ALIBI = {**PLAIN, "alibi": {"slopes": "standard"}, "heads_q": 4}
BIAS = {**SQUARE, "bias": {"shape": ["b", "h", "q", "k"], "grad": True}}
DROPOUT = {**PLAIN, "dropout": {"p": 0.2, "seed": "5", "offset": "8"}}
MEMEFF_DROPOUT = {**DROPOUT, "family": "memeff"}
SOFTCAP = {**PLAIN, "softcap": 1.5}
PACKED = {"heads_q": 2, "head_dim": 32, "cu_seqlens_q": [0, 40, 120, 150], "cu_seqlens_k": [0, 90, 190, 290]}
CACHE = {"family": "kvcache", "batch": 2, "heads_q": 2, "seqlen_q": 3, "seqlen_k": 256, "head_dim": 32,
         "mask": {"type": "causal"}}
STAIRS = {**PLAIN, "seqlen_k": 300, "fill": "staircase_up"}


def cache(**more) -> dict:
    return {**CACHE, "kvcache": {"len": [200, 131], **more}}


# FA_PLANTED, the hypotheses that are this very mistake on these cases, what the cases have, their element types.
SCALE = {"scale_times"}
RIGHT = {"mask_one_key_more", "window_right_one_more"}
PLANTED = [
    ("scale_missing", SCALE, [PLAIN, CAUSAL]),
    ("scale_twice", SCALE, [PLAIN]),
    ("scale_of_padded_head_dim", SCALE, [{**PLAIN, "head_dim": 96}, {**PLAIN, "head_dim": 40}]),
    ("scale_times", set(), [PLAIN, CAUSAL]),
    ("scale_times:300", set(), [PLAIN]),
    ("scale_log2e", SCALE, [PLAIN, WINDOW]),
    ("lse_base_2", set(), [{**PLAIN, **FORWARD}]),
    ("lse_without_max", set(), [{**PLAIN, **FORWARD}]),
    ("lse_without_scale", set(), [{**PLAIN, **FORWARD}]),
    ("lse_without_scale__of_max", set(), [{**PLAIN, **FORWARD}]),
    ("lse_negated", set(), [{**PLAIN, **FORWARD}]),
    ("mask_other_corner", set(), [CAUSAL, WINDOW]),
    ("mask_one_key_more", RIGHT, [CAUSAL]),
    ("mask_one_key_fewer", {"window_right_one_fewer"}, [CAUSAL]),
    ("window_left_one_more", set(), [WINDOW]),
    ("window_left_one_fewer", set(), [WINDOW]),
    ("window_right_one_more", RIGHT, [WINDOW]),
    ("window_right_one_fewer", {"mask_one_key_fewer"}, [WINDOW, {**WINDOW, "mask": {"type": "window", "right": 0}}]),
    ("window_ignored", {"mask_ignored"}, [WINDOW]),
    ("window_left_ignored", set(), [WINDOW]),
    ("window_right_ignored", set(), [WINDOW]),
    ("mask_ignored", {"window_right_ignored"}, [CAUSAL]),
    ("mask_whole_tiles", set(), [CAUSAL]),
    ("mask_whole_tiles__of_keys:16", set(), [WINDOW]),
    ("last_key_lost", set(), [PLAIN]),
    ("last_key_tile_lost", set(), [PLAIN, GROUPS]),
    ("last_key_tile_lost:32", set(), [{**PLAIN, "seqlen_k": 150}]),
    ("first_key_tile_lost", set(), [PLAIN]),
    ("last_key_tile_lost__in_part", set(), [{**PACKED, "cu_seqlens_k": [0, 128, 190, 290]}]),
    ("first_key_tile_lost__in_part", set(), [WIDE_WINDOW]),
    ("keys_past_end_as_zeros", set(), [PLAIN]),
    ("keys_past_end_as_zeros:128", set(), [{**PLAIN, "seqlen_k": 100}]),
    ("last_rows_lost", set(), [{**PLAIN, **FORWARD, "seqlen_q": 90}]),
    ("other_kv_head_modulo", set(), [GROUPS]),
    ("other_kv_head_neighbour", set(), [GROUPS]),
    ("first_kv_head_for_all", set(), [GROUPS]),
    ("other_sequence", set(), [{**PLAIN, "batch": 3}]),
    ("other_page", set(), [cache(page_size=32)]),
    ("k_for_v", set(), [PLAIN]),
    ("v_for_k", set(), [PLAIN]),
    ("q_for_k", set(), [{**SQUARE, "seqlen_q": 90, "seqlen_k": 90}]),
    ("softcap_missing", set(), [SOFTCAP]),
    ("softcap_before_scale", set(), [SOFTCAP]),
    ("softcap_twice", set(), [SOFTCAP]),
    ("alibi_missing", set(), [ALIBI]),
    ("alibi_other_corner", set(), [ALIBI]),
    ("alibi_of_other_head", set(), [ALIBI]),
    ("alibi_of_other_head__kv", set(), [{**ALIBI, "heads_kv": 2}]),
    ("alibi_sign", set(), [ALIBI]),
    ("bias_missing", set(), [BIAS]),
    ("bias_transposed", set(), [BIAS]),
    ("bias_of_other_head", set(), [{**BIAS, "heads_q": 3}]),
    ("bias_of_other_batch", set(), [{**BIAS, "batch": 3}]),
    ("bias_not_scaled", set(), [BIAS]),
    ("dbias_not_summed", set(), [{**BIAS, "bias": {"shape": [1, "h", "q", "k"], "grad": True}}]),
    ("dropout_missing", set(), [DROPOUT, MEMEFF_DROPOUT]),
    ("dropout_inverted", set(), [DROPOUT]),
    ("dropout_not_scaled", set(), [DROPOUT, MEMEFF_DROPOUT]),
    ("dropout_scaled_twice", set(), [DROPOUT]),
    ("dropout_other_rounds", set(), [DROPOUT, MEMEFF_DROPOUT]),
    ("dropout_other_offset", set(), [DROPOUT, MEMEFF_DROPOUT]),
    ("dropout_missing_in_backward", set(), [DROPOUT]),
    ("delta_missing", set(), [PLAIN, CAUSAL]),
    ("delta_of_unrounded_o", set(), [PLAIN], ("bf16",)),
    ("delta_of_rounded_p", set(), [PLAIN]),
    ("dq_without_scale", set(), [PLAIN]),
    ("dk_without_scale", set(), [PLAIN, WINDOW]),
    ("dq_scaled_twice", set(), [PLAIN]),
    ("dk_scaled_twice", set(), [PLAIN]),
    ("one_head_of_group", set(), [GROUPS]),
    ("one_head_of_group__first", set(), [GROUPS]),
    ("one_head_of_group__lost", set(), [{**GROUPS, "heads_q": 8, "heads_kv": 2}]),
    ("dk_of_other_head", set(), [GROUPS]),
    ("dlse_ignored", set(), [{**PLAIN, "grad_lse": True}]),
    ("o_not_rescaled", set(), [{**STAIRS, **FORWARD}, {**PLAIN, **FORWARD}]),
    ("o_not_rescaled:1", set(), [{**PLAIN, **FORWARD}]),
    ("o_not_normalised", set(), [{**PLAIN, **FORWARD}]),
    ("max_not_subtracted", set(), [{**PLAIN, "fill": "logits_64x", **FORWARD}]),
    ("l_not_rescaled", set(), [{**STAIRS, **FORWARD}, {**PLAIN, **FORWARD}]),
    ("rows_swapped", set(), [{**TALL, **FORWARD}]),
    ("rows_swapped:1", set(), [{**TALL, **FORWARD}]),
    ("columns_swapped", set(), [{**PLAIN, **FORWARD}]),
    ("fragments_transposed", set(), [{**PLAIN, **FORWARD, "seqlen_q": 64}]),
    ("halves_swapped", set(), [{**PLAIN, **FORWARD}]),
    ("output_zero", set(), [{**PLAIN, **FORWARD}]),
    ("output_of_other_rows", set(), [{**TALL, **FORWARD}]),
    ("output_of_other_rows__queries", set(), [{**TALL, **FORWARD}, {**CAUSAL, **FORWARD}]),
    ("rounded_p_bf16", set(), [PLAIN], ("f32", "f16")),
    ("rounded_p_bf16__in_ds", set(), [PLAIN]),
    ("rounded_p_f16", {"operands_tf32"}, [PLAIN], ("f32",)),
    ("rounded_p_e4m3", set(), [PLAIN]),
    ("rounded_p_e5m2", set(), [PLAIN]),
    ("operands_tf32", {"rounded_p_f16"}, [PLAIN], ("f32",)),
    ("operands_bf16", set(), [PLAIN], ("f32", "f16")),
    ("accumulate_f16", set(), [PLAIN], ("f32",)),
    ("accumulate_bf16", set(), [PLAIN]),
    ("accumulate_f16__scores", set(), [PLAIN], ("f32",)),
    ("accumulate_bf16__tiles", set(), [PLAIN]),
    ("truncated_instead_of_rounded", set(), [PLAIN], ("bf16", "f16")),
    ("score_mod_ignored", set(), [{**PLAIN, "family": "flex", "score_mod": "score * 0.5 + 0.02 * (q_idx - kv_idx)"}]),
    ("mask_mod_ignored", set(), [{**PLAIN, "family": "flex", "mask_mod": "(q_idx + kv_idx) % 3 != 0"}]),
    ("mask_mod_ignored,block_list_ignored", {"block_list_ignored"}, [{**PLAIN, "family": "flex", "mask_mod": "q_idx + 70 >= kv_idx",
                                                                     "block_sparse": {"from": "mask_mod"}}]),
    ("mask_mod_ignored__first_pair", set(), [{**PLAIN, "batch": 1, "seqlen_q": 150, "seqlen_k": 300, "family": "flex",
                                              "mask_mod": "q_idx + 70 >= kv_idx", "block_sparse": {"from": "mask_mod"}}]),
    ("block_list_ignored", set(), [{**PLAIN, "family": "flex", "seqlen_q": 130, "block_sparse": {
        "q_block": 32, "kv_block": 32, "density": 0.6, "seed": "3"}}]),
    ("rotary_missing", set(), [cache(new=3, rotary={"dim": 32})]),
    ("rotary_other_style", set(), [cache(new=3, rotary={"dim": 32})]),
    ("cache_not_appended", set(), [cache(new=3)]),
    ("other_kv_head_modulo", set(), [{**PACKED, "heads_q": 4, "heads_kv": 2}]),
    ("mask_other_corner", set(), [{**PACKED, "mask": {"type": "causal"}}]),
]


def without_mistake(verify: str, plugin: str) -> list[str]:
    """The mistakes whose cases fail though none is made. Those that ignore expressions are not asked for them then."""
    every = [{**base, "dtype": dtype, "name": planted} for planted, _, bases, *dtypes in PLANTED for base in bases
             for dtype in (dtypes[0] if dtypes else DTYPES)]
    return [failure["name"] for failure in cases.failures(verify, plugin, "", every)]


def judge(verify: str, plugin: str, planted: str, same: set, bases: list, dtypes: tuple = DTYPES) -> dict:
    """Of one mistake: how many of its cases failed, were explained rightly, by others too, or by others alone."""
    wanted = [{**base, "dtype": dtype, "name": f"{i}_{dtype}"} for i, base in enumerate(bases) for dtype in dtypes]
    right = same | {re.match(r"[a-z0-9]+(_[a-z0-9]+)*", planted).group()}
    found = {"planted": planted, "cases": len(wanted), "failed": 0, "right": 0, "both": 0, "wrong": 0, "named": {}}
    for failure in cases.failures(verify, plugin, planted, wanted):
        named = cases.names(failure)
        found["failed"] += 1
        if right & set(named):
            found["both" if set(named) - right else "right"] += 1
        elif named:
            found["wrong"] += 1
        found["named"][failure["name"]] = named
    return found


def verdict(found: dict) -> str:
    if found["failed"] == 0:
        return "DID NOT FAIL"
    if found["wrong"]:
        return "WRONG"
    explained = found["right"] + found["both"]
    if 2 * explained <= found["failed"]:
        return "not explained"
    return "right" if found["both"] == 0 else "right, and others"


def main(arguments: list[str]) -> int:
    verbose = arguments[:1] == ["-v"]
    verify, plugin, *only = arguments[verbose:]
    cases.hypotheses(verify)
    chosen = share([p for p in PLANTED if not only or p[0] in only])
    verdicts = []
    print("| mistake | failed | explained | named | verdict |\n|---|---|---|---|---|")
    for found in cases.in_parallel(lambda *p: judge(verify, plugin, *p), chosen):
        verdicts.append(verdict(found))
        named = sorted({n for each in found["named"].values() for n in each})
        print(f"| {found['planted']} | {found['failed']} of {found['cases']} | {found['right'] + found['both']} | "
              f"{' '.join(named)} | {verdicts[-1]} |")
        for name, each in sorted(found["named"].items()) if verbose else []:
            print(f"    {name}: {' '.join(each) or '-'}")
    explained = sum(v.startswith("right") for v in verdicts)
    wrong_anyway = [] if only else without_mistake(verify, plugin)
    for name in wrong_anyway:
        print(f"{name}: its case fails without the mistake")
    bad = len(wrong_anyway) + verdicts.count("WRONG") + verdicts.count("DID NOT FAIL")
    print(f"{explained} of {len(verdicts)} explained, {verdicts.count('WRONG')} by other hypotheses alone, "
          f"{verdicts.count('DID NOT FAIL')} did not fail")
    return 1 if bad or explained < NEEDED * len(verdicts) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
