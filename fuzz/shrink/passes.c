/* Passes that remove things: everything at once, single features, unusual fills. */
#include "fuzz/shrink/reduce.h"

#include <stdlib.h>

static void drop_array(fa_int32_array *a) {
  free(a->v);
  *a = (fa_int32_array){0};
}

static void drop_text(char **text) {
  free(*text);
  *text = NULL;
}

/* ---- bold: a batch of 1, a head or two, short lengths ---- */

static const int64_t bold_length[] = {17, 65, 129, 257};
enum { N_BOLD_LENGTHS = 4, N_BOLD_KINDS = 5 };

static double work(const fa_problem *p) {
  return (double)p->batch * (double)p->heads_q * (double)(p->seqlen_q + 16) * (double)(p->seqlen_k + 16);
}

static void cap(int64_t *x, int64_t limit) {
  if (*x > limit) *x = limit;
}

/* Removes every optional feature except the mask and the KV cache. */
static void make_bare(fa_case *c, const fa_shrink_goal *goal) {
  fa_problem *p = &c->problem;
  drop_array(&p->cu_seqlens_q);
  drop_array(&p->cu_seqlens_k);
  drop_array(&p->seqused_k);
  drop_array(&p->leftpad_k);
  p->sinks = (fa_sinks){0};
  p->alibi.present = p->bias.present = p->deterministic = p->return_softmax = p->grad_lse = false;
  p->lse_padded = false;
  p->dropout.p = p->softcap = 0;
  p->splits = 0;
  c->layout = FA_LAYOUT_BSHD;
  c->packing = FA_PACK_NONE;
  for (int id = 0; id < FA_T_COUNT; ++id) c->strides[id] = (fa_stride_recipe){0};
  const fa_tensor_id t = goal->failure.tensor;
  if (t == FA_T_O || t == FA_T_LSE) p->backward = false;
  c->poison = FA_POISON_B;
  c->repeat = 2;
  if (!goal->keep_schedule) c->schedule_seed = 0;
}

static void shorten(fa_case *c, int64_t length) {
  fa_problem *p = &c->problem;
  for (int side = 0; side < 2; ++side)
    for (int64_t b = 0; b < p->batch; ++b) {
      const fa_int32_array *cu = side ? &p->cu_seqlens_k : &p->cu_seqlens_q;
      if (cu->n == 0) break;
      if (cu->v[b + 1] - cu->v[b] > length) fa_shrink_set_sequence_length(c, side, b, length);
    }
  cap(&p->seqlen_q, length);
  cap(&p->seqlen_k, length);
  cap(&p->kvcache.n_new, length);
  cap(&p->mask.left, length / 4);
  cap(&p->mask.right, length / 4);
}

static int64_t count_bold(const fa_case *c) {
  (void)c;
  return N_BOLD_LENGTHS * N_BOLD_KINDS;
}

/* For each length, the cheapest and simplest first. */
static bool edit_bold(fa_case *c, int64_t i, const fa_shrink_goal *goal) {
  fa_problem *p = &c->problem;
  const int64_t kind = i % N_BOLD_KINDS, group = p->heads_q / p->heads_kv, batch = kind == 4 ? 2 : 1;
  const double before = work(p);
  if (p->batch > batch) fa_shrink_delete_sequences(c, batch, p->batch - batch);
  cap(&p->heads_kv, kind >= 3 ? 2 : 1);
  p->heads_q = p->heads_kv * (kind >= 3 ? group : 1);
  shorten(c, bold_length[i / N_BOLD_KINDS]);
  if (kind <= 1) make_bare(c, goal);
  if (kind == 0) p->mask.type = FA_MASK_NONE;
  return work(p) < before / 4;
}

const fa_shrink_pass fa_shrink_bold[] = {{"all at once", count_bold, edit_bold, NULL}, {0}};

/* ---- features ---- */

typedef bool feature_edit(fa_problem *p, fa_case *c);

/* True: there was something to remove. */
#define FEATURE(name, present, ...)                                                                          \
  static bool name(fa_problem *p, fa_case *c) {                                                              \
    (void)c, (void)p;                                                                                        \
    if (!(present)) return false;                                                                            \
    __VA_ARGS__;                                                                                             \
    return true;                                                                                             \
  }

FEATURE(drop_backward, p->backward, p->backward = false)
FEATURE(drop_varlen_alone, p->cu_seqlens_q.n, p->batch = 1; drop_array(&p->cu_seqlens_q);
        drop_array(&p->cu_seqlens_k))
FEATURE(drop_varlen, p->cu_seqlens_q.n, drop_array(&p->cu_seqlens_q); drop_array(&p->cu_seqlens_k))
FEATURE(drop_seqused, p->seqused_k.n, drop_array(&p->seqused_k))
FEATURE(drop_leftpad, p->leftpad_k.n, drop_array(&p->leftpad_k))
FEATURE(drop_batch_idx, p->kvcache.batch_idx.n, drop_array(&p->kvcache.batch_idx))
FEATURE(drop_shared_pages, p->kvcache.shared_pages, p->kvcache.shared_pages = 0)
FEATURE(drop_pages, p->kvcache.page_size, p->kvcache.page_size = p->kvcache.shared_pages = 0)
FEATURE(drop_topk, p->topk.present, drop_array(&p->topk.len); p->topk = (fa_topk){0})
FEATURE(drop_none, p->topk.none > 0, p->topk.none = 0)
FEATURE(drop_none_at, p->topk.none_at, p->topk.none_at = FA_TOPK_END)
FEATURE(drop_repeated, p->topk.repeated > 0, p->topk.repeated = 0)
FEATURE(drop_empty_lists, p->topk.empty_rows > 0, p->topk.empty_rows = 0)
FEATURE(drop_beyond, p->topk.beyond, p->topk.beyond = false)
FEATURE(drop_list_length, p->topk.len.n, drop_array(&p->topk.len))
FEATURE(drop_latent, p->kvcache.v_in_k, p->kvcache.v_in_k = false)
FEATURE(drop_rotary, p->kvcache.rotary_dim, p->kvcache.rotary_dim = 0)
FEATURE(drop_interleaved, p->kvcache.rotary_interleaved, p->kvcache.rotary_interleaved = false)
FEATURE(drop_new_keys, p->kvcache.n_new, p->kvcache.n_new = 0)
FEATURE(drop_mask, p->mask.type, p->mask.type = FA_MASK_NONE; p->mask.align = FA_ALIGN_BOTTOM_RIGHT)
FEATURE(make_causal, fa_mask_has_left(&p->mask), p->mask.type = FA_MASK_CAUSAL)
FEATURE(drop_left, p->mask.left >= 0, p->mask.left = -1)
FEATURE(drop_right, p->mask.right >= 0, p->mask.right = -1)
FEATURE(drop_align, p->mask.align, p->mask.align = FA_ALIGN_BOTTOM_RIGHT)
FEATURE(drop_dropout, p->dropout.p > 0, p->dropout.p = 0)
FEATURE(drop_dropout_offset, p->dropout.offset, p->dropout.offset = 0)
FEATURE(drop_dropout_seed, p->dropout.seed, p->dropout.seed = 0)
FEATURE(drop_softcap, p->softcap > 0, p->softcap = 0)
FEATURE(drop_alibi, p->alibi.present, p->alibi.present = false)
FEATURE(standard_alibi, p->alibi.present && !p->alibi.standard, p->alibi.standard = true)
FEATURE(drop_bias, p->bias.present, p->bias.present = false)
FEATURE(drop_bias_grad, p->bias.grad, p->bias.grad = false)
FEATURE(drop_bias_batch, p->bias.per_batch, p->bias.per_batch = false)
FEATURE(drop_bias_head, p->bias.per_head, p->bias.per_head = false)
FEATURE(drop_bias_query, p->bias.per_query, p->bias.per_query = false)
FEATURE(drop_quantized, p->quantized.present, p->quantized = (fa_quantized){0})
FEATURE(descale_tensors, p->quantized.per, p->quantized.per = FA_PER_TENSOR)
FEATURE(descale_heads, p->quantized.per > FA_PER_HEAD, p->quantized.per = FA_PER_HEAD)
FEATURE(descales_one, p->quantized.present && p->quantized.values != FA_DESCALES_ONE,
        p->quantized.values = FA_DESCALES_ONE)
FEATURE(eight_bits, p->quantized.dtype == FA_E2M1, p->quantized.dtype = FA_E4M3)
FEATURE(drop_amax, p->quantized.amax, p->quantized.amax = false)
FEATURE(drop_o, fa_quantizes_o(&p->quantized), (p->quantized.o = 0, p->quantized.o_scale = 0))
FEATURE(o_scale_one, fa_quantizes_o(&p->quantized) && p->quantized.o_scale != 1, p->quantized.o_scale = 1)
FEATURE(store_new, p->quantized.quantizes_new, p->quantized.quantizes_new = false)
FEATURE(drop_sinks, p->sinks.present, p->sinks = (fa_sinks){0})
FEATURE(drop_sinks_grad, p->sinks.grad, p->sinks.grad = false)
FEATURE(sinks_in_lse, p->sinks.present && !p->sinks.in_lse, p->sinks.in_lse = true)
FEATURE(drop_blocks, p->block_sparse.present, drop_array(&p->block_sparse.kv_num_blocks);
        drop_array(&p->block_sparse.kv_indices); drop_array(&p->block_sparse.full_kv_num_blocks);
        drop_array(&p->block_sparse.full_kv_indices); p->block_sparse = (fa_block_sparse){0})
FEATURE(drop_score_mod, p->score_mod, drop_text(&p->score_mod))
FEATURE(drop_mask_bits, p->mask_bits.present, p->mask_bits = (fa_mask_bits){0})
FEATURE(drop_empty_rows, p->mask_bits.empty_rows > 0, p->mask_bits.empty_rows = 0)
FEATURE(drop_hidden, p->mask_bits.hide_diagonal, p->mask_bits.hide_diagonal = false)
FEATURE(make_chain, p->mask_bits.present && p->mask_bits.source != FA_BITS_CHAIN,
        p->mask_bits.source = FA_BITS_CHAIN;
        p->mask_bits.density = 0)
FEATURE(drop_mask_mod, p->mask_mod, drop_text(&p->mask_mod))
FEATURE(drop_captures, p->n_captures, free(p->captures); p->captures = NULL; p->n_captures = 0)
FEATURE(drop_group, p->heads_q > p->heads_kv, p->heads_q = p->heads_kv)
FEATURE(drop_splits, p->splits, p->splits = 0)
FEATURE(drop_deterministic, p->deterministic, p->deterministic = false)
FEATURE(drop_softmax, p->return_softmax, p->return_softmax = false)
FEATURE(drop_grad_lse, p->grad_lse, p->grad_lse = false)
FEATURE(drop_empty_lse, p->empty_lse != fa_family_default_empty_lse(p->family),
        p->empty_lse = fa_family_default_empty_lse(p->family))
FEATURE(drop_lse_padding, p->lse_padded, p->lse_padded = false)
FEATURE(drop_base, p->merge.base_2, p->merge.base_2 = false)
FEATURE(drop_parts_dtype, p->family == FA_MERGE && p->merge.parts_dtype != p->dtype,
        p->merge.parts_dtype = p->dtype)
FEATURE(drop_layout, c->layout, c->layout = FA_LAYOUT_BSHD)
FEATURE(drop_packing, c->packing, c->packing = FA_PACK_NONE)
FEATURE(drop_strides, true, for (int id = 0; id < FA_T_COUNT; ++id) c->strides[id] = (fa_stride_recipe){0})
FEATURE(drop_poison, c->poison != FA_POISON_B, c->poison = FA_POISON_B)
FEATURE(drop_repeat, c->repeat != 2, c->repeat = 2)
FEATURE(drop_scale, p->scale != fa_default_scale(p->head_dim), p->scale = fa_default_scale(p->head_dim))

static feature_edit *const features[] = {
    drop_backward,    drop_varlen_alone,   drop_varlen,        drop_seqused,     drop_leftpad,
    drop_batch_idx,   drop_pages,          drop_rotary,        drop_interleaved, drop_new_keys,
    drop_mask,        make_causal,         drop_left,          drop_right,       drop_align,
    drop_dropout,     drop_dropout_offset, drop_dropout_seed,  drop_softcap,     drop_alibi,
    standard_alibi,   drop_bias,           drop_bias_grad,     drop_bias_batch,  drop_bias_head,
    drop_bias_query,  drop_blocks,         drop_score_mod,     drop_mask_mod,    drop_captures,
    drop_group,       drop_splits,         drop_deterministic, drop_softmax,     drop_grad_lse,
    drop_empty_lse,   drop_layout,         drop_packing,       drop_strides,     drop_poison,
    drop_repeat,      drop_scale,          drop_shared_pages,  drop_mask_bits,   drop_empty_rows,
    drop_hidden,      make_chain,          drop_base,          drop_parts_dtype, drop_sinks,
    drop_sinks_grad,  sinks_in_lse,        drop_latent,        drop_topk,        drop_none,
    drop_none_at,     drop_repeated,       drop_empty_lists,   drop_beyond,      drop_list_length,
    drop_lse_padding, drop_quantized,      descale_tensors,    descale_heads,    descales_one,
    drop_amax,        eight_bits,          store_new,          drop_o,           o_scale_one};
enum { N_FEATURES = sizeof features / sizeof *features };

/* After the features: the strides of one tensor each, and finally the schedule. */
static int64_t count_features(const fa_case *c) {
  (void)c;
  return N_FEATURES + FA_T_COUNT + 1;
}

/* A case that fails only with schedules found by search is not tried with others. */
static bool drop_schedule(fa_case *c, const fa_shrink_goal *goal) {
  if (goal->keep_schedule || c->schedule_seed == 0) return false;
  c->schedule_seed = 0;
  return true;
}

static bool edit_feature(fa_case *c, int64_t i, const fa_shrink_goal *goal) {
  if (i < N_FEATURES) return features[i](&c->problem, c);
  if (i == N_FEATURES + FA_T_COUNT) return drop_schedule(c, goal);
  fa_stride_recipe *r = &c->strides[i - N_FEATURES];
  if (fa_stride_recipe_is_plain(r)) return false;
  *r = (fa_stride_recipe){0};
  return true;
}

const fa_shrink_pass fa_shrink_features[] = {{"features", count_features, edit_feature, NULL}, {0}};

/* ---- fills ---- */

/* From zero to the ordinary fill: those whose results a person can check in between. All others come
 * after. */
enum { N_SIMPLE = FA_N_SIMPLE_FILLS };

static int rank_of(fa_fill fill) {
  const int simplicity = fa_fill_describe(fill)->simplicity;
  return simplicity > 0 ? simplicity - 1 : N_SIMPLE;
}

static fa_fill fill_of_rank(int64_t rank) {
  return fa_fill_of_simplicity((int)rank + 1);
}

static int64_t count_fills(const fa_case *c) {
  (void)c;
  return N_SIMPLE + (int64_t)FA_T_COUNT * N_SIMPLE + 1;
}

/* All tensors alike, then one tensor alone, finally the seed. */
static bool edit_fill(fa_case *c, int64_t i, const fa_shrink_goal *goal) {
  (void)goal;
  if (i < N_SIMPLE) {
    bool simpler = false;
    for (int id = 0; id < FA_T_COUNT; ++id)
      if (fa_case_has_fill((fa_tensor_id)id)) simpler |= rank_of(c->fill[id]) > i;
    fa_case_set_fill(c, fill_of_rank(i));
    return simpler;
  }
  i -= N_SIMPLE;
  const fa_tensor_id id = (fa_tensor_id)(i / N_SIMPLE);
  if (id < FA_T_COUNT) {
    if (!fa_case_has_fill(id) || !fa_case_uses(c, id) || rank_of(c->fill[id]) <= i % N_SIMPLE) return false;
    c->fill[id] = fill_of_rank(i % N_SIMPLE);
    return true;
  }
  if (c->data_seed == 1) return false;
  c->data_seed = 1;
  return true;
}

const fa_shrink_pass fa_shrink_fills[] = {{"fills", count_fills, edit_fill, NULL}, {0}};
