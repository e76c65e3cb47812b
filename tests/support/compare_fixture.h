/* A made-up want with bounds, and a got within them; tests then break one thing at a time. */
#ifndef FA_TESTS_SUPPORT_COMPARE_FIXTURE_H
#define FA_TESTS_SUPPORT_COMPARE_FIXTURE_H

#include "cases/base/bits.h"
#include "cases/base/rng.h"
#include "ref/compare/verdict.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

typedef struct fixture {
  fa_problem p;
  fa_tensor_id id;
  fa_tensors set;
  fa_want w;
  fa_verdict v;
} fixture;

/* Values N(0,1); quant 2^-9, accum 2^-20, scale 1; got: the values rounded to dtype. The caller has set the
 * problem. */
static inline void fixture_make(fixture *f, fa_tensor_id id, fa_dtype dtype, int rank, const int64_t *shape) {
  f->id = id;
  f->w = (fa_want){.dtype = dtype, .rank = rank, .n = 1};
  for (int a = 0; a < rank; ++a) f->w.n *= f->w.shape[a] = shape[a];
  const size_t n = (size_t)f->w.n, rows = n / (size_t)shape[rank - 1];
  REQUIRE(fa_tensors_add(&f->set, id, dtype, rank, shape, NULL, 0, NULL) == FA_OK);
  f->w.value = malloc(n * sizeof *f->w.value);
  f->w.quant = malloc(n * sizeof *f->w.quant);
  f->w.accum = malloc(n * sizeof *f->w.accum);
  f->w.noise = malloc(n * sizeof *f->w.noise);
  f->w.scale = malloc(rows * sizeof *f->w.scale);
  for (size_t e = 0; e < n; ++e) {
    int64_t index[FA_MAX_RANK];
    f->w.value[e] = fa_rng_normal(7, id, e);
    f->w.quant[e] = 0x1p-9f;
    f->w.noise[e] = 0x1p-11f;
    f->w.accum[e] = 0x1p-20f;
    fa_tensor_unravel(&f->set.t[id], (int64_t)e, index);
    fa_tensor_set(&f->set.t[id], index, f->w.value[e]);
  }
  for (size_t r = 0; r < rows; ++r) f->w.scale[r] = 1;
}

static inline void fixture_free(fixture *f) {
  fa_tensors_free(&f->set);
  free(f->w.value);
  free(f->w.quant);
  free(f->w.accum);
  free(f->w.noise);
  free(f->w.scale);
  free(f->w.least);
  free(f->w.most);
  fa_problem_free(&f->p);
}

static inline const fa_verdict *fixture_compare(fixture *f) {
  const fa_compare_options opt = {.generic = true, .judge_stats = true, .poison = FA_POISON_A};
  fa_error err = {""};
  const fa_status status =
      fa_compare_tensor(f->id, &f->p, &f->set, &f->w, &f->set.t[f->id], &opt, &f->v, &err);
  CHECK_MSG(status == FA_OK, "%s", err.text);
  return &f->v;
}

static inline void fixture_set(fixture *f, int64_t position, double x) {
  int64_t index[FA_MAX_RANK];
  fa_tensor_unravel(&f->set.t[f->id], position, index);
  fa_tensor_set(&f->set.t[f->id], index, x);
}
static inline double fixture_get(fixture *f, int64_t position) {
  int64_t index[FA_MAX_RANK];
  fa_tensor_unravel(&f->set.t[f->id], position, index);
  return fa_tensor_get(&f->set.t[f->id], index);
}
/* The element's own bytes (row-major, contiguous). */
static inline char *fixture_bytes(fixture *f, int64_t position) {
  return f->set.t[f->id].data + position * (int64_t)fa_dtype_size(f->w.dtype);
}

#endif
