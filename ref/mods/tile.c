/* Applies mask_mod and score_mod to pairs and scores. */
#include "ref/mods/tile.h"
#include "ref/mods/score_step.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- pairs at which an expression has no value ---- */

static bool comes_before(const int64_t *a, const int64_t *b) {
  for (int k = 0; k < 5; ++k)
    if (a[k] != b[k]) return a[k] < b[k];
  return false;
}

/* Remembers the first failing pair in a fixed order, so that the report does not depend on threads. what:
 * NULL = ask the expression. */
static void fail(const fa_ref_mod_row *r, bool is_score, int64_t j, const fa_ref_expr *x, int lane,
                 const char *what) {
  fa_ref_mods *m = r->c->mods;
  const int64_t at[5] = {is_score, r->e->b, r->h, r->i, j};
  pthread_mutex_lock(&m->lock);
  if (!m->failed || comes_before(at, m->failed_at)) {
    char text[256];
    if (!what) fa_ref_expr_explain(x, lane, text, sizeof text);
    m->failed = true;
    memcpy(m->failed_at, at, sizeof at);
    snprintf(m->why, sizeof m->why, "$.%s: %s, at b %lld, h %lld, q_idx %lld, kv_idx %lld",
             is_score ? "score_mod" : "mask_mod", what ? what : text, (long long)at[1], (long long)at[2],
             (long long)at[3], (long long)at[4]);
  }
  pthread_mutex_unlock(&m->lock);
}

fa_status fa_ref_mods_status(const fa_ref_call *c, fa_error *err) {
  if (!c->mods || !c->mods->failed) return FA_OK;
  return fa_fail(err, FA_ERR_INPUT, "%s", c->mods->why);
}

/* ---- evaluating a piece of a row ---- */

static fa_ref_pairs pairs_of(const fa_ref_mod_row *r, int64_t from, const double *score, const float *error) {
  return (fa_ref_pairs){.b = r->e->b,
                        .h = r->h,
                        .i = r->i,
                        .j0 = r->j0 + from,
                        .n = (int)(r->n - from < FA_EXPR_LANES ? r->n - from : FA_EXPR_LANES),
                        .seqlen_q = r->e->sq,
                        .seqlen_k = r->e->sk,
                        .score = score ? score + from : NULL,
                        .error = error ? error + from : NULL};
}

/* hidden[j] for j = from .. from + n - 1: the pairs that mask_mod hides. */
static void mask_pairs(const fa_ref_mod_row *r, int64_t from, int64_t n, uint8_t *hidden) {
  fa_ref_expr *x = &r->m->mask;
  for (int64_t at = from; at < from + n; at += FA_EXPR_LANES) {
    fa_ref_pairs p = pairs_of(r, at, NULL, NULL);
    if (p.n > from + n - at) p.n = (int)(from + n - at);
    fa_ref_expr_eval(x, &p);
    const double *value = fa_ref_expr_row(x->value, x->e->root),
                 *error = fa_ref_expr_row(x->error, x->e->root);
    const int *fault = x->fault + (int64_t)x->e->root * FA_EXPR_LANES;
    for (int lane = 0; lane < p.n; ++lane) {
      hidden[at + lane] = value[lane] == 0;
      if (fault[lane] || error[lane] > 0) fail(r, false, p.j0 + lane, x, lane, NULL);
    }
  }
}

void fa_ref_mods_mask(const fa_ref_mod_row *r, uint8_t *hidden) {
  mask_pairs(r, 0, r->n, hidden);
}

/* Whether a mistaken kernel takes the block with key j0 + j for a full one: mask_mod shows its first pair. */
static bool passes_for_full(const fa_ref_mod_row *r, int64_t j) {
  const fa_block_sparse *s = &r->c->p->block_sparse;
  fa_ref_mod_row first = *r;
  uint8_t hidden;
  if (!r->c->twist || !r->c->twist->mask_of_first_pair) return false;
  first.i = r->i / s->q_block * s->q_block;
  first.j0 = (r->j0 + j) / s->kv_block * s->kv_block;
  first.n = 1;
  mask_pairs(&first, 0, 1, &hidden);
  return !hidden;
}

void fa_ref_mods_hide(const fa_ref_mod_row *r, uint8_t *hidden) {
  const fa_block_sparse *s = &r->c->p->block_sparse;
  const bool has_mask = r->c->mods->mask.n > 0;
  memset(hidden, 0, (size_t)r->n);
  if (!s->present) {
    if (has_mask) mask_pairs(r, 0, r->n, hidden);
    return;
  }
  for (int64_t j = 0; j < r->n;) {
    int64_t next = ((r->j0 + j) / s->kv_block + 1) * s->kv_block - r->j0;
    if (next > r->n) next = r->n;
    const int tile = fa_ref_block_kind(r->c, r->e, r->h, r->i, r->j0 + j);
    if (tile == FA_TILE_UNLISTED) memset(hidden + j, 1, (size_t)(next - j));
    if (tile == FA_TILE_PARTIAL && has_mask && !passes_for_full(r, j)) mask_pairs(r, j, next - j, hidden);
    j = next;
  }
}

void fa_ref_mods_score(const fa_ref_mod_row *r, const uint8_t *hidden, double *s, double *before) {
  fa_ref_expr *x = &r->m->score;
  if (x->e->n == 0) return;
  if (before) memcpy(before, s, (size_t)r->n * sizeof *s);
  for (int64_t at = 0; at < r->n; at += FA_EXPR_LANES) {
    const fa_ref_pairs p = pairs_of(r, at, s, NULL);
    fa_ref_expr_eval(x, &p);
    const double *value = fa_ref_expr_row(x->value, x->e->root);
    const int *fault = x->fault + (int64_t)x->e->root * FA_EXPR_LANES;
    for (int lane = 0; lane < p.n; ++lane) {
      const bool infinite = value[lane] == INFINITY;
      if (!hidden[at + lane] && (fault[lane] || infinite))
        fail(r, true, p.j0 + lane, x, lane, fault[lane] ? NULL : "column 1: the score becomes +inf");
      s[at + lane] = fault[lane] || infinite ? 0 : value[lane];
    }
  }
}

/* ---- backward ---- */

void fa_ref_mods_derivative(const fa_ref_mod_row *r, const double *before, double *ds) {
  fa_ref_expr *x = &r->m->score;
  if (x->e->n == 0) return;
  for (int64_t at = 0; at < r->n; at += FA_EXPR_LANES) {
    const fa_ref_pairs p = pairs_of(r, at, before, NULL);
    fa_ref_expr_eval(x, &p);
    fa_ref_expr_derive(x, p.n);
    for (int lane = 0; lane < p.n; ++lane) {
      double v, e;
      if (ds[at + lane] == 0) continue;
      fa_mod_slope(x, lane, &v, &e);
      if (isnan(v)) fail(r, true, p.j0 + lane, x, lane, "column 1: no finite derivative");
      ds[at + lane] *= isnan(v) ? 0 : v;
    }
  }
}

/* Fails if rounding decides whether the score exists, or if the expression amplifies errors so much that
 * nothing is known about the score's exponential. */
static void check_error(const fa_ref_mod_row *r, const fa_ref_expr *t, int lane, int64_t j, double before) {
  const int64_t at = (int64_t)t->e->root * FA_EXPR_LANES + lane;
  const double error = t->error[at];
  char text[96];
  if (fa_mod_is_unsure(t->value[at], error)) fail(r, true, j, t, lane, NULL);
  if (!fa_mod_amplifies(error, before)) return;
  snprintf(text, sizeof text, "column 1: rounding in f32 may move the score by %.3g", error);
  fail(r, true, j, t, lane, text);
}

static const char no_derivative[] = "column 1: no finite derivative",
                  unsure_derivative[] = "column 1: rounding decides whether there is a finite derivative";

void fa_ref_mods_errors(const fa_ref_mod_row *r, const double *before, const uint8_t *hidden, float *e,
                        float *e_before, float *cap, float *cap_err) {
  fa_ref_expr *t = &r->m->score;
  if (t->e->n == 0) return;
  memcpy(e_before, e, (size_t)r->n * sizeof *e);
  for (int64_t at = 0; at < r->n; at += FA_EXPR_LANES) {
    const fa_ref_pairs p = pairs_of(r, at, before, e_before);
    fa_ref_expr_eval(t, &p);
    if (cap) fa_ref_expr_derive(t, p.n);
    const double *error = fa_ref_expr_row(t->error, t->e->root);
    for (int lane = 0; lane < p.n; ++lane) {
      const int64_t j = at + lane;
      double v = 0, v_error = 0;
      e[j] = hidden[j] ? 0 : fa_mod_up(error[lane]);
      if (!hidden[j]) check_error(r, t, lane, p.j0 + lane, e_before[j]);
      if (!cap) continue;
      if (!hidden[j]) fa_mod_slope(t, lane, &v, &v_error);
      if (isnan(v) || v_error == INFINITY)
        fail(r, true, p.j0 + lane, t, lane, isnan(v) ? no_derivative : unsure_derivative);
      fa_mod_chain(v, v_error, &cap[j], &cap_err[j]);
    }
  }
}

void fa_ref_mods_gradient(const fa_ref_mod_row *r, const double *before, const double *p, const float *e,
                          const bool *wanted, fa_ref_mods_add *add, void *context) {
  fa_ref_expr *t = &r->m->score;
  for (int64_t at = 0; at < r->n; at += FA_EXPR_LANES) {
    const fa_ref_pairs q = pairs_of(r, at, before, e);
    fa_ref_expr_eval(t, &q);
    fa_ref_expr_derive(t, q.n);
    for (int node = 0; node < t->e->n; ++node) {
      const fa_expr_node *n = &t->e->node[node];
      if (n->op != FA_EXPR_LOAD || !wanted[n->buffer]) continue;
      for (int lane = 0; lane < q.n; ++lane) {
        double v, error;
        if (p[at + lane] == 0) continue;
        fa_ref_expr_share(t, node, lane, &v, &error);
        if (isnan(v) || error == INFINITY)
          fail(r, true, q.j0 + lane, t, lane, isnan(v) ? no_derivative : unsure_derivative);
        if (v == 0 && error == 0) continue; /* not reached: its indices need not be in range */
        if (isnan(v)) continue;
        if (t->fault[(int64_t)node * FA_EXPR_LANES + lane]) continue;
        add(context, at + lane, n->buffer, fa_ref_expr_element(t, node, lane), v, error);
      }
    }
  }
}
