/* Partial states merged, two at a time and in float32: the state so far, and the next part. */
#include "gpu/ref_f32/parts.h"

#include <math.h>
#include <stdlib.h>

typedef struct work {
  const fa_problem *p;
  const fa_tensors *t;
  float *o, *part, *d_o; /* [head_dim] */
} work;

static fa_status work_alloc(work *w, const fa_problem *p, const fa_tensors *t, fa_error *err) {
  const size_t bytes = (size_t)p->head_dim * sizeof(float);
  *w = (work){p, t, malloc(bytes), malloc(bytes), malloc(bytes)};
  if (w->o && w->part && w->d_o) return FA_OK;
  return fa_fail(err, FA_ERR_MEMORY, "ref-f32: out of memory in a merge");
}

static void work_free(work *w) {
  free(w->o);
  free(w->part);
  free(w->d_o);
}

static fa_tensor part_of(const fa_tensor *t, int64_t k) {
  fa_tensor one = *t;
  one.rank = t->rank - 1;
  one.data += k * t->stride[0] * (int64_t)fa_dtype_size(t->dtype);
  for (int a = 0; a < one.rank; ++a) one.shape[a] = t->shape[a + 1], one.stride[a] = t->stride[a + 1];
  return one;
}

static float log_sum(const fa_problem *p, float a, float b) {
  const float high = fmaxf(a, b), low = fminf(a, b);
  return high + (p->merge.base_2 ? log2f(1.0f + exp2f(low - high)) : logf(1.0f + expf(low - high)));
}

static float weight(const fa_problem *p, float lse, float total) {
  return p->merge.base_2 ? exp2f(lse - total) : expf(lse - total);
}

static void load(const work *w, const fa_tensor *x, const fa_f32_sequence *e, int64_t h, int64_t i,
                 float *to) {
  fa_f32_load(x->dtype, fa_f32_q_row(w->p, x, e, h, i), x->stride[x->rank - 1], w->p->head_dim, to);
}

static void store(const work *w, const fa_tensor *x, const fa_f32_sequence *e, int64_t h, int64_t i,
                  const float *from) {
  fa_f32_store(x->dtype, fa_f32_q_row(w->p, x, e, h, i), x->stride[x->rank - 1], w->p->head_dim, from);
}

/* Adds a part that is not empty to the state (w->o, lse); returns the new LSE. */
static float add_part(const work *w, float lse, float part_lse) {
  const float total = lse == -INFINITY ? part_lse : log_sum(w->p, lse, part_lse);
  const float old = lse == -INFINITY ? 0.0f : weight(w->p, lse, total), new = weight(w->p, part_lse, total);
  for (int64_t d = 0; d < w->p->head_dim; ++d) w->o[d] = fmaf(new, w->part[d], old * w->o[d]);
  return total;
}

static void forward_row(const work *w, const fa_f32_sequence *e, int64_t h, int64_t i) {
  const fa_tensor *x = w->t->t;
  float lse = -INFINITY;
  for (int64_t d = 0; d < w->p->head_dim; ++d) w->o[d] = 0.0f;
  for (int64_t k = 0; k < w->p->merge.parts; ++k) {
    const fa_tensor o = part_of(&x[FA_T_O_PARTS], k), l = part_of(&x[FA_T_LSE_PARTS], k);
    const float part_lse = *fa_f32_lse_at(w->p, &l, e, h, i);
    if (isinf(part_lse)) continue;
    load(w, &o, e, h, i, w->part);
    lse = add_part(w, lse, part_lse);
  }
  store(w, &x[FA_T_O], e, h, i, w->o);
  *fa_f32_lse_at(w->p, &x[FA_T_LSE], e, h, i) = lse;
}

/* dO_k = w dO, dLSE_k = w (dLSE + dO . (O_k - O)), in base 2 with ln 2 before the product. */
static void backward_part(const work *w, const fa_f32_sequence *e, int64_t h, int64_t i, int64_t k,
                          float d_lse) {
  const fa_tensor *x = w->t->t;
  const fa_tensor o = part_of(&x[FA_T_O_PARTS], k), l = part_of(&x[FA_T_LSE_PARTS], k),
                  d_part = part_of(&x[FA_T_DO_PARTS], k), d_l = part_of(&x[FA_T_DLSE_PARTS], k);
  const float part_lse = *fa_f32_lse_at(w->p, &l, e, h, i),
              total = *fa_f32_lse_at(w->p, &x[FA_T_LSE], e, h, i);
  const bool empty = isinf(part_lse);
  const float share = empty ? 0.0f : weight(w->p, part_lse, total);
  float sum = 0.0f;
  load(w, &o, e, h, i, w->part);
  for (int64_t d = 0; d < w->p->head_dim && !empty; ++d) sum = fmaf(w->d_o[d], w->part[d] - w->o[d], sum);
  for (int64_t d = 0; d < w->p->head_dim; ++d) w->part[d] = share * w->d_o[d];
  store(w, &d_part, e, h, i, w->part);
  *fa_f32_lse_at(w->p, &d_l, e, h, i) = share * (d_lse + (w->p->merge.base_2 ? 0x1.62e43p-1f * sum : sum));
}

static void backward_row(const work *w, const fa_f32_sequence *e, int64_t h, int64_t i) {
  const fa_tensor *x = w->t->t;
  const float d_lse = x[FA_T_DLSE].data ? *fa_f32_lse_at(w->p, &x[FA_T_DLSE], e, h, i) : 0.0f;
  load(w, &x[FA_T_O], e, h, i, w->o);
  load(w, &x[FA_T_DO], e, h, i, w->d_o);
  for (int64_t k = 0; k < w->p->merge.parts; ++k) backward_part(w, e, h, i, k, d_lse);
}

static fa_status for_rows(const fa_problem *p, const fa_tensors *t,
                          void (*visit)(const work *, const fa_f32_sequence *, int64_t, int64_t),
                          fa_error *err) {
  work w;
  const fa_status status = work_alloc(&w, p, t, err);
  for (int64_t b = 0; status == FA_OK && b < p->batch; ++b) {
    const fa_f32_sequence e = fa_f32_sequence_make(p, t, b);
    for (int64_t h = 0; h < p->heads_q; ++h)
      for (int64_t i = 0; i < e.n_q; ++i) visit(&w, &e, h, i);
  }
  work_free(&w);
  return status;
}

fa_status fa_f32_merge_forward(const fa_problem *p, fa_tensors *t, fa_error *err) {
  return for_rows(p, t, forward_row, err);
}

fa_status fa_f32_merge_backward(const fa_problem *p, fa_tensors *t, fa_error *err) {
  return for_rows(p, t, backward_row, err);
}
