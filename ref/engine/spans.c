/* Which elements of an output a sample has. */
#include "ref/engine/call.h"

#include <stdlib.h>

static int ascending(const void *a, const void *b) {
  const fa_want_span *x = a, *y = b;
  return (x->first > y->first) - (x->first < y->first);
}

/* Room for so many. */
static fa_status make(fa_want *w, int64_t n, fa_error *err) {
  w->span = malloc((size_t)(n + 1) * sizeof *w->span);
  w->n_spans = 0;
  return w->span ? FA_OK : fa_fail(err, FA_ERR_MEMORY, "reference: out of memory for a sample");
}

static void add(fa_want *w, int64_t first, int64_t n) {
  w->span[w->n_spans++] = (fa_want_span){first, n};
}

static void sort(fa_want *w) {
  qsort(w->span, (size_t)w->n_spans, sizeof *w->span, ascending);
}

/* An LSE has one element for a row, and its last axis are rows. */
fa_status fa_ref_span_rows(const fa_ref_call *c, fa_want *w, fa_error *err) {
  const fa_ref_sample *s = c->sample;
  const bool lse = w == &c->out->t[FA_T_LSE];
  const int64_t width = w->shape[w->rank - 1];
  const fa_status status = make(w, s->n_rows, err);
  for (int64_t n = 0; status == FA_OK && n < s->n_rows; ++n) {
    const fa_ref_place *at = &s->row[n];
    const fa_ref_sequence *e = &c->entry[at->b];
    if (lse)
      add(w, fa_ref_lse_index(c, e, at->h, at->i), 1);
    else
      add(w, fa_ref_q_index(c, e, at->h, at->i, width), width);
  }
  if (status == FA_OK) sort(w);
  return status;
}

fa_status fa_ref_span_keys(const fa_ref_call *c, fa_want *w, fa_error *err) {
  const fa_ref_sample *s = c->sample;
  const int64_t width = w->shape[w->rank - 1];
  const fa_status status = make(w, s->n_strips * FA_STRIP_KEYS, err);
  for (int64_t n = 0; status == FA_OK && n < s->n_strips; ++n) {
    const fa_ref_place *at = &s->strip[n];
    const fa_ref_sequence *e = &c->entry[at->b];
    for (int64_t j = at->i; j < e->sk && j < at->i + FA_STRIP_KEYS; ++j)
      add(w, fa_ref_k_index(c, e, at->h, j, width), width);
  }
  if (status == FA_OK) sort(w);
  return status;
}
