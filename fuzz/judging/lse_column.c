#include "fuzz/judging/lse_column.h"

#include "ref/engine/call.h"

#include <math.h>

/* Of the value that the kernel stores, and of the products and sums that made it. */
static double roundoff(const fa_contract *c) {
  return 2 * fmax(fa_dtype_unit_roundoff(FA_F32), fa_dtype_unit_roundoff(c->lse_dtype));
}

static void widen_head(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, double u, fa_want *want) {
  const fa_alibi *alibi = &c->p->alibi;
  const double slope = fabs(alibi->slopes[alibi->n == c->heads_q ? h : e->b * c->heads_q + h]);
  for (int64_t i = 0; i < e->sq; ++i) {
    const double offset = slope * (double)(i + e->shift);
    if (offset > 0) want->accum[fa_ref_lse_index(c, e, h, i)] += (float)(u * offset);
  }
}

fa_status fa_lse_widen_column(const fa_problem *p, const fa_tensors *in, const fa_contract *c, fa_want *want,
                              fa_error *err) {
  const fa_ref_options options = {.n_threads = 1};
  fa_ref_call call;
  fa_wants none;
  if (!c || c->lse_alibi != FA_LSE_ALIBI_COLUMN || !p->alibi.present || !want->accum) return FA_OK;
  const fa_status status = fa_ref_call_init(&call, p, in, &options, &none, err);
  for (int64_t b = 0; status == FA_OK && b < p->batch; ++b)
    for (int64_t h = 0; h < p->heads_q; ++h) widen_head(&call, &call.entry[b], h, roundoff(c), want);
  fa_ref_call_free(&call);
  return status;
}
