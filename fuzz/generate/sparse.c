/* What has lists: the KV cache's lengths, rows and pages, and block-sparse tiles. */
#include "fuzz/generate/parts.h"

#define COUNT(a) ((int64_t)(sizeof(a) / sizeof *(a)))
#define PICK(r, a) ((a)[fa_rng_below(r, COUNT(a))])

/* ---- KV cache ---- */

/* Queries of different numbers, at most the seqlen_q that was drawn, in one packed tensor: single new tokens beside a
 * long prompt, and sequences that have none. */
static fa_status draw_packed_queries(fa_gen *g) {
  fa_rng r = fa_gen_rng(g, FA_GEN_MIXED);
  fa_problem *p = &g->c->problem;
  fa_int32_array *cu = &p->cu_seqlens_q;
  const int64_t longest = p->seqlen_q;
  if (!fa_rng_chance(&r, 0.5)) return FA_OK;
  fa_status status = fa_int32_array_set(cu, NULL, p->batch + 1);
  for (int64_t b = 0; status == FA_OK && b < p->batch; ++b) {
    const int64_t kind = fa_rng_below(&r, 6);
    const int64_t n = kind == 0 ? 0 : kind < 3 ? 1 : kind == 3 ? longest : fa_rng_range(&r, 0, longest);
    cu->v[b + 1] = cu->v[b] + (int32_t)(n < longest ? n : longest);
  }
  return status == FA_OK ? fa_problem_complete(p) : status;
}

/* Valid keys before the call, at most n: none, all, near a page or tile edge, anything. */
static int64_t draw_valid(fa_rng *r, int64_t n, int64_t page) {
  int64_t kind = fa_rng_below(r, 10);
  if (kind == 0) return 0;
  if (kind <= 2) return n;
  if (kind <= 5) {
    int64_t tile = page > 0 ? page : 64, at = tile * fa_rng_range(r, 0, n / tile) + fa_rng_range(r, -1, 1);
    if (at >= 0 && at <= n) return at;
  }
  return fa_rng_range(r, 0, n);
}

/* Sequences share rows only in a cache that is not appended to. */
static fa_status draw_cache_rows(fa_gen *g, fa_rng *r) {
  fa_problem *p = &g->c->problem;
  fa_int32_array *row = &p->kvcache.batch_idx;
  int64_t n_rows = p->batch + fa_rng_below(r, 3);
  fa_status status = fa_int32_array_set(row, NULL, p->batch);
  for (int64_t b = 0; status == FA_OK && b < p->batch; ++b) {
    bool taken = true;
    while (taken) {
      row->v[b] = (int32_t)fa_rng_below(r, n_rows);
      taken = false;
      for (int64_t other = 0; other < b && p->kvcache.n_new > 0; ++other) taken |= row->v[other] == row->v[b];
    }
  }
  return status;
}

/* How many pages sequences share as far as their keys fill them: part of a common prefix, or all of it. It
 * uses its own random stream, so that nothing else in a case depends on it. */
static void draw_shared_pages(fa_gen *g) {
  fa_rng r = fa_gen_rng(g, FA_GEN_PAGES);
  fa_problem *p = &g->c->problem;
  if (p->batch < 2 || p->kvcache.page_size == 0 || !fa_rng_chance(&r, 0.8)) return;
  const int64_t n = p->seqlen_k / p->kvcache.page_size;
  p->kvcache.shared_pages = fa_rng_chance(&r, 0.5) ? n : fa_rng_range(&r, 1, n);
}

static void draw_rotary(fa_gen *g, fa_rng *r) {
  fa_problem *p = &g->c->problem;
  const int64_t whole = p->head_dim / 2 * 2, choice[] = {whole, whole, whole / 4 * 2, 2, 16, 32};
  int64_t dim = PICK(r, choice);
  p->kvcache.rotary_dim = dim > whole ? whole : dim;
  p->kvcache.rotary_interleaved = p->kvcache.rotary_dim > 0 && fa_rng_chance(r, 0.5);
}

/* All keys, nearly all (including new ones), or up to half. */
static int64_t draw_padding(fa_rng *r, int64_t keys) {
  const int64_t kind = fa_rng_below(r, 10);
  return kind == 0 ? keys : kind == 1 ? keys - keys / 16 : fa_rng_range(r, 0, keys / 2);
}

static fa_status draw_cache_lengths(fa_gen *g, fa_rng *r) {
  fa_problem *p = &g->c->problem;
  fa_kvcache *c = &p->kvcache;
  bool padded = fa_rng_chance(r, g->rules->leftpad);
  fa_status status = fa_int32_array_set(&c->len, NULL, p->batch);
  if (status == FA_OK && padded) status = fa_int32_array_set(&p->leftpad_k, NULL, p->batch);
  for (int64_t b = 0; status == FA_OK && b < p->batch; ++b) {
    c->len.v[b] = (int32_t)draw_valid(r, p->seqlen_k - c->n_new, c->page_size);
    int64_t keys = c->len.v[b] + c->n_new;
    if (padded) p->leftpad_k.v[b] = (int32_t)draw_padding(r, keys);
  }
  return status;
}

fa_status fa_gen_cache(fa_gen *g) {
  static const int64_t queries[] = {1, 1, 1, 1, 2, 3, 4, 5, 8, 16, 17, 63, 64, 65, 130};
  static const int64_t pages[] = {1, 2, 3, 7, 16, 16, 32, 64, 64, 128, 256},
                       new_keys[] = {1, 1, 1, 2, 3, 8, 17, 64, 65};
  fa_rng r = fa_gen_rng(g, FA_GEN_CACHE);
  fa_problem *p = &g->c->problem;
  fa_kvcache *c = &p->kvcache;
  c->present = true;
  if (p->heads_q == 8 * p->heads_kv && fa_rng_chance(&r, 0.5)) p->heads_q *= 2;
  p->seqlen_q = fa_rng_chance(&r, g->rules->empty / 8) ? 0 : PICK(&r, queries);
  int64_t longest = g->budget / (p->seqlen_q > 0 ? p->seqlen_q : 1);
  if (longest > g->rules->longest) longest = g->rules->longest;
  p->seqlen_k = fa_gen_length(g, &r, longest > 1 ? longest : 1);
  if (p->seqlen_k < 1) p->seqlen_k = 1;
  if (fa_rng_chance(&r, 0.4)) {
    c->page_size = PICK(&r, pages);
    p->seqlen_k = (p->seqlen_k + c->page_size - 1) / c->page_size * c->page_size;
  }
  fa_gen_mla_pages(g);
  if (fa_rng_chance(&r, 0.55)) c->n_new = PICK(&r, new_keys);
  if (c->n_new > p->seqlen_k) c->n_new = p->seqlen_k;
  /* The original interface rotates only with new keys; queries alone are still well defined. */
  if (fa_rng_chance(&r, c->n_new > 0 ? 0.5 : 0.1) && !c->v_in_k) draw_rotary(g, &r);
  fa_status status = draw_cache_lengths(g, &r);
  if (status == FA_OK && (g->rules->mixed || c->v_in_k)) status = draw_packed_queries(g);
  draw_shared_pages(g);
  if (status == FA_OK && c->page_size == 0 && fa_rng_chance(&r, 0.35)) status = draw_cache_rows(g, &r);
  return status;
}

/* ---- block-sparse lists ---- */

/* One row of lists: every tile is unlisted, partial or full, in random order; garbage past the counts. */
static void draw_list_row(fa_rng *r, int64_t n_kv, int32_t *n_partial, int32_t *partial, int32_t *n_full,
                          int32_t *full) {
  int64_t dense = fa_rng_range(r, 0, 4); /* of 4: how many tiles are listed */
  for (int64_t k = 0; k < n_kv; ++k) {
    partial[k] = (int32_t)fa_rng_range(r, -3, 2 * n_kv);
    full[k] = (int32_t)fa_rng_range(r, -3, 2 * n_kv);
  }
  *n_partial = *n_full = 0;
  for (int64_t k = 0; k < n_kv; ++k) {
    if (fa_rng_below(r, 4) >= dense) continue;
    bool is_full = fa_rng_chance(r, 0.4);
    int32_t *list = is_full ? full : partial, *n = is_full ? n_full : n_partial;
    int64_t at = fa_rng_range(r, 0, *n); /* insert anywhere: the contract leaves the order open */
    list[*n] = list[at];
    list[at] = (int32_t)k;
    ++*n;
  }
}

/* A divisor of n that is neither 1 nor n, if the chances are that there is one; else `usual`. */
static int64_t some_divisor(fa_rng *r, int64_t n, int64_t usual) {
  const int64_t d = fa_rng_range(r, 2, 6);
  return fa_rng_chance(r, 0.5) && d < n && n % d == 0 ? d : usual;
}

/* Fewer lists than entries or heads, each for every list_batch-th or list_heads-th of them. */
static void share_lists(const fa_gen *g, fa_block_sparse *s) {
  fa_rng r = fa_gen_rng(g, FA_GEN_LIST_SHAPES);
  s->list_batch = some_divisor(&r, g->c->problem.batch, s->list_batch);
  s->list_heads = some_divisor(&r, g->c->problem.heads_q, s->list_heads);
}

static fa_status draw_lists(fa_gen *g, fa_rng *r) {
  fa_problem *p = &g->c->problem;
  fa_block_sparse *s = &p->block_sparse;
  int64_t n_q = (p->seqlen_q + s->q_block - 1) / s->q_block,
          n_kv = (p->seqlen_k + s->kv_block - 1) / s->kv_block;
  s->source = FA_BLOCKS_LISTS;
  s->list_batch = fa_rng_chance(r, 0.5) ? p->batch : 1;
  s->list_heads = fa_rng_chance(r, 0.5) ? p->heads_q : 1;
  share_lists(g, s);
  int64_t rows = s->list_batch * s->list_heads * n_q;
  fa_status status;
  if ((status = fa_int32_array_set(&s->kv_num_blocks, NULL, rows)) != FA_OK) return status;
  if ((status = fa_int32_array_set(&s->kv_indices, NULL, rows * n_kv)) != FA_OK) return status;
  if ((status = fa_int32_array_set(&s->full_kv_num_blocks, NULL, rows)) != FA_OK) return status;
  if ((status = fa_int32_array_set(&s->full_kv_indices, NULL, rows * n_kv)) != FA_OK) return status;
  for (int64_t k = 0; k < rows && n_kv > 0; ++k)
    draw_list_row(r, n_kv, &s->kv_num_blocks.v[k], s->kv_indices.v + k * n_kv, &s->full_kv_num_blocks.v[k],
                  s->full_kv_indices.v + k * n_kv);
  return FA_OK;
}

fa_status fa_gen_blocks(fa_gen *g) {
  static const int64_t sizes[] = {16, 32, 64, 64, 128, 128, 48, 80, 96, 192, 256};
  static const double densities[] = {0, 0.1, 0.25, 0.5, 0.5, 0.75, 1};
  fa_rng r = fa_gen_rng(g, FA_GEN_BLOCKS);
  fa_problem *p = &g->c->problem;
  fa_block_sparse *s = &p->block_sparse;
  if (p->mask_bits.present || p->topk.present) return FA_OK; /* which are not together with lists */
  if ((p->family != FA_FLEX && !g->rules->mixed) || !fa_rng_chance(&r, g->rules->blocks)) return FA_OK;
  s->present = true;
  s->q_block = PICK(&r, sizes);
  s->kv_block = PICK(&r, sizes);
  bool empty = p->seqlen_q == 0 || p->seqlen_k == 0; /* nested lists cannot express an axis without tiles */
  bool few = !empty && (p->seqlen_q / s->q_block + 1) * (p->seqlen_k / s->kv_block + 1) <= 64;
  if (few && fa_rng_chance(&r, 0.4)) return draw_lists(g, &r);
  s->source = FA_BLOCKS_DENSITY;
  s->density = PICK(&r, densities);
  s->seed = fa_rng_next(&r);
  return FA_OK;
}
