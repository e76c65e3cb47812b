/* The shapes of a case's tensors. */
#include "cases/recipe/case.h"

static void set_shape(int64_t shape[4], int64_t b, int64_t s, int64_t h, int64_t d) {
  shape[0] = b, shape[1] = s, shape[2] = h, shape[3] = d;
}

void fa_case_tensor_shape(const fa_case *c, fa_tensor_id id, int64_t shape[4]) {
  const fa_problem *p = &c->problem;
  bool varlen = fa_problem_is_varlen(p), cache = p->family == FA_KVCACHE;
  int64_t batch = varlen ? 1 : p->batch;
  int64_t rows_q = varlen ? fa_problem_total_q(p) : p->seqlen_q;
  int64_t rows_k = varlen ? fa_problem_total_k(p) : p->seqlen_k;
  bool value = id == FA_T_V || id == FA_T_DV || id == FA_T_V_NEW || id == FA_T_O || id == FA_T_DO;
  int64_t d = value ? p->head_dim_v : p->head_dim;
  if (id == FA_T_BIAS || id == FA_T_DBIAS)
    set_shape(shape, p->bias.per_batch ? p->batch : 1, p->bias.per_query ? p->seqlen_q : 1,
              p->bias.per_head ? p->heads_q : 1, p->seqlen_k);
  else if (id == FA_T_LSE || id == FA_T_DLSE)
    set_shape(shape, batch, rows_q, p->heads_q, 1);
  else if (id == FA_T_K_NEW || id == FA_T_V_NEW)
    set_shape(shape, p->batch, p->kvcache.n_new, p->heads_kv, d);
  else if (id == FA_T_Q || id == FA_T_O || id == FA_T_DO || id == FA_T_DQ)
    set_shape(shape, batch, rows_q, p->heads_q, d);
  else if (cache && p->kvcache.page_size)
    set_shape(shape, batch * (p->seqlen_k / p->kvcache.page_size), p->kvcache.page_size, p->heads_kv, d);
  else
    set_shape(shape, cache ? fa_problem_cache_rows(p) : batch, rows_k, p->heads_kv, d);
}

void fa_case_cache_shape(const fa_problem *p, int64_t d, int64_t shape[4]) {
  const fa_kvcache *k = &p->kvcache;
  const bool paged = k->page_size > 0, spare = k->batch_idx.n > 0; /* a row that no entry maps to */
  shape[0] = paged ? p->batch * (p->seqlen_k / k->page_size) + FA_SPARE_PAGES : fa_problem_cache_rows(p) + spare;
  shape[1] = paged ? k->page_size : p->seqlen_k;
  shape[2] = p->heads_kv;
  shape[3] = d;
}
