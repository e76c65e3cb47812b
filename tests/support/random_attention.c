#include "tests/support/random_attention.h"

#include "cases/base/rng.h"

#include <stdlib.h>
#include <string.h>

static int64_t pick(fa_rng *r, const int64_t *from, int64_t n) {
  return from[fa_rng_below(r, n)];
}
#define PICK(r, ...)                                                                                         \
  pick((r), (const int64_t[]){__VA_ARGS__}, (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

static void array_of(fa_int32_array *a, int64_t n) {
  FA_ASSERT(fa_int32_array_set(a, NULL, n) == FA_OK);
}

static void sizes(fa_rng *r, fa_problem *p) {
  p->dtype = (fa_dtype)PICK(r, FA_F16, FA_BF16, FA_F32);
  p->batch = fa_rng_range(r, 1, 3);
  p->heads_kv = PICK(r, 1, 1, 2, 3);
  p->heads_q = p->heads_kv * PICK(r, 1, 1, 2, 3);
  p->seqlen_q = PICK(r, 0, 1, 2, 3, 7, 16, 17, 31, 33);
  p->seqlen_k = fa_rng_chance(r, 0.3) ? p->seqlen_q : PICK(r, 0, 1, 2, 5, 8, 15, 16, 33, 47);
  p->head_dim = p->head_dim_v = PICK(r, 1, 2, 4, 8, 12, 16, 33);
  if (fa_rng_chance(r, 0.08)) { /* across the edges of the reference's blocks */
    p->batch = 1;
    p->heads_kv = 1;
    p->heads_q = PICK(r, 1, 2);
    p->seqlen_q = PICK(r, 1, 127, 128, 129, 140);
    p->seqlen_k = PICK(r, 140, 255, 256, 257, 270);
    p->head_dim = p->head_dim_v = PICK(r, 2, 5);
  }
  if ((p->family == FA_MEMEFF || p->family == FA_FLEX) && fa_rng_chance(r, 0.5))
    p->head_dim_v = PICK(r, 1, 3, 8, 20);
  p->scale = fa_rng_chance(r, 0.7) ? fa_default_scale(p->head_dim) : fa_rng_range(r, -2, 2) * 0.35;
  if (fa_rng_chance(r, 0.25)) p->softcap = (double)PICK(r, 1, 5, 30) * 0.5;
  p->empty_lse = (fa_empty_lse)fa_rng_below(r, 3);
}

static void mask(fa_rng *r, fa_problem *p) {
  const int64_t longest = p->seqlen_k > p->seqlen_q ? p->seqlen_k : p->seqlen_q;
  p->mask.type = (fa_mask_type)fa_rng_below(r, 3);
  if ((p->family == FA_MEMEFF || p->family == FA_FLEX) && fa_rng_chance(r, 0.5))
    p->mask.align = FA_ALIGN_TOP_LEFT;
  if (p->mask.type != FA_MASK_WINDOW) return;
  p->mask.left = fa_rng_chance(r, 0.3) ? -1 : fa_rng_below(r, longest / 2 + 2);
  p->mask.right = fa_rng_chance(r, 0.3) ? -1 : fa_rng_below(r, longest / 2 + 2);
}

static void alibi(fa_rng *r, fa_problem *p) {
  if (!fa_rng_chance(r, 0.25)) return;
  p->alibi.present = true;
  p->alibi.n = p->heads_q * (fa_rng_chance(r, 0.5) ? p->batch : 1);
  p->alibi.slopes = malloc((size_t)p->alibi.n * sizeof(float));
  FA_ASSERT(p->alibi.slopes != NULL);
  for (int64_t n = 0; n < p->alibi.n; ++n) p->alibi.slopes[n] = (float)(fa_rng_next_uniform(r) - 0.2);
}

static void bias(fa_rng *r, fa_case *c) {
  fa_problem *p = &c->problem;
  if ((p->family != FA_MEMEFF && p->family != FA_FLEX) || !fa_rng_chance(r, 0.5)) return;
  p->bias = (fa_bias){.present = true,
                      .grad = fa_rng_chance(r, 0.7),
                      .per_batch = fa_rng_chance(r, 0.5),
                      .per_head = fa_rng_chance(r, 0.5),
                      .per_query = fa_rng_chance(r, 0.6)};
  c->fill[FA_T_BIAS] =
      (fa_fill)PICK(r, FA_FILL_NORMAL, FA_FILL_NORMAL, FA_FILL_NEG_INF_PREFIX, FA_FILL_NEG_INF_ROWS);
}

static void block_sparse(fa_rng *r, fa_problem *p) {
  fa_block_sparse *s = &p->block_sparse;
  if (p->family != FA_FLEX || !fa_rng_chance(r, 0.4)) return;
  s->present = true;
  s->q_block = PICK(r, 1, 4, 16, 100);
  s->kv_block = PICK(r, 1, 3, 16, 128);
  s->list_batch = fa_rng_chance(r, 0.5) ? p->batch : 1;
  s->list_heads = fa_rng_chance(r, 0.5) ? p->heads_q : 1;
  s->source = FA_BLOCKS_DENSITY;
  s->density = 0.6;
  s->seed = fa_rng_next(r);
  if (fa_rng_chance(r, 0.5)) return;
  s->source = FA_BLOCKS_LISTS; /* each tile: unlisted, partial or full */
  s->density = 0;
  s->seed = 0;
  const int64_t n_q = (p->seqlen_q + s->q_block - 1) / s->q_block,
                n_kv = (p->seqlen_k + s->kv_block - 1) / s->kv_block;
  const int64_t rows = s->list_batch * s->list_heads * n_q;
  fa_int32_array *counts[] = {&s->kv_num_blocks, &s->full_kv_num_blocks};
  fa_int32_array *lists[] = {&s->kv_indices, &s->full_kv_indices};
  for (int k = 0; k < 2; ++k) {
    array_of(counts[k], rows);
    array_of(lists[k], rows * n_kv);
  }
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t tile = n_kv - 1; tile >= 0; --tile) {
      const int64_t kind = fa_rng_below(r, 3);
      if (kind < 2) lists[kind]->v[row * n_kv + counts[kind]->v[row]++] = (int32_t)tile;
    }
}

static void varlen(fa_rng *r, fa_problem *p) {
  if (p->family == FA_KVCACHE) return;
  if (!p->bias.present && !p->block_sparse.present && fa_rng_chance(r, 0.3)) {
    array_of(&p->cu_seqlens_q, p->batch + 1);
    array_of(&p->cu_seqlens_k, p->batch + 1);
    for (int64_t b = 0; b < p->batch; ++b) {
      p->cu_seqlens_q.v[b + 1] = p->cu_seqlens_q.v[b] + (int32_t)PICK(r, 0, p->seqlen_q, fa_rng_below(r, 20));
      p->cu_seqlens_k.v[b + 1] = p->cu_seqlens_k.v[b] + (int32_t)PICK(r, 0, p->seqlen_k, fa_rng_below(r, 20));
    }
    FA_ASSERT(fa_problem_complete(p) == FA_OK);
  }
  if (fa_rng_chance(r, 0.25)) array_of(&p->seqused_k, p->batch);
  if (fa_rng_chance(r, 0.25)) array_of(&p->leftpad_k, p->batch);
  for (int64_t b = 0; b < p->batch; ++b) {
    int64_t n = p->cu_seqlens_k.n ? p->cu_seqlens_k.v[b + 1] - p->cu_seqlens_k.v[b] : p->seqlen_k;
    if (p->seqused_k.n) n = p->seqused_k.v[b] = (int32_t)fa_rng_range(r, 0, n);
    if (p->leftpad_k.n) p->leftpad_k.v[b] = (int32_t)fa_rng_range(r, 0, n);
  }
}

static void kvcache(fa_rng *r, fa_problem *p) {
  fa_kvcache *c = &p->kvcache;
  if (p->family != FA_KVCACHE) return;
  c->present = true;
  c->n_new = PICK(r, 0, 1, 2, 5);
  if (fa_rng_chance(r, 0.4)) c->page_size = PICK(r, 1, 4, 16);
  if (p->seqlen_k < c->n_new) p->seqlen_k = c->n_new;
  if (c->page_size > 0) p->seqlen_k = (p->seqlen_k / c->page_size + 1) * c->page_size;
  if (fa_rng_chance(r, 0.6)) c->rotary_dim = fa_rng_range(r, 0, p->head_dim / 2) * 2;
  c->rotary_interleaved = c->rotary_dim > 0 && fa_rng_chance(r, 0.5);
  array_of(&c->len, p->batch);
  if (c->page_size == 0 && fa_rng_chance(r, 0.5)) array_of(&c->batch_idx, p->batch);
  if (fa_rng_chance(r, 0.4)) array_of(&p->leftpad_k, p->batch);
  for (int64_t b = 0; b < p->batch; ++b) {
    c->len.v[b] = (int32_t)fa_rng_range(r, 0, p->seqlen_k - c->n_new);
    if (c->batch_idx.n) c->batch_idx.v[b] = (int32_t)((p->batch - 1 - b) * 2);
    if (p->leftpad_k.n) p->leftpad_k.v[b] = (int32_t)fa_rng_range(r, 0, c->len.v[b] + c->n_new);
  }
}

static void data(fa_rng *r, fa_case *c) {
  const int64_t plain = FA_FILL_NORMAL;
  fa_case_set_fill(c, (fa_fill)PICK(r, plain, plain, plain, FA_FILL_LOGITS_4X, FA_FILL_LOGITS_64X,
                                    FA_FILL_HEAVY_TAIL, FA_FILL_V_OFFSET, FA_FILL_NEGATIVE_LOGITS,
                                    FA_FILL_STAIRCASE_UP, FA_FILL_DUPLICATE_KEYS, FA_FILL_TIES,
                                    FA_FILL_ONE_HOT));
  c->data_seed = fa_rng_next(r);
}

static void layout(fa_rng *r, fa_case *c) {
  static const fa_tensor_id strided[] = {FA_T_Q, FA_T_K, FA_T_V, FA_T_DO, FA_T_BIAS};
  c->layout = (fa_layout)fa_rng_below(r, 3);
  if (fa_rng_chance(r, 0.3)) c->packing = (fa_packing)fa_rng_range(r, 1, 2);
  if (fa_case_validate(c, NULL) != FA_OK) c->packing = FA_PACK_NONE;
  for (int k = 0; k < 5; ++k) {
    fa_stride_recipe *s = &c->strides[strided[k]];
    if (!fa_rng_chance(r, 0.3)) continue;
    for (int axis = 0; axis < 3; ++axis) s->gap[axis] = PICK(r, 0, 0, 1, 8);
    s->expand[fa_rng_below(r, 3)] = fa_rng_chance(r, 0.5);
    s->offset = fa_rng_below(r, 3);
    if (fa_case_validate(c, NULL) != FA_OK) *s = (fa_stride_recipe){0};
  }
}

/* Numbers of their own, so that the cases without sinks stay what they were. */
static void sinks(uint64_t seed, uint64_t index, fa_case *c) {
  fa_rng rng = fa_rng_make(seed ^ 0x73696e6b, index), *r = &rng;
  fa_problem *p = &c->problem;
  if (!fa_rng_chance(r, 0.3)) return;
  p->sinks = (fa_sinks){true, fa_rng_chance(r, 0.8), fa_rng_chance(r, 0.7)};
  p->grad_lse &= p->sinks.in_lse;
  c->fill[FA_T_SINKS] =
      (fa_fill)PICK(r, FA_FILL_NORMAL, FA_FILL_SINK_SIZES, FA_FILL_SINK_SIZES, FA_FILL_ZERO);
}

void random_attention(uint64_t seed, uint64_t index, fa_case *c) {
  fa_rng rng = fa_rng_make(seed, index), *r = &rng;
  FA_ASSERT(fa_case_init(c) == FA_OK);
  fa_problem *p = &c->problem;
  fa_problem_set_family(p, (fa_family)PICK(r, FA_FLASH, FA_MEMEFF, FA_MEMEFF, FA_FLEX, FA_FLEX, FA_KVCACHE));
  sizes(r, p);
  kvcache(r, p);
  mask(r, p);
  alibi(r, p);
  data(r, c);
  bias(r, c);
  block_sparse(r, p);
  varlen(r, p);
  if ((p->family == FA_FLASH || p->family == FA_MEMEFF) && fa_rng_chance(r, 0.4))
    p->dropout = (fa_dropout){(double)fa_rng_range(r, 1, 7) * 0.13, fa_rng_next(r),
                              fa_rng_next(r) >> fa_rng_below(r, 64)};
  p->return_softmax = p->family == FA_FLASH && !p->cu_seqlens_q.n && fa_rng_chance(r, 0.3);
  p->grad_lse = p->backward && fa_rng_chance(r, 0.5);
  layout(r, c);
  sinks(seed, index, c);
  FA_ASSERT(fa_problem_complete(p) == FA_OK); /* block lists made later have their own sizes */
  fa_error err = {""};
  if (fa_case_validate(c, &err) != FA_OK) fa_assert_failed(err.text, __FILE__, __LINE__);
}

/* ---- features ---- */

const char *const random_feature_names[RANDOM_MAX_FEATURES] = {"f16",
                                                               "bf16",
                                                               "f32",
                                                               "flash",
                                                               "memeff",
                                                               "flex",
                                                               "kvcache",
                                                               "no mask",
                                                               "causal br",
                                                               "causal tl",
                                                               "window br",
                                                               "window tl",
                                                               "open window",
                                                               "sq < sk",
                                                               "sq > sk",
                                                               "no queries",
                                                               "no keys",
                                                               "gqa",
                                                               "mqa",
                                                               "d != dv",
                                                               "varlen",
                                                               "empty q entry",
                                                               "empty k entry",
                                                               "seqused",
                                                               "leftpad",
                                                               "scale 0",
                                                               "scale < 0",
                                                               "softcap",
                                                               "alibi [h]",
                                                               "alibi [b][h]",
                                                               "bias [b]",
                                                               "bias [1 b]",
                                                               "bias [h]",
                                                               "bias [1 h]",
                                                               "bias [q]",
                                                               "bias [1 q]",
                                                               "dbias",
                                                               "bias -inf",
                                                               "dropout flash",
                                                               "dropout memeff",
                                                               "dropout varlen",
                                                               "large offset",
                                                               "dlse",
                                                               "append",
                                                               "append none",
                                                               "paged",
                                                               "batch_idx",
                                                               "cache leftpad",
                                                               "rotary halves",
                                                               "rotary pairs",
                                                               "rotary, mask",
                                                               "rotary, none",
                                                               "block lists",
                                                               "block density",
                                                               "bhsd",
                                                               "packed",
                                                               "expanded",
                                                               "over blocks",
                                                               "lse +inf",
                                                               "lse -inf",
                                                               "lse 0",
                                                               "return_softmax",
                                                               "sinks",
                                                               NULL};

uint64_t random_features(const fa_case *c) {
  const fa_problem *p = &c->problem;
  const bool causal = p->mask.type == FA_MASK_CAUSAL, window = p->mask.type == FA_MASK_WINDOW;
  const bool top = p->mask.align == FA_ALIGN_TOP_LEFT, cache = p->family == FA_KVCACHE,
             turn = p->kvcache.rotary_dim > 0;
  const bool many = p->batch > 1, drop = p->dropout.p > 0, blocks = p->block_sparse.present;
  bool empty_q = false, empty_k = false, expanded = false;
  for (int64_t b = 0; b < p->batch && p->cu_seqlens_q.n; ++b) {
    empty_q |= p->cu_seqlens_q.v[b] == p->cu_seqlens_q.v[b + 1];
    empty_k |= p->cu_seqlens_k.v[b] == p->cu_seqlens_k.v[b + 1];
  }
  for (int id = 0; id < FA_T_COUNT; ++id)
    for (int axis = 0; axis < 3; ++axis) expanded |= c->strides[id].expand[axis];
  const bool has[] = {p->dtype == FA_F16,
                      p->dtype == FA_BF16,
                      p->dtype == FA_F32,
                      p->family == FA_FLASH,
                      p->family == FA_MEMEFF,
                      p->family == FA_FLEX,
                      cache,
                      p->mask.type == FA_MASK_NONE,
                      causal && !top,
                      causal && top,
                      window && !top,
                      window && top,
                      window && (p->mask.left < 0 || p->mask.right < 0),
                      p->seqlen_q<p->seqlen_k, p->seqlen_q> p->seqlen_k,
                      p->seqlen_q == 0,
                      p->seqlen_k == 0,
                      p->heads_q > p->heads_kv && p->heads_kv > 1,
                      p->heads_q > 1 && p->heads_kv == 1,
                      p->head_dim != p->head_dim_v,
                      p->cu_seqlens_q.n > 0,
                      empty_q,
                      empty_k,
                      p->seqused_k.n > 0,
                      p->leftpad_k.n > 0 && !cache,
                      p->scale == 0,
                      p->scale<0, p->softcap> 0,
                      p->alibi.present && p->alibi.n == p->heads_q,
                      p->alibi.n > p->heads_q,
                      p->bias.per_batch && many,
                      p->bias.present && !p->bias.per_batch && many,
                      p->bias.per_head && p->heads_q > 1,
                      p->bias.present && !p->bias.per_head && p->heads_q > 1,
                      p->bias.per_query,
                      p->bias.present && !p->bias.per_query,
                      p->bias.grad && p->backward,
                      p->bias.present && c->fill[FA_T_BIAS] != FA_FILL_NORMAL,
                      drop && p->family == FA_FLASH,
                      drop && p->family == FA_MEMEFF,
                      drop && p->cu_seqlens_q.n,
                      p->dropout.offset >> 40 != 0,
                      p->grad_lse,
                      cache && p->kvcache.n_new > 0,
                      cache && p->kvcache.n_new == 0,
                      p->kvcache.page_size > 0,
                      p->kvcache.batch_idx.n > 0,
                      cache && p->leftpad_k.n > 0,
                      turn && !p->kvcache.rotary_interleaved,
                      p->kvcache.rotary_interleaved,
                      turn && p->mask.type != FA_MASK_NONE,
                      turn && p->mask.type == FA_MASK_NONE,
                      blocks && p->block_sparse.source == FA_BLOCKS_LISTS,
                      blocks && p->block_sparse.source == FA_BLOCKS_DENSITY,
                      c->layout == FA_LAYOUT_BHSD,
                      c->packing != FA_PACK_NONE,
                      expanded,
                      p->seqlen_q > 128 && p->seqlen_k > 256,
                      p->empty_lse == FA_EMPTY_POS_INF,
                      p->empty_lse == FA_EMPTY_NEG_INF,
                      p->empty_lse == FA_EMPTY_ZERO,
                      p->return_softmax,
                      p->sinks.present};
  uint64_t bits = 0;
  for (size_t n = 0; n < sizeof has / sizeof *has; ++n) bits |= (uint64_t)has[n] << n;
  return bits;
}
