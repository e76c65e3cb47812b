/* The shapes of a case's tensors. */
#include "cases/recipe/case.h"
#include "cases/tensors/table.h"

void fa_case_tensor_shape(const fa_case *c, fa_tensor_id id, int64_t shape[4]) {
  fa_tensor_shape(&c->problem, id, shape);
}

void fa_case_cache_shape(const fa_problem *p, int64_t d, int64_t shape[4]) {
  const fa_kvcache *k = &p->kvcache;
  const bool paged = k->page_size > 0, spare = k->batch_idx.n > 0; /* a row that no sequence maps to */
  shape[0] =
      paged ? p->batch * (p->seqlen_k / k->page_size) + FA_SPARE_PAGES : fa_problem_cache_rows(p) + spare;
  shape[1] = paged ? k->page_size : p->seqlen_k;
  shape[2] = p->heads_kv;
  shape[3] = d;
}
