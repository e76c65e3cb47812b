#include "fuzz/explain/hypothesis.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void fa_mistake_init(fa_mistake *m, const fa_failure *x) {
  *m = (fa_mistake){.p = *x->p, .in = *x->in, .profile = *x->config->profile};
  m->in.t[FA_T_P_DEBUG].data = m->in.t[FA_T_DROPOUT_KEEP].data = NULL; /* never looked at */
  for (int id = 0; id < FA_T_COUNT; ++id) m->by[id] = 1;
}

void fa_mistake_free(fa_mistake *m) {
  for (int i = 0; i < FA_MISTAKE_OWNS; ++i) free(m->owned[i]);
  for (int i = 0; i < FA_MISTAKE_OWNS; ++i) m->owned[i] = NULL;
}

void fa_mistake_say(fa_mistake *m, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(m->text, sizeof m->text, format, args);
  va_end(args);
}

bool fa_mistake_fits(const fa_tensor *a, const fa_tensor *b) {
  bool same = a->data && b->data && a->rank == b->rank;
  for (int i = 0; same && i < a->rank; ++i) same = a->shape[i] == b->shape[i];
  return same;
}

void *fa_mistake_alloc(fa_mistake *m, size_t bytes) {
  int i = 0;
  while (m->owned[i]) FA_ASSERT(++i < FA_MISTAKE_OWNS);
  return m->owned[i] = calloc(bytes + 1, 1);
}

bool fa_mistake_copy_input(fa_mistake *m, fa_tensor_id id) {
  fa_tensor *t = &m->in.t[id], from = *t;
  if (!from.data) return false;
  t->data = fa_mistake_alloc(m, (size_t)fa_tensor_count(&from) * fa_dtype_size(from.dtype));
  if (!t->data) return false;
  for (int64_t a = t->rank - 1, step = 1; a >= 0; step *= t->shape[a--]) t->stride[a] = step;
  fa_tensor_copy(t, &from);
  return true;
}

void fa_want_multiply(fa_want *w, int64_t first, int64_t n, double by) {
  for (int64_t e = first; e < first + n; ++e) {
    w->value[e] *= by;
    if (!w->accum) continue;
    w->quant[e] *= (float)fabs(by);
    w->accum[e] *= (float)fabs(by);
    w->noise[e] *= (float)fabs(by);
  }
}

void fa_each_forward_row(const fa_mistake *m, const fa_failure *x, fa_wants *w,
                         void (*change)(const fa_mistake *m, const fa_failure *x, const fa_forward_row *row,
                                        fa_wants *w)) {
  const fa_ref_call *c = &x->place;
  for (int64_t b = 0; b < x->p->batch; ++b) {
    const fa_ref_sequence *e = &c->entry[b];
    for (int64_t k = 0; k < c->heads_q * e->sq; ++k) {
      const int64_t h = k / e->sq, i = k % e->sq;
      const fa_forward_row row = {e, i, fa_ref_lse_index(c, e, h, i), fa_ref_q_index(c, e, h, i, c->dv)};
      change(m, x, &row, w);
    }
  }
}
