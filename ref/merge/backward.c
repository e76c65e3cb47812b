#include "ref/merge/passes.h"
#include "ref/merge/row.h"

#include <math.h>
#include <stdlib.h>

typedef struct job {
  const fa_wants *forward;
  double *d_o; /* [width]: the row's dO */
} job;

/* A row's dO . (o_i - O), and what its rounding and an O that is not exact may change: sums of magnitudes. */
typedef struct slope {
  double value, size, o_error;
} slope;

static slope slope_of(const fa_merge_row *r, const job *j, int64_t part) {
  const fa_want *o = &j->forward->t[FA_T_O];
  const int64_t at = fa_ref_q_index(r->c, r->e, r->h, r->i, r->width);
  slope s = {0, 0, 0};
  for (int64_t x = 0; x < r->width; ++x) {
    const double part_o = r->o[part * r->width + x], whole = o->value[at + x], d_o = j->d_o[x];
    s.value += d_o * (part_o - whole);
    s.size += fabs(d_o) * (fabs(part_o) + fabs(whole));
    if (r->c->profile) s.o_error += fabs(d_o) * fa_want_bound(o, at + x);
  }
  return s;
}

static double lse_bound(const fa_merge_row *r, const job *j) {
  return fa_want_bound(&j->forward->t[FA_T_LSE], fa_ref_lse_index(r->c, r->e, r->h, r->i)) * r->unit;
}

static void part_o(const fa_merge_row *r, const job *j, int64_t part) {
  fa_want *w = &r->c->out->t[FA_T_DO_PARTS];
  const int64_t at = fa_merge_part_index(part, w->n / r->n, fa_ref_q_index(r->c, r->e, r->h, r->i, r->width));
  const double weight = r->weight[part];
  const double error = r->c->profile ? fa_merge_weight_error(r, part, lse_bound(r, j)) + 3 * FA_MERGE_U : 0;
  for (int64_t x = 0; x < r->width; ++x) {
    const double size = fabs(j->d_o[x]);
    w->value[at + x] = weight * j->d_o[x];
    if (!r->c->profile) continue;
    w->accum[at + x] = (float)(weight * size * error + FA_MERGE_FLUSHED * (1 + size));
    if (weight * size > w->scale[at / r->width]) w->scale[at / r->width] = (float)(weight * size);
  }
}

static void part_lse(const fa_merge_row *r, const job *j, int64_t part) {
  fa_want *w = &r->c->out->t[FA_T_DLSE_PARTS];
  const fa_tensor *given = &r->c->in->t[FA_T_DLSE];
  const int64_t at = fa_merge_part_index(part, w->n / r->n, fa_ref_lse_index(r->c, r->e, r->h, r->i));
  const double d_lse = given->data ? fa_ref_lse_get(r->c, given, r->e, r->h, r->i) : 0;
  const slope s = slope_of(r, j, part);
  const double weight = r->weight[part], width = (double)r->width;
  w->value[at] = weight * (d_lse + r->unit * s.value);
  if (!r->c->profile) return;
  const double error = fa_merge_weight_error(r, part, lse_bound(r, j));
  const double inner = r->unit * ((width + 2) * FA_MERGE_U * s.size + s.o_error);
  const double size = fabs(d_lse) + r->unit * fabs(s.value);
  w->accum[at] = (float)(weight * ((error + 4 * FA_MERGE_U) * size + (1 + error) * inner) +
                         FA_MERGE_FLUSHED * (1 + width + size + s.size));
  const float scale = (float)(weight * (fabs(d_lse) + r->unit * s.size));
  const int64_t row = at / w->shape[w->rank - 1];
  if (scale > w->scale[row]) w->scale[row] = scale;
}

static void backward_row(fa_merge_row *r, void *context) {
  const job *j = context;
  const fa_tensor *t = &r->c->in->t[FA_T_DO];
  fa_ref_load_row(t, fa_ref_q_row(r->c, t, r->e, r->h, r->i), t->stride[t->rank - 1], r->width, j->d_o);
  for (int64_t k = 0; k < r->n; ++k) {
    if (r->lse[k] == -INFINITY) continue; /* nothing depends on it: 0, exactly */
    part_o(r, j, k);
    part_lse(r, j, k);
  }
}

static fa_status outputs_init(const fa_ref_call *c, fa_error *err) {
  const fa_problem *p = c->p;
  const bool varlen = fa_problem_is_varlen(p), bounds = c->profile != NULL;
  const int64_t total = fa_problem_total_q(p), h = p->heads_q, n = p->merge.parts;
  const int64_t o[5] = {n, p->batch, p->seqlen_q, h, p->head_dim}, o4[4] = {n, total, h, p->head_dim};
  const int64_t lse[4] = {n, p->batch, h, p->seqlen_q}, lse3[3] = {n, h, total};
  fa_status status = fa_want_init(&c->out->t[FA_T_DO_PARTS], p->merge.parts_dtype, varlen ? 4 : 5,
                                  varlen ? o4 : o, bounds, err);
  if (status != FA_OK) return status;
  return fa_want_init(&c->out->t[FA_T_DLSE_PARTS], FA_F32, varlen ? 3 : 4, varlen ? lse3 : lse, bounds, err);
}

fa_status fa_ref_merge_backward(const fa_problem *p, const fa_tensors *in, const fa_wants *forward,
                                const fa_ref_options *opt, fa_wants *out, fa_error *err) {
  fa_ref_call c;
  job j = {.forward = forward, .d_o = malloc((size_t)p->head_dim * sizeof *j.d_o)};
  fa_status status = fa_ref_call_init(&c, p, in, opt, out, err);
  if (status == FA_OK && !j.d_o) status = fa_fail(err, FA_ERR_MEMORY, "reference: out of memory");
  if (status == FA_OK) status = outputs_init(&c, err);
  if (status == FA_OK) status = fa_merge_for_rows(&c, backward_row, &j, err);
  free(j.d_o);
  fa_ref_call_free(&c);
  if (status != FA_OK) fa_wants_free(out);
  return status;
}
