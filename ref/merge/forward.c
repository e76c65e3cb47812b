#include "ref/merge/passes.h"
#include "ref/merge/row.h"

#include <math.h>
#include <stdlib.h>

static void forward_row(fa_merge_row *r, void *context) {
  (void)context;
  const fa_ref_call *c = r->c;
  fa_want *o = &c->out->t[FA_T_O], *lse = &c->out->t[FA_T_LSE];
  const int64_t at = fa_ref_q_index(c, r->e, r->h, r->i, r->width);
  const int64_t lse_at = fa_ref_lse_index(c, r->e, r->h, r->i);
  lse->value[lse_at] = r->total / r->unit;
  if (c->profile && r->total > -INFINITY) lse->accum[lse_at] = (float)fa_merge_lse_error(r);
  for (int64_t x = 0; x < r->width; ++x) {
    double value = 0, size = 0;
    for (int64_t k = 0; k < r->n; ++k) {
      value += r->weight[k] * r->o[k * r->width + x];
      size += r->weight[k] * fabs(r->o[k * r->width + x]);
    }
    o->value[at + x] = value;
    if (!c->profile) continue;
    o->accum[at + x] = (float)fa_merge_o_error(r, x, value);
    if (size > o->scale[at / r->width]) o->scale[at / r->width] = (float)size;
  }
}

/* One scale for all LSEs of a head, as of attention. */
static void lse_scale(fa_want *w) {
  const int64_t width = w->n > 0 ? w->shape[w->rank - 1] : 1;
  for (int64_t n = 0; n < w->n; ++n) {
    const float size = isfinite(w->value[n]) ? (float)(1 + fabs(w->value[n])) : 1;
    if (size > w->scale[n / width]) w->scale[n / width] = size;
  }
}

static fa_status outputs_init(const fa_ref_call *c, fa_error *err) {
  const fa_problem *p = c->p;
  const bool varlen = fa_problem_is_varlen(p), bounds = c->profile != NULL;
  const int64_t total = fa_problem_total_q(p), h = p->heads_q;
  const int64_t o[4] = {p->batch, p->seqlen_q, h, p->head_dim}, o3[3] = {total, h, p->head_dim};
  const int64_t lse[3] = {p->batch, h, p->seqlen_q}, lse2[2] = {h, total};
  fa_want *want = &c->out->t[FA_T_LSE];
  fa_status status = fa_want_init(&c->out->t[FA_T_O], p->dtype, varlen ? 3 : 4, varlen ? o3 : o, bounds, err);
  if (status == FA_OK) status = fa_want_init(want, FA_F32, varlen ? 2 : 3, varlen ? lse2 : lse, bounds, err);
  if (status != FA_OK || want->n == 0) return status;
  want->rest = calloc((size_t)want->n, sizeof *want->rest);
  return want->rest ? FA_OK : fa_fail(err, FA_ERR_MEMORY, "reference: out of memory");
}

fa_status fa_ref_merge_forward(const fa_problem *p, const fa_tensors *in, const fa_ref_options *opt,
                               fa_wants *out, fa_error *err) {
  fa_ref_call c;
  fa_status status = fa_ref_call_init(&c, p, in, opt, out, err);
  if (status == FA_OK) status = outputs_init(&c, err);
  if (status == FA_OK) status = fa_merge_for_rows(&c, forward_row, NULL, err);
  if (status == FA_OK && c.profile) lse_scale(&out->t[FA_T_LSE]);
  fa_ref_call_free(&c);
  if (status != FA_OK) fa_wants_free(out);
  return status;
}
