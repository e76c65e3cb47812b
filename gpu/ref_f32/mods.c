/* score_mod and mask_mod, evaluated a row of the tile at a time, with symbolic derivatives. */
#include "cases/vocabulary/problem_expr.h"
#include "gpu/expr/diff.h"
#include "gpu/ref_f32/expr.h"
#include "gpu/ref_f32/parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(FA_F32_PAIRS == FA_F32_TILE_N, "a row of a tile is one evaluation");

struct fa_f32_mods {
  fa_expr mask, score; /* n == 0: absent */
  fa_expr_gradient gradient;
  fa_f32_expr mask_row, score_row; /* in the backward pass score_row evaluates the gradient's nodes too */
  /* backward: per read of a buffer whose gradient is wanted, over the tile */
  float *derivative; /* [n_reads][FA_F32_TILE_M][FA_F32_TILE_N] */
  int64_t *element;  /* the same */
  float *sum[FA_MAX_CAPTURES];
};

static fa_status make_backward(fa_f32_mods *m, const fa_tensors *t, fa_error *err) {
  fa_status status = fa_expr_differentiate(&m->score, &m->gradient, err);
  if (status == FA_OK) status = fa_f32_expr_init(&m->score_row, &m->gradient.e, t, err);
  if (status != FA_OK) return status;
  const size_t n = (size_t)m->gradient.n_reads * FA_F32_TILE_M * FA_F32_TILE_N + 1;
  m->derivative = malloc(n * sizeof *m->derivative);
  m->element = malloc(n * sizeof *m->element);
  bool good = m->derivative && m->element;
  for (int k = 0; k < FA_MAX_CAPTURES && good; ++k) {
    const fa_tensor *out = &t->t[FA_T_DBUFFER_0 + k];
    if (!out->data) continue;
    m->sum[k] = calloc((size_t)fa_tensor_count(out) + 1, sizeof *m->sum[k]);
    good = m->sum[k] != NULL;
  }
  return good ? FA_OK : fa_fail(err, FA_ERR_MEMORY, "ref-f32: out of memory for expressions");
}

fa_status fa_f32_mods_make(const fa_problem *p, const fa_tensors *t, bool backward, fa_f32_mods **out,
                           fa_error *err) {
  *out = NULL;
  if (!p->score_mod && !p->mask_mod) return FA_OK;
  fa_f32_mods *m = calloc(1, sizeof *m);
  if (!m) return fa_fail(err, FA_ERR_MEMORY, "ref-f32: out of memory for expressions");
  fa_status status = fa_expr_of(p, FA_EXPR_SCORE_MOD, &m->score, err);
  if (status == FA_OK) status = fa_expr_of(p, FA_EXPR_MASK_MOD, &m->mask, err);
  if (status == FA_OK && p->mask_mod) status = fa_f32_expr_init(&m->mask_row, &m->mask, t, err);
  if (status == FA_OK && p->score_mod)
    status = backward ? make_backward(m, t, err) : fa_f32_expr_init(&m->score_row, &m->score, t, err);
  if (status == FA_OK)
    *out = m;
  else
    fa_f32_mods_free(m);
  return status;
}

void fa_f32_mods_free(fa_f32_mods *m) {
  if (!m) return;
  fa_f32_expr_free(&m->mask_row);
  fa_f32_expr_free(&m->score_row);
  fa_expr_gradient_free(&m->gradient);
  fa_expr_free(&m->mask);
  fa_expr_free(&m->score);
  free(m->derivative);
  free(m->element);
  for (int k = 0; k < FA_MAX_CAPTURES; ++k) free(m->sum[k]);
  free(m);
}

static fa_f32_pairs pairs_of(const fa_f32_score *c, int64_t i, int64_t j0, int64_t n, const float *score) {
  return (fa_f32_pairs){.b = c->e->b,
                        .h = c->h,
                        .i = i,
                        .j0 = j0,
                        .n = (int)n,
                        .seqlen_q = c->e->n_q,
                        .seqlen_k = c->e->n_k,
                        .score = score};
}

void fa_f32_mods_mask(const fa_f32_score *c, int64_t i, int64_t j0, int64_t n, bool *visible) {
  fa_f32_mods *m = c->mods;
  const fa_f32_pairs p = pairs_of(c, i, j0, n, NULL);
  for (int64_t l = 0; l < n; ++l) visible[l] = true;
  if (m->mask.n == 0) return;
  fa_f32_expr_eval(&m->mask_row, &p);
  const fa_f32_word *x = fa_f32_expr_row(&m->mask_row, m->mask.root);
  for (int64_t l = 0; l < n; ++l) visible[l] = x[l].i != 0;
}

/* Keeps what fa_f32_mods_add_gradients needs of row r of the tile. */
static void keep_reads(fa_f32_mods *m, int64_t r, int64_t n) {
  for (int k = 0; k < m->gradient.n_reads; ++k) {
    const fa_expr_read *read = &m->gradient.read[k];
    if (!m->sum[m->gradient.e.node[read->load].buffer]) continue;
    const int64_t to = (k * FA_F32_TILE_M + r) * FA_F32_TILE_N;
    const fa_f32_word *derivative = fa_f32_expr_row(&m->score_row, read->derivative);
    for (int64_t l = 0; l < n; ++l) m->derivative[to + l] = derivative[l].f;
    memcpy(m->element + to, m->score_row.element + (int64_t)read->load * FA_F32_PAIRS,
           (size_t)n * sizeof *m->element);
  }
}

void fa_f32_mods_score(const fa_f32_score *c, int64_t r, int64_t i, int64_t j0, int64_t n, float *t,
                       float *chain) {
  fa_f32_mods *m = c->mods;
  if (m->score.n == 0) return;
  const fa_f32_pairs p = pairs_of(c, i, j0, n, t);
  fa_f32_expr_eval(&m->score_row, &p);
  const fa_f32_word *value = fa_f32_expr_row(&m->score_row, m->score.root);
  if (chain) {
    const fa_f32_word *derivative = fa_f32_expr_row(&m->score_row, m->gradient.score);
    for (int64_t l = 0; l < n; ++l) chain[l] *= derivative[l].f;
    keep_reads(m, r, n);
  }
  for (int64_t l = 0; l < n; ++l) t[l] = value[l].f;
}

void fa_f32_mods_add_gradients(const fa_f32_score *c, int64_t n_i, int64_t n_j, const float *g, int64_t ld,
                               const float *logits) {
  fa_f32_mods *m = c->mods;
  if (!m) return;
  for (int k = 0; k < m->gradient.n_reads; ++k) {
    float *sum = m->sum[m->gradient.e.node[m->gradient.read[k].load].buffer];
    if (!sum) continue;
    for (int64_t r = 0; r < n_i; ++r)
      for (int64_t l = 0; l < n_j; ++l) {
        const int64_t at = (k * FA_F32_TILE_M + r) * FA_F32_TILE_N + l;
        if (logits[r * ld + l] == -INFINITY) continue; /* masked: its derivative may be anything */
        sum[m->element[at]] = fmaf(g[r * ld + l], m->derivative[at], sum[m->element[at]]);
      }
  }
}

void fa_f32_mods_write(const fa_f32_mods *m, fa_tensors *t) {
  for (int k = 0; m && k < FA_MAX_CAPTURES; ++k) {
    const fa_tensor *out = &t->t[FA_T_DBUFFER_0 + k];
    int64_t index[FA_MAX_RANK];
    for (int64_t e = 0; m->sum[k] && e < fa_tensor_count(out); ++e) {
      fa_tensor_unravel(out, e, index);
      fa_tensor_set(out, index, m->sum[k][e]);
    }
  }
}
