#include "gpu/contract/features.h"

#include "gpu/contract/mods.h"

#include <stddef.h>

/* ---- masks and lengths ---- */

static bool is_causal(const fa_problem *p) {
  return p->mask.type == FA_MASK_CAUSAL;
}
static bool is_window(const fa_problem *p) {
  return p->mask.type == FA_MASK_WINDOW || (p->mask.type == FA_MASK_CHUNK && p->mask.left >= 0);
}
static bool is_chunk(const fa_problem *p) {
  return p->mask.type == FA_MASK_CHUNK;
}
static bool is_top_left(const fa_problem *p) {
  return p->mask.type != FA_MASK_NONE && p->mask.align == FA_ALIGN_TOP_LEFT;
}
static bool has_mask_bits(const fa_problem *p) {
  return p->mask_bits.present;
}
static int64_t length_of(const fa_int32_array *cu, int64_t b, int64_t otherwise) {
  return cu->n > 0 ? (int64_t)cu->v[b + 1] - cu->v[b] : otherwise;
}
/* A mask in the bottom right corner, and a sequence whose corners differ. */
static bool is_bottom_right(const fa_problem *p) {
  if (p->mask.type == FA_MASK_NONE || p->mask.align != FA_ALIGN_BOTTOM_RIGHT) return false;
  for (int64_t b = 0; b < p->batch; ++b) {
    int64_t keys = length_of(&p->cu_seqlens_k, b, p->seqlen_k);
    if (p->kvcache.present) keys = p->kvcache.len.v[b] + p->kvcache.n_new;
    if (p->seqused_k.n > 0) keys = p->seqused_k.v[b];
    if (p->leftpad_k.n > 0) keys -= p->leftpad_k.v[b];
    if (keys != length_of(&p->cu_seqlens_q, b, p->seqlen_q)) return true;
  }
  return false;
}
static bool has_seqused(const fa_problem *p) {
  return p->seqused_k.n > 0;
}
static bool has_leftpad(const fa_problem *p) {
  return p->leftpad_k.n > 0;
}

/* ---- shapes and scores ---- */

static bool has_groups(const fa_problem *p) {
  return p->heads_q != p->heads_kv;
}
static bool has_head_dim_v(const fa_problem *p) {
  return p->head_dim != p->head_dim_v;
}
static bool has_softcap(const fa_problem *p) {
  return p->softcap != 0;
}
static bool has_alibi(const fa_problem *p) {
  return p->alibi.present;
}
static bool has_bias(const fa_problem *p) {
  return p->bias.present;
}
static bool has_bias_grad(const fa_problem *p) {
  return p->bias.present && p->bias.grad && p->backward;
}
static bool has_dropout(const fa_problem *p) {
  return p->dropout.p > 0;
}
static bool has_dlse(const fa_problem *p) {
  return p->grad_lse && p->backward;
}
static bool has_return_softmax(const fa_problem *p) {
  return p->return_softmax;
}
static bool has_splits(const fa_problem *p) {
  return p->splits > 0;
}
static bool is_deterministic(const fa_problem *p) {
  return p->deterministic;
}
static bool has_empty_lse(const fa_problem *p) {
  return p->empty_lse != fa_family_default_empty_lse(p->family);
}

/* ---- expressions ---- */

static bool has_score_mod(const fa_problem *p) {
  return p->score_mod != NULL;
}
static bool has_mask_mod(const fa_problem *p) {
  return p->mask_mod != NULL;
}
static bool has_mods(const fa_problem *p) {
  return p->score_mod != NULL || p->mask_mod != NULL;
}
static bool has_block_sparse(const fa_problem *p) {
  return p->block_sparse.present;
}
static bool has_captures(const fa_problem *p) {
  return p->n_captures > 0;
}
static bool has_captures_grad(const fa_problem *p) {
  for (int i = 0; i < p->n_captures; ++i)
    if (p->captures[i].grad && p->backward) return true;
  return false;
}

static bool has_captures_bool(const fa_problem *p) {
  return fa_problem_has_buffer(p, FA_BOOL, false);
}
static bool has_captures_i64(const fa_problem *p) {
  return fa_problem_has_buffer(p, FA_I64, false);
}
static bool has_captures_half(const fa_problem *p) {
  return fa_problem_has_buffer(p, FA_F16, false) || fa_problem_has_buffer(p, FA_BF16, false);
}
static bool has_captures_half_grad(const fa_problem *p) {
  return fa_problem_has_buffer(p, FA_F16, true) || fa_problem_has_buffer(p, FA_BF16, true);
}
static bool has_captures_strides(const fa_problem *p) {
  for (int i = 0; i < p->n_captures; ++i)
    if (p->captures[i].n_strides > 0) return true;
  return false;
}
static bool has_captures_many(const fa_problem *p) {
  return p->n_captures > 8; /* all that there could be once */
}

/* ---- the cache ---- */

static bool has_new(const fa_problem *p) {
  return p->kvcache.n_new > 0;
}
static bool has_pages(const fa_problem *p) {
  return p->kvcache.page_size > 0;
}
static bool has_batch_idx(const fa_problem *p) {
  return p->kvcache.batch_idx.n > 0;
}
static bool has_rotary(const fa_problem *p) {
  return p->kvcache.rotary_dim > 0;
}

/* ---- what version 1 could not combine ---- */

static bool has_cu_seqlens_cache(const fa_problem *p) {
  return p->kvcache.present && p->cu_seqlens_q.n > 0;
}
static bool has_bias_cache(const fa_problem *p) {
  return p->kvcache.present && p->bias.present;
}
static bool has_mods_cache(const fa_problem *p) {
  return p->kvcache.present && has_mods(p);
}
static bool has_blocks_cache(const fa_problem *p) {
  return p->kvcache.present && p->block_sparse.present;
}
static bool has_head_dim_v_cache(const fa_problem *p) {
  return p->kvcache.present && has_head_dim_v(p);
}
static bool has_top_left_cache(const fa_problem *p) {
  return p->kvcache.present && is_top_left(p);
}
static bool has_dropout_cache(const fa_problem *p) {
  return p->kvcache.present && has_dropout(p);
}
static bool has_bias_varlen(const fa_problem *p) {
  return fa_problem_is_varlen(p) && p->bias.present;
}
static bool has_blocks_varlen(const fa_problem *p) {
  return fa_problem_is_varlen(p) && p->block_sparse.present;
}
static bool has_dropout_flex(const fa_problem *p) {
  return p->family == FA_FLEX && has_dropout(p);
}
/* Families of version 1 had their own features; with these, a flash call may have any. */
static bool has_flash_more(const fa_problem *p) {
  return p->family == FA_FLASH &&
         (has_bias(p) || has_mods(p) || has_block_sparse(p) || has_head_dim_v(p) || is_top_left(p));
}
static bool has_memeff_more(const fa_problem *p) {
  return p->family == FA_MEMEFF && (has_mods(p) || has_block_sparse(p));
}

static bool has_sinks(const fa_problem *p) {
  return p->sinks.present;
}
static bool has_sinks_grad(const fa_problem *p) {
  return p->sinks.present && p->sinks.grad && p->backward;
}
static bool has_lse_without_sinks(const fa_problem *p) {
  return p->sinks.present && !p->sinks.in_lse;
}

static bool has_padded_lse(const fa_problem *p) {
  return p->lse_padded;
}
static bool has_topk(const fa_problem *p) {
  return p->topk.present;
}
static bool has_v_in_k(const fa_problem *p) {
  return p->kvcache.v_in_k;
}

static bool has_quantized_queries(const fa_problem *p) {
  return p->quantized.queries;
}
static bool has_quantized_keys(const fa_problem *p) {
  return p->quantized.present && !p->quantized.queries && p->quantized.per != FA_PER_TILE &&
         p->quantized.dtype != FA_E2M1;
}
static bool has_descales_of_tokens(const fa_problem *p) {
  return p->quantized.per == FA_PER_TOKEN || p->quantized.per == FA_PER_PAGE;
}
static bool has_mixed_rows(const fa_problem *p) {
  return p->quantized.per == FA_PER_TILE;
}

static bool has_four_bits(const fa_problem *p) {
  return p->quantized.dtype == FA_E2M1;
}
static bool has_amax(const fa_problem *p) {
  return p->quantized.amax;
}
static bool quantizes_o(const fa_problem *p) {
  return fa_quantizes_o(&p->quantized);
}
static bool quantizes_new_keys(const fa_problem *p) {
  return p->quantized.quantizes_new;
}

static const fa_feature features[] = {
    {"causal", is_causal, FA_FEATURE_NAMED, "a causal mask"},
    {"window", is_window, FA_FEATURE_NAMED, "a mask with a left or right edge"},
    {"top_left", is_top_left, FA_FEATURE_NAMED, "masks aligned with the first row and key"},
    {"varlen", fa_problem_is_varlen, FA_FEATURE_NAMED, "packed sequences: cu_seqlens"},
    {"seqused_k", has_seqused, FA_FEATURE_NAMED, "only the first keys of a sequence exist"},
    {"leftpad_k", has_leftpad, FA_FEATURE_NAMED, "the first keys of a sequence are hidden"},
    {"gqa", has_groups, FA_FEATURE_NAMED, "more query than KV heads"},
    {"head_dim_v", has_head_dim_v, FA_FEATURE_NAMED, "V with another head dim than K"},
    {"softcap", has_softcap, FA_FEATURE_NAMED, "a soft cap on scores"},
    {"alibi", has_alibi, FA_FEATURE_NAMED, "ALiBi slopes"},
    {"bias", has_bias, FA_FEATURE_NAMED, "an additive bias"},
    {"bias_grad", has_bias_grad, FA_FEATURE_NAMED, "its gradient"},
    {"dropout", has_dropout, FA_FEATURE_NAMED, "dropout"},
    {"dlse", has_dlse, FA_FEATURE_NAMED, "a gradient of the LSE comes with that of O"},
    {"return_softmax", has_return_softmax, FA_FEATURE_NAMED, "P is returned"},
    {"score_mod", has_score_mod, FA_FEATURE_NAMED, "an expression changes scores"},
    {"mask_mod", has_mask_mod, FA_FEATURE_NAMED, "an expression hides keys"},
    {"block_sparse", has_block_sparse, FA_FEATURE_NAMED, "lists of blocks"},
    {"append", has_new, FA_FEATURE_NAMED, "the call appends to the cache"},
    {"paged", has_pages, FA_FEATURE_NAMED, "the cache has pages"},
    {"batch_idx", has_batch_idx, FA_FEATURE_NAMED, "sequences name their cache rows"},
    {"rotary", has_rotary, FA_FEATURE_NAMED, "a rotary embedding"},
    {"splits", has_splits, FA_FEATURE_NAMED, "the case says how many splits"},
    {"deterministic", is_deterministic, FA_FEATURE_NAMED, "bitwise repeatable gradients are asked for"},
    {"empty_lse", has_empty_lse, FA_FEATURE_NAMED, "another LSE of empty rows than the family's"},
    {"bottom_right", is_bottom_right, FA_FEATURE_IMPLIED,
     "a mask aligned with the last row and key where that differs from the first"},
    {"captures", has_captures, FA_FEATURE_IMPLIED, "buffers that expressions read"},
    {"captures_grad", has_captures_grad, FA_FEATURE_IMPLIED, "their gradients"},
    {"cu_seqlens_cache", has_cu_seqlens_cache, FA_FEATURE_LATER, "packed queries over a cache"},
    {"bias_cache", has_bias_cache, FA_FEATURE_LATER, "a bias over a cache"},
    {"mods_cache", has_mods_cache, FA_FEATURE_LATER, "expressions over a cache"},
    {"blocks_cache", has_blocks_cache, FA_FEATURE_LATER, "block lists over a cache"},
    {"head_dim_v_cache", has_head_dim_v_cache, FA_FEATURE_LATER, "head_dim_v over a cache"},
    {"top_left_cache", has_top_left_cache, FA_FEATURE_LATER, "top_left over a cache"},
    {"dropout_cache", has_dropout_cache, FA_FEATURE_LATER, "dropout over a cache"},
    {"bias_varlen", has_bias_varlen, FA_FEATURE_LATER, "a bias with packed sequences"},
    {"blocks_varlen", has_blocks_varlen, FA_FEATURE_LATER, "block lists with packed sequences"},
    {"dropout_flex", has_dropout_flex, FA_FEATURE_LATER, "dropout in family flex"},
    {"flash_more", has_flash_more, FA_FEATURE_LATER,
     "bias, expressions, block lists, head_dim_v or top_left in family flash"},
    {"memeff_more", has_memeff_more, FA_FEATURE_LATER, "expressions or block lists in family memeff"},
    {"mods_operators", fa_contract_mods_operators, FA_FEATURE_LISTED,
     "operators and functions of expressions beyond the first ones"},
    {"blocks_shared", fa_contract_blocks_shared, FA_FEATURE_LISTED,
     "lists of blocks that some entries or heads share, and not all"},
    {"chunk", is_chunk, FA_FEATURE_LISTED, "a row sees no key before its own chunk"},
    {"mask_bits", has_mask_bits, FA_FEATURE_LISTED,
     "a bit for every pair of a row and a key: mask_bits, mask_indptr"},
    {"sinks", has_sinks, FA_FEATURE_LISTED, "a logit a head in the denominator"},
    {"sinks_grad", has_sinks_grad, FA_FEATURE_LISTED, "its gradient"},
    {"lse_without_sinks", has_lse_without_sinks, FA_FEATURE_LISTED, "an LSE that leaves the sink out"},
    {"padded_lse", has_padded_lse, FA_FEATURE_LISTED,
     "packed queries whose LSE and dLSE are [batch, heads, longest]"},
    {"topk", has_topk, FA_FEATURE_LISTED, "a list of keys for every row: topk_indices, topk_length"},
    {"mla", has_v_in_k, FA_FEATURE_LISTED, "a latent cache: V is the first columns of K, in the same memory"},
    {"quantized", has_quantized_queries, FA_FEATURE_LISTED,
     "queries, keys and values of 8 bits: q_descale, k_descale, v_descale, for tensors or heads"},
    {"quantized_keys", has_quantized_keys, FA_FEATURE_LISTED,
     "keys and values of 8 bits beside queries of 16: k_descale, v_descale, for tensors or heads"},
    {"quantized_tokens", has_descales_of_tokens, FA_FEATURE_LISTED,
     "descales for tokens and heads, or for pages"},
    {"quantized_mixed", has_mixed_rows, FA_FEATURE_LISTED,
     "rows of a latent cache as bytes: numbers of e4m3, a descale for each 128, other columns of 16 bits"},
    {"quantized_append", quantizes_new_keys, FA_FEATURE_LISTED,
     "new keys and values of 16 bits, which the call stores in 8"},
    {"quantized_e2m1", has_four_bits, FA_FEATURE_LISTED,
     "caches of 4 bits, two numbers to a byte: k_scales, v_scales of 16, and k_descale, v_descale"},
    {"quantized_amax", has_amax, FA_FEATURE_LISTED,
     "the largest magnitudes of P and of O are returned: amax_p, amax_o"},
    {"quantized_o", quantizes_o, FA_FEATURE_LISTED, "O is stored in 8 bits, times o_scale, and saturates"},
    {"captures_bool", has_captures_bool, FA_FEATURE_LISTED, "buffers of bool"},
    {"captures_i64", has_captures_i64, FA_FEATURE_LISTED, "buffers of int64"},
    {"captures_half", has_captures_half, FA_FEATURE_LISTED, "buffers of f16 and bf16"},
    {"captures_half_grad", has_captures_half_grad, FA_FEATURE_LISTED, "gradients of those, in their types"},
    {"captures_strides", has_captures_strides, FA_FEATURE_LISTED,
     "buffers with strides of their own: transposed, with gaps, repeated by a stride of 0"},
    {"captures_many", has_captures_many, FA_FEATURE_LISTED, "more than 8 buffers"},
};
enum { N_FEATURES = sizeof features / sizeof *features };
_Static_assert(N_FEATURES <= 64, "a bit for each");

const fa_feature *fa_feature_at(int i) {
  return i >= 0 && i < N_FEATURES ? &features[i] : NULL;
}

const char *fa_feature_name(int i) {
  return i >= 0 && i < N_FEATURES ? features[i].name : NULL;
}
