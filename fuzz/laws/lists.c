/* Laws about lists of keys: a row sees a set of keys, in whatever order its list names them. */
#include "cases/base/rng.h"
#include "fuzz/laws/parts.h"

/* Of the tensor's own entries: behind them is a guard of equal words, in which nobody would see an exchange. */
static void exchange(const fa_tensor *t, int64_t a, int64_t b) {
  int32_t *v = (int32_t *)(void *)t->data;
  FA_ASSERT(a < fa_tensor_count(t) && b < fa_tensor_count(t));
  const int32_t entry = v[a];
  v[a] = v[b];
  v[b] = entry;
}

/* Shuffles what is of each list; what is behind its end stays there. */
static void shuffle_lists(const fa_law_work *w, const fa_tensor *t, const fa_tensor *length) {
  const fa_problem *p = &w->base.p;
  const int64_t k = p->topk.k, rows = fa_problem_total_q(p);
  fa_rng r = fa_rng_make(w->c->data_seed, 0x6c69737473);
  for (int64_t row = 0, b = 0; row < rows; ++row) {
    while (fa_problem_is_varlen(p) && row >= p->cu_seqlens_q.v[b + 1]) ++b;
    if (!fa_problem_is_varlen(p)) b = row / p->seqlen_q;
    const int64_t len = length->data ? (int64_t)fa_tensor_get(length, &b) : k;
    for (int64_t n = len - 1; n > 0; --n) exchange(t, row * k + n, row * k + fa_rng_below(&r, n + 1));
  }
}

fa_status fa_law_list_order(fa_law_work *w, fa_error *err) {
  FA_SKIP_IF(!w->c->problem.topk.present, "it has no lists of keys");
  FA_LAW_TRY(fa_law_make_base(w, err));
  FA_LAW_TRY(fa_law_run(w, &w->base, err));
  FA_LAW_TRY(fa_law_make_like(w, &w->other, &w->base, err));
  shuffle_lists(w, &w->other.in.t[FA_T_TOPK_INDICES], &w->other.in.t[FA_T_TOPK_LENGTH]);
  FA_LAW_TRY(fa_law_run(w, &w->other, err));
  return fa_law_compare_all(w, &w->other, fa_law_modes_all(FA_LAW_BOUND), NULL, NULL, err);
}
