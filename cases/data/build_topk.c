/* Lists of keys, from their recipe. */
#include "cases/base/rng.h"
#include "cases/data/build.h"
#include "cases/vocabulary/topk.h"

#include <stdlib.h>

/* The list of one row, and what it is drawn from. */
typedef struct key_list {
  const fa_case *c;
  const fa_tensors *set;
  fa_sequence e;
  int64_t b, i;
  int64_t unused; /* a slot that no sequence holds a key in; -1: none */
  int32_t *order; /* [keys of the sequence] */
} key_list;

static int64_t slot_of(const key_list *l, int64_t key) {
  const int64_t page = l->c->problem.kvcache.page_size, entry[2] = {l->b, page > 0 ? key / page : 0};
  if (page == 0) return key;
  return (int64_t)fa_tensor_get(&l->set->t[FA_T_BLOCK_TABLE], entry) * page + key % page;
}

/* Whether the list's entry n names none, as far as the recipe says. */
static bool is_none(const fa_topk *t, int64_t n, fa_rng *r) {
  const int64_t count = (int64_t)(t->none * (double)t->k + 0.5);
  if (t->none_at == FA_TOPK_ANYWHERE) return fa_rng_chance(r, t->none);
  return t->none_at == FA_TOPK_FRONT ? n < count : n >= t->k - count;
}

static int32_t none(const key_list *l, fa_rng *r) {
  if (!l->c->problem.topk.beyond || fa_rng_chance(r, 0.5)) return -1;
  return fa_rng_chance(r, 0.5) ? INT32_MAX : (int32_t)l->e.sk;
}

/* A key that was not listed yet: a shuffle that stops when the list is full. */
static int32_t another(const key_list *l, int64_t n_taken, fa_rng *r) {
  const int64_t at = fa_rng_range(r, n_taken, l->e.sk - 1);
  const int32_t key = l->order[at];
  l->order[at] = l->order[n_taken];
  return l->order[n_taken] = key;
}

static void draw_list(const key_list *l, int32_t *out) {
  const fa_topk *t = &l->c->problem.topk;
  const int64_t len = t->len.n > 0 ? t->len.v[l->b] : t->k;
  fa_rng row = fa_rng_make(fa_rng_u64(t->seed, (uint64_t)l->b, (uint64_t)l->i), 0), *r = &row;
  const bool empty = fa_rng_chance(r, t->empty_rows);
  int64_t taken = 0;
  for (int64_t j = 0; j < l->e.sk; ++j) l->order[j] = (int32_t)j;
  for (int64_t n = 0; n < t->k; ++n) {
    const bool repeats = fa_rng_chance(r, t->repeated);
    if (n >= len)
      out[n] = (int32_t)l->unused;
    else if (empty || is_none(t, n, r) || (taken == l->e.sk && !(repeats && taken > 0)))
      out[n] = none(l, r);
    else if (repeats && taken > 0)
      out[n] = (int32_t)slot_of(l, l->order[fa_rng_below(r, taken)]);
    else
      out[n] = (int32_t)slot_of(l, another(l, taken, r)), ++taken;
  }
}

/* A slot behind the sequence's keys, or in a page that nobody owns: NaN. */
static int64_t unused_slot(const fa_case *c, const fa_tensors *set, int64_t keys) {
  const fa_problem *p = &c->problem;
  const int64_t page = p->kvcache.page_size, n_pages = set->t[FA_T_K].shape[0],
                per = page > 0 ? p->seqlen_k / page : 0;
  if (page == 0) return keys < p->seqlen_k ? keys : -1;
  for (int64_t x = 0; x < n_pages; ++x) {
    bool owned = false;
    for (int64_t at = 0; at < p->batch * per && !owned; ++at)
      owned = (int64_t)fa_tensor_get(&set->t[FA_T_BLOCK_TABLE], (const int64_t[]){at / per, at % per}) == x;
    if (!owned) return x * page;
  }
  return -1;
}

fa_status fa_build_topk(const fa_case *c, fa_tensors *set, fa_error *err) {
  const fa_problem *p = &c->problem;
  const fa_topk *t = &p->topk;
  if (!t->present) return FA_OK;
  const bool packed = fa_problem_is_varlen(p);
  const int64_t shape[3] = {packed ? fa_problem_total_q(p) : p->batch, packed ? t->k : p->seqlen_q, t->k};
  fa_status status = fa_build_int32(set, FA_T_TOPK_INDICES, packed ? 2 : 3, shape, NULL, err);
  if (status == FA_OK && t->len.n > 0)
    status = fa_build_int32(set, FA_T_TOPK_LENGTH, 1, &t->len.n, t->len.v, err);
  if (status != FA_OK) return status;
  key_list l = {.c = c, .set = set, .order = malloc((size_t)(p->seqlen_k + 1) * sizeof *l.order)};
  if (!l.order) return fa_fail(err, FA_ERR_MEMORY, "topk_indices: out of memory");
  int32_t *out = (int32_t *)(void *)set->t[FA_T_TOPK_INDICES].data;
  for (l.b = 0; l.b < p->batch; ++l.b) {
    l.e = fa_case_sequence(p, l.b);
    l.unused = unused_slot(c, set, l.e.sk);
    for (l.i = 0; l.i < l.e.sq; ++l.i, out += t->k) draw_list(&l, out);
  }
  free(l.order);
  return FA_OK;
}

void fa_topk_mark(const fa_case *c, const fa_tensors *set, int64_t b, uint8_t *listed) {
  const fa_problem *p = &c->problem;
  const fa_topk *t = &p->topk;
  const fa_sequence e = fa_case_sequence(p, b);
  const key_list l = {.c = c, .set = set, .e = e, .b = b};
  const int64_t len = t->len.n > 0 ? t->len.v[b] : t->k,
                first = fa_problem_is_varlen(p) ? e.q_start : b * p->seqlen_q;
  const int32_t *lists = (const int32_t *)(const void *)set->t[FA_T_TOPK_INDICES].data + first * t->k;
  for (int64_t j = 0; j < e.sk; ++j) {
    const int64_t slot = slot_of(&l, j);
    listed[j] = 0;
    for (int64_t n = 0; n < e.sq * t->k && !listed[j]; ++n) listed[j] = n % t->k < len && lists[n] == slot;
  }
}
