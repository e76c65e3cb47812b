#include "ref/merge/row.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

fa_status fa_merge_row_init(fa_merge_row *r, const fa_ref_call *c, fa_error *err) {
  const int64_t n = c->p->merge.parts, width = c->p->head_dim;
  *r = (fa_merge_row){.c = c, .n = n, .width = width, .unit = c->p->merge.base_2 ? log(2) : 1};
  r->lse = malloc((size_t)n * sizeof *r->lse);
  r->weight = malloc((size_t)n * sizeof *r->weight);
  r->eps = calloc((size_t)n, sizeof *r->eps);
  r->o = malloc((size_t)(n * width) * sizeof *r->o);
  if (r->lse && r->weight && r->eps && r->o) return FA_OK;
  fa_merge_row_free(r);
  return fa_fail(err, FA_ERR_MEMORY, "reference: out of memory");
}

void fa_merge_row_free(fa_merge_row *r) {
  free(r->lse);
  free(r->weight);
  free(r->eps);
  free(r->o);
  *r = (fa_merge_row){0};
}

fa_tensor fa_merge_part(const fa_tensor *t, int64_t part) {
  fa_tensor one = {.dtype = t->dtype,
                   .rank = t->rank - 1,
                   .data = t->data + part * t->stride[0] * (int64_t)fa_dtype_size(t->dtype)};
  for (int a = 0; a < one.rank; ++a) one.shape[a] = t->shape[a + 1], one.stride[a] = t->stride[a + 1];
  return one;
}

/* An empty part may hold anything in its O. */
static void load_part(fa_merge_row *r, int64_t part) {
  const fa_tensors *in = r->c->in;
  const fa_tensor lse = fa_merge_part(&in->t[FA_T_LSE_PARTS], part),
                  o = fa_merge_part(&in->t[FA_T_O_PARTS], part);
  const double given = fa_ref_lse_get(r->c, &lse, r->e, r->h, r->i);
  double *row = r->o + part * r->width;
  r->lse[part] = isinf(given) ? -INFINITY : given * r->unit;
  if (isinf(given))
    memset(row, 0, (size_t)r->width * sizeof *row);
  else
    fa_ref_load_row(&o, fa_ref_q_row(r->c, &o, r->e, r->h, r->i), o.stride[o.rank - 1], r->width, row);
}

static void weigh(fa_merge_row *r) {
  double sum = 0;
  r->max = -INFINITY;
  for (int64_t k = 0; k < r->n; ++k)
    if (r->lse[k] > r->max) r->max = r->lse[k];
  for (int64_t k = 0; k < r->n; ++k) sum += r->weight[k] = r->max > -INFINITY ? exp(r->lse[k] - r->max) : 0;
  r->total = sum > 0 ? r->max + log(sum) : -INFINITY;
  for (int64_t k = 0; k < r->n && sum > 0; ++k) r->weight[k] /= sum;
}

void fa_merge_row_load(fa_merge_row *r, const fa_ref_sequence *e, int64_t h, int64_t i) {
  r->e = e;
  r->h = h;
  r->i = i;
  for (int64_t k = 0; k < r->n; ++k) load_part(r, k);
  weigh(r);
  if (r->c->profile) fa_merge_row_errors(r);
}

fa_status fa_merge_for_rows(const fa_ref_call *c, fa_merge_visit *visit, void *context, fa_error *err) {
  fa_merge_row r;
  const fa_status status = fa_merge_row_init(&r, c, err);
  if (status != FA_OK) return status;
  for (int64_t b = 0; b < c->p->batch; ++b)
    for (int64_t h = 0; h < c->heads_q; ++h)
      for (int64_t i = 0; i < c->entry[b].sq; ++i) {
        fa_merge_row_load(&r, &c->entry[b], h, i);
        visit(&r, context);
      }
  fa_merge_row_free(&r);
  return FA_OK;
}
