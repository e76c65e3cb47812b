/* The case that the tests of fa_case_build vary, and comparisons of what is built. */
#ifndef FA_TESTS_SUPPORT_BUILD_COMMON_H
#define FA_TESTS_SUPPORT_BUILD_COMMON_H

#include "tests/support/built_case.h"

#include <string.h>

static inline fa_case base_case(fa_family family) {
  fa_case c;
  REQUIRE(fa_case_init(&c) == FA_OK);
  fa_problem *p = &c.problem;
  fa_problem_set_family(p, family);
  p->batch = 2, p->heads_q = 4, p->heads_kv = 2, p->seqlen_q = 5, p->seqlen_k = 7;
  p->head_dim = p->head_dim_v = 8;
  p->scale = fa_default_scale(8);
  c.data_seed = 7;
  return c;
}

static inline bool has_shape(const fa_tensor *t, fa_dtype dtype, int rank, int64_t a, int64_t b, int64_t c,
                             int64_t d) {
  const int64_t want[4] = {a, b, c, d};
  if (t->data == NULL || t->dtype != dtype || t->rank != rank) return false;
  for (int i = 0; i < rank; ++i)
    if (t->shape[i] != want[i]) return false;
  return true;
}

static inline bool bits_equal(const fa_tensor *a, const int64_t *i, const fa_tensor *b, const int64_t *k) {
  return memcmp(a->data + fa_tensor_offset(a, i), b->data + fa_tensor_offset(b, k),
                fa_dtype_size(a->dtype)) == 0;
}

/* Same shape and the same bits, element by element. */
static inline bool same_values(const fa_tensor *a, const fa_tensor *b) {
  if ((a->data == NULL) != (b->data == NULL) || a->rank != b->rank ||
      fa_tensor_count(a) != fa_tensor_count(b))
    return false;
  for (int64_t at = 0; at < fa_tensor_count(a); ++at) {
    int64_t i[FA_MAX_RANK];
    fa_tensor_unravel(a, at, i);
    if (!bits_equal(a, i, b, i)) return false;
  }
  return true;
}
#endif
