/* The gradient of a head's sink: minus the sum over its rows of the sink's share times delta. A work item is a head. */
#include "cases/threads/parallel.h"
#include "ref/attention/backward.h"
#include "ref/attention/team.h"
#include "ref/tiles/sink.h"

#include <math.h>
#include <stdlib.h>

static void add_bound(const fa_backward_job *f, const fa_ref_rows *r, int64_t k, int thread,
                      fa_bound_dsink *sum) {
  const fa_ref_call *c = f->c;
  const fa_ref_scratch *w = &f->scratch[thread];
  const fa_bound_scratch *b = &f->bound[thread];
  const double slack = fa_bound_lse_slack(c, r, k, w) + fa_bound_sink_added(c, r, k, w);
  const fa_bound_sink sink = fa_bound_sink_backward(c, r, k, w, slack);
  const fa_bound_dsink part = fa_bound_dsink_of_row(&sink, w->delta[k], b->row_e_delta[k] * b->unit_ds);
  sum->size += part.size;
  sum->error += part.error;
}

static void add_block(const fa_backward_job *f, int thread, const fa_ref_sequence *e, int64_t h, int64_t i0,
                      fa_bound_dsink *sum) {
  fa_ref_scratch *w = &f->scratch[thread];
  const double sink = fa_ref_sink(f->c, h);
  fa_ref_rows r;
  fa_ref_rows_init(f->c, e, h, i0, &r);
  fa_ref_scratch_head(w, f->c, e, fa_ref_kv_head(f->c, h));
  fa_ref_backward_rows_begin(f->c, f->rows, &r, w, f->bound ? &f->bound[thread] : NULL);
  for (int64_t k = 0; k < r.n; ++k) {
    sum->value -= exp(sink - w->l[k] - w->rest[k]) * w->delta[k];
    if (f->bound) add_bound(f, &r, k, thread, sum);
  }
}

static void dsinks_item(void *context, int thread, int64_t h) {
  const fa_backward_job *f = context;
  const fa_ref_call *c = f->c;
  fa_want *out = &c->out->t[FA_T_DSINKS];
  fa_bound_dsink sum = {0};
  int64_t n = 0;
  for (int64_t b = 0; b < c->p->batch && fa_ref_sink(c, h) > -INFINITY; ++b)
    for (int64_t i0 = 0; i0 < c->entry[b].sq; i0 += FA_BLOCK_M) {
      add_block(f, thread, &c->entry[b], h, i0, &sum);
      n += c->entry[b].sq - i0 < FA_BLOCK_M ? c->entry[b].sq - i0 : FA_BLOCK_M;
    }
  out->value[h] = sum.value;
  if (!f->bound) return;
  out->accum[h] = fa_bound_dsink_sum(c, n, sum.size, sum.error);
}

/* One scale for all heads, which are one row. */
static void scale_of(fa_want *out) {
  for (int64_t h = 0; h < out->n; ++h) out->scale[0] = fmaxf(out->scale[0], (float)fabs(out->value[h]));
}

fa_status fa_ref_dsinks_output(fa_ref_call *c, fa_error *err) {
  __typeof__(fa_want_init) *make = c->shapes_alone ? fa_want_init_unset : fa_want_init;
  return make(&c->out->t[FA_T_DSINKS], FA_F32, 1, &c->heads_q, c->profile != NULL, err);
}

fa_status fa_ref_dsinks(fa_ref_call *c, fa_error *err) {
  fa_backward_job f = {.c = c, .rows = fa_rows_best()};
  fa_ref_team team = {0};
  fa_status status = fa_ref_dsinks_output(c, err);
  if (status) return status;
  status = fa_ref_team_init(&team, c, true, c->heads_q, err);
  f.scratch = team.scratch;
  f.bound = team.bound;
  if (status == FA_OK) fa_parallel(team.n, c->heads_q, dsinks_item, &f);
  if (status == FA_OK && c->profile) scale_of(&c->out->t[FA_T_DSINKS]);
  fa_ref_team_free(&team);
  return status;
}
