/* Gradients of the buffers that score_mod reads: for each element, the sum over all pairs that read it of P
 * (dP - delta) times the derivative of score_mod with respect to it.
 *
 * A separate pass, like dBias: an item is one head of one sequence and has its own sums, which are added in
 * item order, so that the result does not depend on the number of threads. */
#include "cases/threads/parallel.h"
#include "ref/attention/backward.h"
#include "ref/attention/outputs.h"
#include "ref/attention/team.h"
#include "ref/mods/tile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct fa_dbuffer_job {
  fa_backward_job base;
  bool wanted[FA_MAX_CAPTURES];
  int64_t first[FA_MAX_CAPTURES + 1]; /* index of each buffer's first element among all */
  fa_bound_element *sums, *own;       /* [first[last]], [n_threads][first[last]] */
} fa_dbuffer_job;

/* The row of pairs whose contributions are being added. */
typedef struct fa_dbuffer_row {
  const fa_dbuffer_job *f;
  fa_bound_element *own;
  const double *g, *p; /* P (Z dP - delta), P Z */
  const float *g_error;
  double delta, unit; /* unit: of g_error */
} fa_dbuffer_row;

static void add_share(void *context, int64_t lane, int buffer, int64_t element, double value, double error) {
  const fa_dbuffer_row *r = context;
  const double g = r->g[lane];
  fa_bound_contribution x = {.g = g, .p = r->p[lane], .delta = r->delta, .v = value, .v_error = error};
  if (r->g_error) x.g_error = (double)r->g_error[lane] * r->unit + r->f->base.c->profile->u_p_in_ds * fabs(g);
  fa_bound_element_add(&x, r->g_error != NULL, &r->own[r->f->first[buffer] + element]);
}

/* Not 0 where a pair contributes. A pair that dropout drops has P Z = 0, but g = -P delta. */
static const double *weights(const fa_ref_call *c, const double *p, const double *g, const float *g_error,
                             int64_t n, double *out) {
  if (c->p->dropout.p == 0) return p;
  for (int64_t j = 0; j < n; ++j) out[j] = p[j] != 0 || g[j] != 0 || (g_error && g_error[j] > 0);
  return out;
}

static void add_block(const fa_dbuffer_job *f, int thread, const fa_ref_sequence *e, int64_t h, int64_t i0) {
  const fa_ref_call *c = f->base.c;
  fa_ref_scratch *w = &f->base.scratch[thread];
  fa_bound_scratch *b = f->base.bound ? &f->base.bound[thread] : NULL;
  const int64_t n_elements = f->first[FA_MAX_CAPTURES];
  double counts[FA_BLOCK_N];
  fa_ref_rows r;
  fa_ref_rows_init(c, e, h, i0, &r);
  if (r.j_begin == r.j_end) return;
  fa_ref_scratch_head(w, c, e, fa_ref_kv_head(c, h));
  fa_ref_backward_rows_begin(c, f->base.rows, &r, w, b);
  for (int64_t j0 = r.j_begin; j0 < r.j_end; j0 += FA_BLOCK_N) {
    const int64_t n = r.j_end - j0 < FA_BLOCK_N ? r.j_end - j0 : FA_BLOCK_N;
    if (!fa_ref_tile_visited(c, &r, j0, n)) continue;
    fa_ref_backward_tile(c, f->base.rows, &r, w, j0, n, b);
    for (int64_t k = 0; k < r.n; ++k) {
      int64_t begin, end;
      fa_ref_row_span(&r, k, j0, n, &begin, &end);
      const int64_t at = k * n + begin;
      const fa_ref_mod_row row = {c, w->mod, e, h, i0 + k, j0 + begin, end - begin};
      fa_dbuffer_row to = {.f = f,
                           .own = f->own + thread * n_elements,
                           .g = w->dp + at,
                           .p = w->s + at,
                           .g_error = b ? b->ge + at : NULL,
                           .delta = w->delta[k],
                           .unit = b ? b->unit_ds * 1.0001 : 0};
      const double *counted = weights(c, to.p, to.g, to.g_error, end - begin, counts);
      fa_ref_mods_gradient(&row, w->mod->before + at, counted, b ? w->mod->before_error + at : NULL,
                           f->wanted, add_share, &to);
    }
  }
}

static void dbuffer_item(void *context, int thread, int64_t item) {
  const fa_dbuffer_job *f = context;
  const fa_ref_call *c = f->base.c;
  const fa_ref_sequence *e = &c->entry[item / c->heads_q];
  const int64_t n = f->first[FA_MAX_CAPTURES];
  fa_bound_element *own = f->own + thread * n;
  memset(own, 0, (size_t)n * sizeof *own);
  for (int64_t i0 = 0; i0 < e->sq; i0 += FA_BLOCK_M) add_block(f, thread, e, item % c->heads_q, i0);
  fa_ref_order_wait(f->base.order, 0, item);
  for (int64_t x = 0; x < n; ++x) {
    if (own[x].n == 0) continue;
    fa_bound_element_join(&own[x], &f->sums[x]);
  }
  fa_ref_order_done(f->base.order, 0);
}

/* The last rounding, to the buffer's type, is that of every output
 * (fa_want_bound). */
static void write_buffer(const fa_ref_call *c, const fa_bound_element *sum, fa_want *out) {
  const int64_t width = out->shape[out->rank - 1];
  for (int64_t x = 0; x < out->n; ++x) {
    const fa_bound_element *s = &sum[x];
    out->value[x] = s->value;
    if (!c->profile || s->n == 0) continue; /* never read: exactly 0 */
    out->accum[x] = fa_bound_element_accum(c, s);
    if (s->before > out->scale[x / width]) out->scale[x / width] = fa_bound_clamped(s->before);
  }
  free(out->noise); /* no statistics: the errors of one element's terms are dependent */
  out->noise = NULL;
}

fa_status fa_ref_dbuffers_outputs(fa_ref_call *c, bool *wanted, int64_t *first, fa_error *err) {
  const fa_problem *p = c->p;
  __typeof__(fa_want_init) *make = c->shapes_alone ? fa_want_init_unset : fa_want_init;
  fa_status status = FA_OK;
  for (int k = 0; k < FA_MAX_CAPTURES; ++k) {
    first[k + 1] = first[k];
    if (k >= p->n_captures || !p->captures[k].grad || !fa_expr_reads(&c->mods->score, k)) continue;
    const fa_tensor *t = &c->in->t[FA_T_BUFFER_0 + k];
    fa_want *out = &c->out->t[FA_T_DBUFFER_0 + k];
    status = make(out, t->dtype, t->rank, t->shape, c->profile != NULL, err);
    if (status != FA_OK) return status;
    wanted[k] = true;
    first[k + 1] += out->n;
  }
  return FA_OK;
}

static fa_status run(fa_dbuffer_job *f, fa_error *err) {
  fa_ref_call *c = f->base.c;
  fa_ref_team team = {0};
  const int64_t n_items = c->p->batch * c->heads_q, n_elements = f->first[FA_MAX_CAPTURES];
  fa_status status = fa_ref_team_init(&team, c, true, n_items, err);
  f->base.scratch = team.scratch;
  f->base.bound = team.bound;
  f->base.order = fa_ref_order_new(1);
  f->sums = calloc((size_t)n_elements, sizeof *f->sums);
  f->own = calloc((size_t)(n_elements * team.n), sizeof *f->own);
  if (status == FA_OK && (!f->base.order || !f->sums || !f->own))
    status = fa_fail(err, FA_ERR_MEMORY, "reference: out of memory for gradients of buffers");
  for (int t = 0; team.bound && t < team.n; ++t) team.bound[t].plain = true;
  if (status == FA_OK) fa_parallel(team.n, n_items, dbuffer_item, f);
  for (int k = 0; status == FA_OK && k < FA_MAX_CAPTURES; ++k)
    if (f->wanted[k]) write_buffer(c, f->sums + f->first[k], &c->out->t[FA_T_DBUFFER_0 + k]);
  fa_ref_team_free(&team);
  free(f->sums);
  free(f->own);
  fa_ref_order_free(f->base.order);
  return status;
}

fa_status fa_ref_dbuffers(fa_ref_call *c, fa_error *err) {
  fa_dbuffer_job f = {.base = {.c = c, .rows = fa_rows_best()}};
  if (!c->mods || c->mods->score.n == 0) return FA_OK;
  fa_status status = fa_ref_dbuffers_outputs(c, f.wanted, f.first, err);
  if (status != FA_OK || f.first[FA_MAX_CAPTURES] == 0) return status;
  return run(&f, err);
}
