/* A KV cache: new keys and their places, rotary embeddings. */
#include "tests/explain/planted/head.h"

void pl_rotate(const pl_call *call, double *row, int64_t position) {
  const fa_plugin_tensor *c = &call->t->rotary_cos, *s = &call->t->rotary_sin;
  const int64_t half = call->p->rotary_dim / 2;
  const bool pairs = (call->p->rotary_interleaved != 0) != (call->planted[PL_rotary_other_style] != 0);
  for (int64_t i = 0; i < half && !call->planted[PL_rotary_missing]; ++i) {
    const double cosine = pl_load(c, position * c->stride[0] + i * c->stride[1]);
    const double sine = pl_load(s, position * s->stride[0] + i * s->stride[1]);
    double *a = row + (pairs ? 2 * i : i), *b = pairs ? a + 1 : a + half;
    const double first = *a * cosine - *b * sine, second = *a * sine + *b * cosine;
    *a = pl_round(first, pl_format_of(call->p->dtype), false);
    *b = pl_round(second, pl_format_of(call->p->dtype), false);
  }
}

static void append_row(const pl_call *call, const pl_head *e, int64_t hk, int64_t t) {
  const fa_plugin_tensor *from[2] = {&call->t->k_new, &call->t->v_new}, *to[2] = {&call->t->k, &call->t->v};
  double row[512];
  for (int which = 0; which < 2; ++which) {
    const int64_t width = which == 0 ? call->p->head_dim : call->p->head_dim_v;
    const int64_t *s = from[which]->stride, source = e->b * s[0] + t * s[1] + hk * s[2];
    const int64_t target = pl_row_k(call, e, to[which], hk, e->len + t);
    for (int64_t d = 0; d < width; ++d) row[d] = pl_load(from[which], source + d * s[3]);
    if (which == 0 && call->p->rotary_dim) pl_rotate(call, row, e->len + t);
    for (int64_t d = 0; d < width; ++d) pl_store(to[which], target + d * to[which]->stride[3], row[d], false);
  }
}

void pl_append(const pl_call *call) {
  for (int64_t b = 0; b < call->p->batch && !call->planted[PL_cache_not_appended]; ++b) {
    pl_head e = {.b = b};
    pl_lengths(call, &e);
    for (int64_t hk = 0; hk < call->p->heads_kv; ++hk)
      for (int64_t t = 0; t < call->p->n_new; ++t) append_row(call, &e, hk, t);
  }
}
