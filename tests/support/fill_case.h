/* Cases with one fill, and their elements. */
#ifndef FA_TESTS_SUPPORT_FILL_CASE_H
#define FA_TESTS_SUPPORT_FILL_CASE_H

#include "tests/support/built_case.h"

typedef struct setup {
  fa_dtype dtype;
  int64_t batch, hq, hk, sq, sk, d, dv;
  double scale; /* 0: the default */
} setup;

static inline fa_case make_case(const setup *s, fa_fill fill) {
  fa_case c;
  REQUIRE(fa_case_init(&c) == FA_OK);
  fa_problem *p = &c.problem;
  fa_problem_set_family(p, s->dv == s->d ? FA_FLASH : FA_FLEX);
  p->dtype = s->dtype;
  p->batch = s->batch, p->heads_q = s->hq, p->heads_kv = s->hk;
  p->seqlen_q = s->sq, p->seqlen_k = s->sk, p->head_dim = s->d, p->head_dim_v = s->dv;
  p->scale = s->scale != 0 ? s->scale : fa_default_scale(s->d);
  fa_case_set_fill(&c, fill);
  c.data_seed = 42;
  return c;
}

static inline double get4(const fa_tensor *t, int64_t b, int64_t s, int64_t h, int64_t d) {
  const int64_t index[4] = {b, s, h, d};
  return fa_tensor_get(t, t->rank == 4 ? index : index + 1);
}

/* Logical element (b, s, h, d) of a dense or variable-length q, k, v or do. */
static inline double element(const fa_case *c, const fa_tensors *set, fa_tensor_id id, int64_t b, int64_t s,
                             int64_t h, int64_t d) {
  const fa_sequence e = fa_case_sequence(&c->problem, b);
  return get4(&set->t[id], b, s + (id == FA_T_K || id == FA_T_V ? e.k_start : e.q_start), h, d);
}

#endif
