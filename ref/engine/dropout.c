/* The two dropout generators, bit for bit (docs/reference/semantics.md, "Dropout"). */
#include "ref/engine/dropout.h"
#include "ref/math/rows.h"

#include <math.h>

static void row_flash(const fa_problem *p, int64_t b, int64_t h, int64_t i, int64_t j0, int64_t n,
                      double scale, double *z) {
  const fa_row_dropout r = {.seed = p->dropout.seed,
                            .lane = p->dropout.offset + (uint64_t)((b * p->heads_q + h) * 32 + i % 8 * 4),
                            .row_block = (uint32_t)(i / 16),
                            .shift = i % 16 < 8 ? 0 : 16,
                            .threshold = fa_ref_flash_threshold(p->dropout.p),
                            .scale = scale};
  fa_rows_best()->flash_dropout(&r, j0, n, z);
}

int64_t fa_ref_dropout_keys(const fa_problem *p, int64_t b) {
  int64_t n = p->seqlen_k;
  if (p->cu_seqlens_k.n > 0) n = (int64_t)p->cu_seqlens_k.v[b + 1] - p->cu_seqlens_k.v[b];
  if (p->seqused_k.n > 0) n = p->seqused_k.v[b];
  if (p->leftpad_k.n > 0) n -= p->leftpad_k.v[b];
  return n;
}

bool fa_ref_dropout_keep(const fa_problem *p, int64_t b, int64_t h, int64_t i, int64_t j) {
  return fa_ref_keep(p, 0, fa_ref_dropout_keys(p, b), b, h, i, j);
}

/* A row by a generator with other rounds, the mask inverted, or another factor of what is kept. */
static void row_astray(const fa_ref_call *c, int64_t b, int64_t h, int64_t i, int64_t j0, int64_t n,
                       double *z) {
  const fa_ref_twist *t = c->twist;
  const double scale = t->drop_factor > 0 ? t->drop_factor : 1 / (1 - c->p->dropout.p);
  for (int64_t j = 0; j < n; ++j) {
    const bool keep = fa_ref_keep(c->p, t->drop_rounds, c->entry[b].drop_keys, b, h, i, j0 + j);
    z[j] = keep != t->drop_inverted ? scale : 0;
  }
}

void fa_ref_dropout_row(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i, int64_t j0,
                        int64_t n, double *z) {
  double scale = 1 / (1 - c->p->dropout.p);
  const fa_ref_twist *t = c->twist;
  if (t && (t->drop_factor > 0 || t->drop_inverted || t->drop_rounds > 0)) {
    row_astray(c, e->b, h, i, j0, n, z);
    return;
  }
  if (c->p->family != FA_MEMEFF) {
    row_flash(c->p, e->b, h, i, j0, n, scale, z);
    return;
  }
  for (int64_t j = 0; j < n; ++j) z[j] = fa_ref_dropout_keep(c->p, e->b, h, i, j0 + j) ? scale : 0;
}
