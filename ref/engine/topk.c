/* Lists of keys, as numbers of keys in their sequences. */
#include "ref/engine/topk.h"

#include <stdlib.h>
#include <string.h>

static int64_t row_of(const fa_ref_call *c, const fa_ref_sequence *e, int64_t i) {
  return (c->p->cu_seqlens_q.n > 0 ? e->q_first : e->b * c->p->seqlen_q) + i;
}

const int32_t *fa_ref_topk_list(const fa_ref_call *c, const fa_ref_sequence *e, int64_t i) {
  return c->topk->key + row_of(c, e, i) * c->p->topk.k;
}

int64_t fa_ref_topk_most(const fa_ref_call *c, const fa_ref_sequence *e, int64_t i) {
  return c->topk ? c->topk->most[row_of(c, e, i)] : 1;
}

bool fa_ref_topk_is_listed(const fa_ref_call *c, const fa_ref_sequence *e, int64_t j) {
  return !c->topk || c->topk->listed[e->b * c->topk->stride + j];
}

/* The key that an entry of the sequence names; -1: none. of_page: the sequence's page of each page, -1: not its own. */
static int32_t key_of(const fa_ref_call *c, const fa_ref_sequence *e, int64_t entry, const int32_t *of_page,
                      int64_t n_pages) {
  const int64_t page = c->p->kvcache.page_size;
  int64_t j = entry;
  if (entry < 0) return -1;
  if (page > 0) {
    if (entry / page >= n_pages || of_page[entry / page] < 0) return -1;
    j = of_page[entry / page] * page + entry % page;
  }
  return j < e->sk ? (int32_t)j : -1;
}

static void map_pages(const fa_ref_call *c, const fa_ref_sequence *e, int32_t *of_page, int64_t n_pages) {
  const int64_t size = c->p->kvcache.page_size;
  for (int64_t x = 0; x < n_pages; ++x) of_page[x] = -1;
  for (int64_t m = 0; size > 0 && m * size < e->sk; ++m) {
    const int64_t at[FA_MAX_RANK] = {e->b, m};
    of_page[(int64_t)fa_tensor_get(&c->in->t[FA_T_BLOCK_TABLE], at)] = (int32_t)m;
  }
}

/* A row's list, how often it names the key that it names most, and which keys it names. */
static void read_list(fa_ref_call *c, const fa_ref_sequence *e, int64_t i, const int32_t *of_page,
                      int64_t n_pages, int32_t *times) {
  const fa_tensor *t = &c->in->t[FA_T_TOPK_INDICES], *length = &c->in->t[FA_T_TOPK_LENGTH];
  const int64_t row = row_of(c, e, i), k = c->p->topk.k, b[FA_MAX_RANK] = {e->b};
  const int64_t len = length->data ? (int64_t)fa_tensor_get(length, b) : k;
  int32_t *key = c->topk->key + row * k, most = 1;
  uint8_t *listed = c->topk->listed + e->b * c->topk->stride;
  for (int64_t n = 0; n < k; ++n) {
    const int64_t at[FA_MAX_RANK] = {t->rank == 2 ? row : e->b, t->rank == 2 ? n : i, n};
    key[n] = n < len ? key_of(c, e, (int64_t)fa_tensor_get(t, at), of_page, n_pages) : -1;
    if (key[n] < 0) continue;
    listed[key[n]] = 1;
    if (++times[key[n]] > most) most = times[key[n]];
  }
  for (int64_t n = 0; n < k; ++n)
    if (key[n] >= 0) times[key[n]] = 0;
  c->topk->most[row] = most;
}

fa_status fa_ref_topk_init(fa_ref_call *c, fa_error *err) {
  if (!c->p->topk.present) return FA_OK;
  const int64_t rows = fa_problem_total_q(c->p),
                n_pages = c->p->kvcache.page_size ? c->in->t[FA_T_K].shape[0] : 0;
  fa_ref_topk *x = c->topk = calloc(1, sizeof *x);
  int32_t *of_page = malloc((size_t)(n_pages + 1) * sizeof *of_page);
  int32_t *times = calloc((size_t)c->max_sk + 1, sizeof *times);
  if (x) {
    x->stride = c->max_sk;
    x->key = malloc((size_t)(rows * c->p->topk.k + 1) * sizeof *x->key);
    x->most = malloc((size_t)(rows + 1) * sizeof *x->most);
    x->listed = calloc((size_t)(c->p->batch * c->max_sk + 1), 1);
  }
  const bool room = x && x->key && x->most && x->listed && of_page && times;
  for (int64_t b = 0; room && b < c->p->batch; ++b) {
    map_pages(c, &c->entry[b], of_page, n_pages);
    for (int64_t i = 0; i < c->entry[b].sq; ++i) read_list(c, &c->entry[b], i, of_page, n_pages, times);
  }
  free(of_page);
  free(times);
  return room ? FA_OK : fa_fail(err, FA_ERR_MEMORY, "reference: out of memory for lists of keys");
}

void fa_ref_topk_free(fa_ref_call *c) {
  if (c->topk) {
    free(c->topk->key);
    free(c->topk->most);
    free(c->topk->listed);
  }
  free(c->topk);
  c->topk = NULL;
}
