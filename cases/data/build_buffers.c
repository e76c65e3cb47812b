/* Captured buffers, and the tensors of their gradients. */
#include "cases/base/rng.h"
#include "cases/data/build.h"
#include "cases/expr/ast.h"
#include "cases/vocabulary/problem_expr.h"

#include <stdlib.h>
#include <string.h>

/* Keyed by the buffer's name, so that adding or removing another buffer does not change its values. */
static uint64_t seed_of(uint64_t data_seed, const fa_capture *c) {
  uint64_t h = 0xcbf29ce484222325u;
  for (const char *s = c->name; *s; ++s) h = (h ^ (unsigned char)*s) * 0x100000001b3u;
  return fa_rng_u64(data_seed, h, 1);
}

/* value[n]: ascending numbers, with below - 1 steps at random places along the row. */
static void sorted_row(uint64_t seed, int64_t row, int64_t below, int64_t n, double *value) {
  for (int64_t d = 0; d < n; ++d) value[d] = 0;
  for (int64_t k = 1; k < below; ++k)
    value[(int64_t)(fa_rng_uniform(seed, (uint64_t)row, (uint64_t)k) * (double)n)] += 1;
  for (int64_t d = 1; d < n; ++d) value[d] += value[d - 1];
}

static void int_row(uint64_t seed, int64_t row, const fa_capture *c, int64_t n, double *value) {
  if (c->sorted) {
    sorted_row(seed, row, c->below, n, value);
    return;
  }
  for (int64_t d = 0; d < n; ++d)
    value[d] = (double)(fa_rng_u64(seed, (uint64_t)row, (uint64_t)d) % (uint64_t)c->below);
}

static void bool_row(uint64_t seed, int64_t row, double share, int64_t n, double *value) {
  for (int64_t d = 0; d < n; ++d) value[d] = fa_rng_uniform(seed, (uint64_t)row, (uint64_t)d) < share;
}

/* all: the buffer. What an axis of stride 0 repeats is drawn once, as that of an axis of one element, so that it does
 * not depend on how often it is repeated. */
static fa_status fill(const fa_case *c, int k, const fa_tensor *all, fa_error *err) {
  const fa_capture *capture = &c->problem.captures[k];
  fa_tensor once = *all, *t = &once;
  for (int i = 0; i < t->rank; ++i)
    if (t->stride[i] == 0) t->shape[i] = 1;
  const int64_t n = t->shape[t->rank - 1], rows = fa_tensor_count(t) / n;
  int64_t index[FA_MAX_RANK];
  double *value = malloc((size_t)n * sizeof *value);
  fa_fill_row row = {.c = c, .id = (fa_tensor_id)(FA_T_BUFFER_0 + k), .seed = seed_of(c->data_seed, capture)};
  if (!value) return fa_fail(err, FA_ERR_MEMORY, "buffer %s: out of memory", capture->name);
  fa_fill_from_name(capture->fill, &row.fill); /* validated */
  const fa_fill_numbers numbers = fa_fill_numbers_of(c, row.id, row.fill, n);
  row.numbers = &numbers;
  for (row.s = 0; row.s < rows; ++row.s) {
    if (fa_capture_is_int(capture))
      int_row(row.seed, row.s, capture, n, value);
    else if (capture->dtype == FA_BOOL)
      bool_row(row.seed, row.s, capture->share, n, value);
    else
      fa_fill_row_values(&row, value, n);
    fa_tensor_unravel(t, row.s * n, index);
    fa_store_row(t->dtype, t->data + fa_tensor_offset(t, index), t->stride[t->rank - 1], n, value);
  }
  free(value);
  return FA_OK;
}

fa_status fa_build_buffers(const fa_case *c, fa_tensors *set, fa_error *err) {
  const fa_problem *p = &c->problem;
  fa_expr score;
  if (p->n_captures == 0) return FA_OK;
  fa_status status = fa_expr_of(p, FA_EXPR_SCORE_MOD, &score, err);
  for (int k = 0; k < p->n_captures && status == FA_OK; ++k) {
    const fa_capture *capture = &p->captures[k];
    const int64_t one = 1, *shape = capture->rank ? capture->shape : &one;
    const int64_t *stride = capture->n_strides ? capture->stride : NULL;
    const int rank = capture->rank ? capture->rank : 1;
    const fa_tensor_id id = (fa_tensor_id)(FA_T_BUFFER_0 + k), gradient = (fa_tensor_id)(FA_T_DBUFFER_0 + k);
    status = fa_tensors_add(set, id, capture->dtype, rank, shape, stride, 0, err);
    if (status == FA_OK) status = fill(c, k, &set->t[id], err);
    if (status == FA_OK && p->backward && capture->grad && fa_expr_reads(&score, k))
      status = fa_tensors_add(set, gradient, capture->dtype, rank, shape, NULL, 0, err);
  }
  fa_expr_free(&score);
  return status;
}
