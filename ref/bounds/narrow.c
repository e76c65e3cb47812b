#include "ref/bounds/narrow.h"

#include "ref/engine/descale.h"

#include <math.h>

/* The product of a stored number and a descale is exact, and so is the quotient. */
static void store(const double *value, int64_t n, double descale, fa_dtype dtype, float *stored,
                  int *exponent) {
  for (int64_t d = 0; d < n; ++d) {
    const double x = descale != 0 ? value[d] / descale : 0;
    stored[d] = (float)x;
    exponent[d] = fa_bound_stored_exponent(dtype, x);
  }
}

void fa_bound_narrow_rows(fa_bound_scratch *b, const fa_ref_call *c, const fa_ref_rows *r,
                          const fa_ref_scratch *w) {
  fa_bound_narrow *x = &b->narrow;
  for (int64_t k = 0; k < r->n && x->q; ++k) {
    x->q_descale[k] = fa_ref_descale_of_query(c, r->e, r->h, r->row[k]);
    store(w->q + k * c->d, c->d, x->q_descale[k], c->p->quantized.dtype, x->q + k * c->d,
          x->q_exponent + k * c->d);
  }
}

void fa_bound_narrow_keys(fa_bound_scratch *b, const fa_ref_call *c, const fa_ref_scratch *w) {
  fa_bound_narrow *x = &b->narrow;
  for (int64_t j = 0; j < w->e->sk && x->k; ++j) {
    x->k_descale[j] = fa_ref_descale_of_key(c, FA_T_K, w->e, w->hk, w->e->k_first + j);
    store(w->k + j * c->d, c->d, x->k_descale[j], c->p->quantized.dtype, x->k + j * c->d,
          x->k_exponent + j * c->d);
  }
}

void fa_bound_narrow_scores(fa_bound_scratch *b, const fa_ref_call *c, const fa_ref_rows *r, int64_t j0,
                            int64_t n, const double *s) {
  const fa_bound_narrow *x = &b->narrow;
  for (int64_t i = 0; i < r->n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const double by = fabs(c->p->scale * x->q_descale[i] * x->k_descale[j0 + j]);
      const fa_bound_stored q = {x->q + i * c->d, x->q_exponent + i * c->d},
                            k = {x->k + (j0 + j) * c->d, x->k_exponent + (j0 + j) * c->d};
      b->e_logit[i * n + j] = s[i * n + j] == -INFINITY ? 0 : fa_bound_narrow_score(q, k, c->d, by);
    }
}
