"""What a call may ask for beyond plain attention: the words of the protocol, each with what it means."""

from __future__ import annotations

FAMILIES = ("flash", "memeff", "flex", "kvcache")
DTYPES = ("f16", "bf16", "f32")

#: Features that are keyword arguments of :func:`fa_verify.kernel`.
FEATURES = {
    "causal": "a causal mask",
    "window": "a sliding window, (left, right)",
    "bottom_right": "masks that end in the bottom right corner; declared with causal or window unless it is False",
    "top_left": "masks that start in the top left corner",
    "varlen": "packed sequences: cu_seqlens_q, cu_seqlens_k",
    "seqused_k": "only the first keys of each sequence exist",
    "leftpad_k": "the first keys of each sequence are hidden",
    "gqa": "fewer KV heads than query heads",
    "head_dim_v": "head_dim_v other than head_dim",
    "softcap": "softcap * tanh(score / softcap)",
    "alibi": "alibi_slopes",
    "bias": "an additive bias",
    "bias_grad": "its gradient, dbias",
    "dropout": "dropout by the family's random numbers",
    "dlse": "a gradient of the LSE comes in with that of O",
    "return_softmax": "the debug matrix of dropout, p_debug",
    "score_mod": "an expression that changes a score",
    "mask_mod": "an expression that hides pairs",
    "captures": "buffers that expressions read; declared with these unless it is False",
    "captures_grad": "their gradients",
    "captures_bool": "buffers of bool",
    "captures_i64": "buffers of int64",
    "captures_half": "buffers of f16 and bf16",
    "captures_half_grad": "gradients of these, in their types",
    "captures_strides": "buffers that are not dense: transposed, with gaps, repeated by a stride of 0",
    "captures_many": "more than 8 buffers",
    "block_sparse": "lists of blocks that are visited",
    "append": "new keys and values are written to the cache",
    "paged": "a cache in pages: block_table",
    "batch_idx": "rows of the cache by number: cache_batch_idx",
    "rotary": "rotary embedding: rotary_cos, rotary_sin",
    "splits": "a given number of splits of the keys",
    "deterministic": "gradients must have the same bits in every run",
    "chunk": "a row sees no key before its own chunk of chunk keys",
    "mask_bits": "a bit for every pair: mask_bits, mask_indptr",
    "sinks": "a logit a head in the denominator: sinks",
    "sinks_grad": "its gradient, dsinks",
    "lse_without_sinks": "an LSE that leaves the sink out",
    "padded_lse": "packed sequences whose lse and dlse are [B, Hq, Sq] of the longest",
    "mla": "a latent cache: v is a view of k's first columns",
    "topk": "a list of keys for each row: topk_indices, topk_length",
    "quantized": "queries, keys and values of 8 bits: q_descale, k_descale, v_descale for tensors or heads",
    "quantized_keys": "keys and values of 8 bits beside queries of 16: k_descale, v_descale for tensors or heads",
    "quantized_tokens": "descales for tokens and heads, or for pages",
    "quantized_mixed": "k of a latent cache is bytes: a row has numbers of e4m3, a float32 descale for each 128 of them, other columns of the case's type",
    "quantized_e2m1": "caches of 4 bits: k and v are uint8 with two numbers in each, the first in the low bits; k_scales, v_scales of 16 numbers, and k_descale, v_descale",
    "quantized_amax": "the largest magnitudes of P and of O are returned: amax_p, amax_o",
    "quantized_o": "o is e4m3 or e5m2: o_scale times what it is, to nearest even, saturating",
    "quantized_append": "k_new and v_new of 16 bits, which the call stores in 8: divided by their descale, to nearest even, saturating",
    "empty_lse": "another LSE of rows without keys than the family's",
}

#: Words that version 1 of the protocol does not know: it took them for granted. Pairs of features ("bias_varlen"),
#: which it does not know either, are in none of these tables.
SINCE_VERSION_2 = ("bottom_right", "captures", "captures_grad", "chunk", "mask_bits", "sinks", "sinks_grad", "lse_without_sinks", "mla", "topk",
                   "padded_lse", "quantized", "quantized_keys", "quantized_tokens", "quantized_mixed", "quantized_append", "quantized_e2m1", "quantized_amax", "quantized_o", "captures_bool", "captures_i64", "captures_half",
                   "captures_half_grad", "captures_strides", "captures_many")  # fmt: skip
