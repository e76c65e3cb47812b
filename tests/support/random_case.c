#include "tests/support/random_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t below(fa_rng *r, int64_t n) {
  return fa_rng_below(r, n);
}
static bool chance(fa_rng *r, double p) {
  return fa_rng_chance(r, p);
}

/* Any double of a wide range, many of them with all 53 bits. */
static double odd_double(fa_rng *r) {
  static const double plain[] = {0,       -0.0, 1,   -1, 0.5, 0.1, 1e-300, 5e-324, 3.4028234663852886e38,
                                 1.0 / 3, 1e22, 1e23};
  if (chance(r, 0.3)) return plain[below(r, 12)];
  double x = fa_rng_normal(r->seed, 99, r->next++);
  return chance(r, 0.2) ? x * 1e-12 : x;
}

static uint64_t odd_u64(fa_rng *r) {
  static const uint64_t plain[] = {0,        1, 2, UINT64_MAX, (uint64_t)1 << 53, ((uint64_t)1 << 53) + 1,
                                   INT64_MAX};
  return chance(r, 0.5) ? plain[below(r, 7)] : fa_rng_next(r);
}

static void odd_text(fa_rng *r, char *text, size_t size) {
  static const char *const piece[] = {"a", " ",    "\"", "\\", "/", "\xc3\xa9", "\xf0\x9f\x98\x80",
                                      "{", "x=1,", "'",  "%s"};
  size_t n = 0;
  text[0] = 0;
  for (int64_t k = below(r, 8); k > 0; --k)
    n += (size_t)snprintf(text + n, size - n, "%s", piece[below(r, 11)]);
}

static void random_ints(fa_rng *r, fa_int32_array *a, int64_t n, int64_t lo, int64_t hi) {
  FA_ASSERT(fa_int32_array_set(a, NULL, n) == FA_OK);
  for (int64_t i = 0; i < n; ++i) a->v[i] = (int32_t)fa_rng_range(r, lo, hi);
}

static void random_lengths(fa_rng *r, fa_problem *p) {
  bool varlen = !p->bias.present && !p->block_sparse.present && chance(r, 0.3);
  if (varlen) {
    fa_int32_array *cu[] = {&p->cu_seqlens_q, &p->cu_seqlens_k};
    for (int i = 0; i < 2; ++i) {
      random_ints(r, cu[i], p->batch + 1, 0, 9);
      cu[i]->v[0] = 0;
      for (int64_t b = 1; b <= p->batch; ++b) cu[i]->v[b] += cu[i]->v[b - 1];
    }
  }
  FA_ASSERT(fa_problem_complete(p) == FA_OK);
  bool used = chance(r, 0.2), leftpad = chance(r, 0.2);
  if (used) random_ints(r, &p->seqused_k, p->batch, 0, 0);
  if (leftpad) random_ints(r, &p->leftpad_k, p->batch, 0, 0);
  for (int64_t b = 0; b < p->batch; ++b) {
    int64_t n = varlen ? p->cu_seqlens_k.v[b + 1] - p->cu_seqlens_k.v[b] : p->seqlen_k;
    if (used) n = p->seqused_k.v[b] = (int32_t)fa_rng_range(r, 0, n);
    if (leftpad) p->leftpad_k.v[b] = (int32_t)fa_rng_range(r, 0, n);
  }
}

static void random_kvcache(fa_rng *r, fa_problem *p) {
  fa_kvcache *c = &p->kvcache;
  c->present = true;
  p->seqlen_k = 4 * fa_rng_range(r, 1, 8);
  if (chance(r, 0.5)) c->page_size = (int64_t)1 << below(r, 3);
  if (c->page_size && chance(r, 0.5)) c->shared_pages = below(r, p->seqlen_k / c->page_size + 1);
  if (chance(r, 0.5)) c->n_new = below(r, 4);
  random_ints(r, &c->len, p->batch, 0, p->seqlen_k - c->n_new);
  if (chance(r, 0.4)) {
    random_ints(r, &p->leftpad_k, p->batch, 0, 0);
    for (int64_t b = 0; b < p->batch; ++b) p->leftpad_k.v[b] = (int32_t)below(r, c->len.v[b] + c->n_new + 1);
  }
  if (!c->page_size && chance(r, 0.5)) {
    random_ints(r, &c->batch_idx, p->batch, 0, 3);
    for (int64_t b = 0; b < p->batch; ++b) c->batch_idx.v[b] += (int32_t)(4 * b); /* distinct rows */
  }
  if (chance(r, 0.5)) {
    c->rotary_dim = 2 * below(r, p->head_dim / 2 + 1);
    c->rotary_interleaved = c->rotary_dim && chance(r, 0.5);
  }
}

/* After the cache, in numbers of its own: a latent cache, and lists of keys where nothing stands beside them. */
static void random_latent(fa_rng *r, fa_problem *p) {
  fa_kvcache *c = &p->kvcache;
  if (chance(r, 0.3) && c->rotary_dim == 0 && p->head_dim_v <= p->head_dim) c->v_in_k = true;
  if (!chance(r, 0.4) || c->rotary_dim || c->batch_idx.n || c->shared_pages || p->leftpad_k.n ||
      p->mask.type != FA_MASK_NONE)
    return;
  fa_topk *t = &p->topk;
  *t = (fa_topk){.present = true, .k = fa_rng_range(r, 1, 80), .seed = odd_u64(r)};
  if (chance(r, 0.5)) t->none = fa_rng_next_uniform(r);
  t->none_at = (fa_topk_place)below(r, FA_TOPK_N_PLACES);
  if (chance(r, 0.3)) t->repeated = fa_rng_next_uniform(r);
  if (chance(r, 0.3)) t->empty_rows = fa_rng_next_uniform(r);
  t->beyond = !c->page_size && chance(r, 0.3);
  if (chance(r, 0.3)) random_ints(r, &t->len, p->batch, 0, t->k);
}

/* A subset of the key blocks in random order, then anything. */
static void random_row(fa_rng *r, int32_t *count, int32_t *index, int64_t n, const bool *taken, bool *take) {
  *count = 0;
  for (int64_t j = 0; j < n; ++j) {
    take[j] = !(taken && taken[j]) && chance(r, 0.5);
    if (take[j]) index[(*count)++] = (int32_t)j;
  }
  for (int64_t j = *count; j < n; ++j) index[j] = (int32_t)fa_rng_range(r, INT32_MIN, INT32_MAX);
  if (*count > 1) {
    int32_t swap = index[0];
    index[0] = index[*count - 1];
    index[*count - 1] = swap;
  }
}

static void random_blocks(fa_rng *r, fa_problem *p) {
  fa_block_sparse *s = &p->block_sparse;
  s->present = true;
  s->source = (fa_block_source)below(r, p->mask_mod ? 3 : 2) * 2 % 3; /* lists, density, mask_mod */
  s->q_block = fa_rng_range(r, 1, 20);
  s->kv_block = fa_rng_range(r, 1, 20);
  if (s->source == FA_BLOCKS_DENSITY) s->density = fa_rng_next_uniform(r), s->seed = odd_u64(r);
  if (s->source != FA_BLOCKS_LISTS) return;
  s->list_batch = chance(r, 0.5) ? 1 : p->batch;
  s->list_heads = chance(r, 0.5) ? 1 : p->heads_q;
  if (p->heads_q % 3 == 0 && chance(r, 0.3)) s->list_heads = p->heads_q / 3;
  int64_t n_q = (p->seqlen_q + s->q_block - 1) / s->q_block,
          n_kv = (p->seqlen_k + s->kv_block - 1) / s->kv_block;
  int64_t rows = s->list_batch * s->list_heads * n_q;
  bool full = chance(r, 0.5) && rows * n_kv > 0;
  random_ints(r, &s->kv_num_blocks, rows, 0, 0);
  random_ints(r, &s->kv_indices, rows * n_kv, 0, 0);
  random_ints(r, &s->full_kv_num_blocks, full ? rows : 0, 0, 0);
  random_ints(r, &s->full_kv_indices, full ? rows * n_kv : 0, 0, 0);
  for (int64_t row = 0; row < rows; ++row) {
    bool a[64], b[64];
    random_row(r, &s->kv_num_blocks.v[row], n_kv ? &s->kv_indices.v[row * n_kv] : NULL, n_kv, NULL, a);
    if (full) random_row(r, &s->full_kv_num_blocks.v[row], s->full_kv_indices.v + row * n_kv, n_kv, a, b);
  }
}

/* The axes in any order of memory, with a gap, some repeated. */
static void random_buffer_strides(fa_rng *r, fa_capture *c) {
  if (c->rank == 0 || chance(r, 0.5)) return;
  int64_t step = fa_rng_range(r, 1, 3);
  const bool up = chance(r, 0.5);
  c->n_strides = c->rank;
  for (int k = 0; k < c->rank; ++k) {
    const int i = up ? k : c->rank - 1 - k;
    c->stride[i] = chance(r, 0.2) ? 0 : step;
    step *= c->shape[i];
  }
}

static void random_captures(fa_rng *r, fa_problem *p) {
  p->n_captures = (int)fa_rng_range(r, 1, 3);
  p->captures = calloc((size_t)p->n_captures, sizeof *p->captures);
  FA_ASSERT(p->captures);
  for (int k = 0; k < p->n_captures; ++k) {
    fa_capture *c = &p->captures[k];
    snprintf(c->name, sizeof c->name, "%s_%d", chance(r, 0.5) ? "slopes" : "Z", k);
    c->rank = (int)below(r, 5);
    for (int i = 0; i < c->rank; ++i) c->shape[i] = fa_rng_range(r, 1, 9);
    c->grad = chance(r, 0.5);
    snprintf(c->fill, sizeof c->fill, "%s", chance(r, 0.5) ? "normal" : "heavy_tail");
    static const fa_dtype floats[] = {FA_F32, FA_F16, FA_BF16};
    c->dtype = floats[below(r, 3)];
    random_buffer_strides(r, c);
    if (chance(r, 0.7)) continue;
    if (chance(r, 0.3)) {
      c->dtype = FA_BOOL;
      c->share = chance(r, 0.5) ? 0.5 : 0.125;
      c->grad = false;
      snprintf(c->fill, sizeof c->fill, "normal");
      continue;
    }
    c->dtype = chance(r, 0.5) ? FA_I32 : FA_I64;
    snprintf(c->fill, sizeof c->fill, "normal");
    c->grad = false;
    c->sorted = chance(r, 0.5);
    c->below = fa_rng_range(r, 1,
                            c->sorted            ? FA_MAX_SORTED_BELOW
                            : c->dtype == FA_I32 ? INT32_MAX
                                                 : FA_MAX_CAPTURE_I64);
  }
}

static void random_flex(fa_rng *r, fa_problem *p) {
  if (chance(r, 0.3)) p->score_mod = strdup("score + 0.1*(kv_idx - q_idx) ");
  if (chance(r, 0.3)) p->mask_mod = strdup("kv_idx < 37 || q_idx >= kv_idx");
  if (chance(r, 0.3)) random_captures(r, p);
  if (chance(r, 0.5)) random_blocks(r, p);
}

static void random_alibi(fa_rng *r, fa_problem *p) {
  fa_alibi *a = &p->alibi;
  a->present = true;
  a->standard = chance(r, 0.5);
  if (a->standard) return; /* fa_problem_complete makes the slopes */
  a->n = chance(r, 0.5) ? p->heads_q : p->batch * p->heads_q;
  a->slopes = malloc((size_t)a->n * sizeof *a->slopes);
  FA_ASSERT(a->slopes);
  for (int64_t i = 0; i < a->n; ++i) a->slopes[i] = (float)odd_double(r);
}

static void random_mask(fa_rng *r, fa_problem *p) {
  p->mask.type = (fa_mask_type)below(r, 3);
  if (p->mask.type == FA_MASK_WINDOW) {
    p->mask.left = chance(r, 0.1) ? INT32_MAX : fa_rng_range(r, -1, 40);
    p->mask.right = fa_rng_range(r, -1, 40);
  }
  if (p->family == FA_MEMEFF || p->family == FA_FLEX) p->mask.align = (fa_mask_align)below(r, 2);
}

static const fa_dtype dtypes[] = {FA_F16, FA_BF16, FA_F32};

static void random_merge(fa_rng *r, fa_problem *p) {
  p->dtype = dtypes[below(r, 3)];
  fa_problem_set_family(p, FA_MERGE);
  p->merge = (fa_parts){fa_rng_range(r, 1, 5), chance(r, 0.5), dtypes[below(r, 3)]};
  p->batch = fa_rng_range(r, 1, 3);
  p->heads_q = fa_rng_range(r, 1, 6);
  p->seqlen_q = chance(r, 0.1) ? 0 : fa_rng_range(r, 1, 50);
  p->head_dim = fa_rng_range(r, 1, 128);
  if (chance(r, 0.4)) {
    int32_t cu[4] = {0};
    for (int64_t b = 0; b < p->batch; ++b) cu[b + 1] = cu[b] + (int32_t)below(r, 20);
    FA_ASSERT(fa_int32_array_set(&p->cu_seqlens_q, cu, p->batch + 1) == FA_OK);
  }
  p->deterministic = chance(r, 0.3);
  p->backward = chance(r, 0.7);
  p->grad_lse = p->backward && chance(r, 0.3);
  FA_ASSERT(fa_problem_complete(p) == FA_OK);
}

static void random_problem(fa_rng *r, fa_problem *p) {
  if (chance(r, 0.2)) {
    random_merge(r, p);
    return;
  }
  fa_problem_set_family(p, (fa_family)below(r, FA_MERGE));
  bool wide = p->family == FA_MEMEFF || p->family == FA_FLEX;
  p->dtype = dtypes[below(r, 3)];
  p->batch = fa_rng_range(r, 1, 3);
  p->heads_kv = fa_rng_range(r, 1, 3);
  p->heads_q = p->heads_kv * fa_rng_range(r, 1, 3);
  p->seqlen_q = chance(r, 0.1) ? 0 : fa_rng_range(r, 1, 50);
  p->seqlen_k = chance(r, 0.4) ? p->seqlen_q : fa_rng_range(r, 0, 50);
  p->head_dim = chance(r, 0.5) ? 64 : fa_rng_range(r, 1, 128);
  p->head_dim_v = wide && chance(r, 0.3) ? fa_rng_range(r, 1, 128) : p->head_dim;
  p->scale = chance(r, 0.5) ? fa_default_scale(p->head_dim) : odd_double(r);
  if (chance(r, 0.3)) p->softcap = 1 + 30 * fa_rng_next_uniform(r);
  random_mask(r, p);
  if (chance(r, 0.3)) random_alibi(r, p);
  if (wide && chance(r, 0.4)) {
    p->bias = (fa_bias){.present = true};
    p->bias.grad = chance(r, 0.5);
    p->bias.per_batch = chance(r, 0.5);
    p->bias.per_head = chance(r, 0.5);
    p->bias.per_query = chance(r, 0.5);
  }
  if (p->family == FA_FLASH || p->family == FA_MEMEFF) {
    if (chance(r, 0.3)) p->dropout.p = 0.999 * fa_rng_next_uniform(r);
    if (chance(r, 0.3)) p->dropout.seed = odd_u64(r), p->dropout.offset = odd_u64(r);
  }
  if (p->family == FA_FLEX) random_flex(r, p);
  if (p->family == FA_KVCACHE)
    random_kvcache(r, p);
  else
    random_lengths(r, p);
  if (chance(r, 0.2)) p->sinks = (fa_sinks){true, chance(r, 0.6), chance(r, 0.6)};
  p->splits = chance(r, 0.3) ? below(r, 9) : 0;
  p->deterministic = chance(r, 0.3);
  if (p->family != FA_KVCACHE) p->backward = chance(r, 0.7);
  p->grad_lse = p->backward && p->sinks.present == p->sinks.in_lse && chance(r, 0.3);
  p->return_softmax = p->family == FA_FLASH && chance(r, 0.2);
  if (chance(r, 0.3)) p->empty_lse = (fa_empty_lse)below(r, 3);
  if (p->family == FA_KVCACHE) random_latent(r, p);
  p->lse_padded = p->family != FA_MERGE && p->cu_seqlens_q.n > 0 && chance(r, 0.3);
  FA_ASSERT(fa_problem_complete(p) == FA_OK);
}

static void random_fills(fa_rng *r, fa_case *c) {
  fa_fill fill;
  do fill = (fa_fill)below(r, FA_N_FILLS);
  while (!fa_fill_is_general(fill));
  if (chance(r, 0.4)) fa_case_set_fill(c, fill);
  for (int id = 0; id < FA_T_COUNT; ++id) {
    fill = (fa_fill)below(r, FA_N_FILLS);
    const fa_fill_info *f = fa_fill_describe(fill);
    if (!fa_case_has_fill(id) || !chance(r, 0.2)) continue;
    if ((f->bias_only && id != FA_T_BIAS) || (f->do_only && id != FA_T_DO) ||
        (f->lse_only && id != FA_T_LSE_PARTS) || (f->reads_v && c->problem.family == FA_MERGE) ||
        (f->sinks_only && id != FA_T_SINKS))
      continue;
    c->fill[id] = fill;
  }
}

static void random_zero(fa_rng *r, fa_case *c) {
  for (int id = 0; id < FA_T_COUNT; ++id) {
    if (!fa_case_has_zero(id) || !fa_case_uses(c, id) || !chance(r, 0.15)) continue;
    const int64_t rows = fa_case_zero_rows(c, id);
    int32_t pair[8];
    int n = 0;
    for (int64_t at = below(r, 4); n < 8 && at < rows; at += 1 + below(r, 40)) {
      pair[n++] = (int32_t)at;
      at += 1 + below(r, 40);
      if (at > rows) at = rows;
      pair[n++] = (int32_t)at;
    }
    FA_ASSERT(fa_int32_array_set(&c->zero[id], pair, n) == FA_OK);
  }
}

static void random_strides(fa_rng *r, fa_case *c) {
  for (int id = 0; id < FA_T_COUNT; ++id) {
    fa_stride_recipe *s = &c->strides[id];
    bool shared = (id == FA_T_V && c->packing != FA_PACK_NONE) || (id == FA_T_K && c->packing == FA_PACK_QKV);
    if (!fa_case_has_strides(id) || !fa_case_uses(c, id) || shared || !chance(r, 0.2)) continue;
    bool written = c->problem.kvcache.n_new > 0 && (id == FA_T_K || id == FA_T_V);
    bool expandable = !fa_tensor_id_is_output(id) && !written && c->packing == FA_PACK_NONE;
    for (int i = 0; i < 3; ++i) {
      if (chance(r, 0.3)) s->gap[i] = below(r, 20);
      s->expand[i] = expandable && chance(r, 0.2);
    }
    if (chance(r, 0.3)) s->offset = below(r, 100);
    if (chance(r, 0.2)) s->tail = below(r, 100);
  }
}

void random_case(fa_rng *r, fa_case *c) {
  char text[200];
  FA_ASSERT(fa_case_init(c) == FA_OK);
  odd_text(r, text, sizeof text);
  FA_ASSERT(fa_case_set_name(c, text) == FA_OK);
  odd_text(r, text, sizeof text);
  if (chance(r, 0.2)) free(c->note), c->note = strdup(text);
  random_problem(r, &c->problem);
  const fa_problem *p = &c->problem;
  c->layout = (fa_layout)below(r, 3);
  const bool has_qkv = p->family != FA_KVCACHE && p->family != FA_MERGE;
  if (has_qkv && p->head_dim == p->head_dim_v && chance(r, 0.3)) c->packing = FA_PACK_KV;
  bool same = !fa_problem_is_varlen(p) && p->seqlen_q == p->seqlen_k;
  if (c->packing == FA_PACK_KV && same && chance(r, 0.5)) c->packing = FA_PACK_QKV;
  random_fills(r, c);
  random_strides(r, c);
  random_zero(r, c);
  if (chance(r, 0.4)) c->data_seed = odd_u64(r);
  if (chance(r, 0.3)) c->poison = (fa_poison)(FA_POISON_B + below(r, 4));
  if (chance(r, 0.3)) c->repeat = 1 + below(r, 9);
  if (chance(r, 0.3)) c->schedule_seed = odd_u64(r);
  if (chance(r, 0.2)) c->law = (fa_law)below(r, FA_N_LAWS);
  c->expect = chance(r, 0.1) ? FA_EXPECT_REJECT : FA_EXPECT_PASS;
  fa_error err = {""};
  if (fa_case_validate(c, &err) == FA_OK) return;
  fprintf(stderr, "random_case made an invalid case: %s\n", err.text);
  abort();
}
