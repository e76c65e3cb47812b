/* A scale that fits: the one with which O, or else dQ, comes nearest to what the subject returned. */
#include "fuzz/explain/fit.h"

#include "fuzz/explain/compute.h"

#include <math.h>

typedef struct fitting {
  const fa_failure *x;
  const fa_failed *t;
  fa_scope scope;
  const fa_want *want; /* of the scale being tried */
  double away;
} fitting;

static void add_away(void *context, int64_t first, int64_t n) {
  fitting *f = context;
  for (int64_t e = first; e < first + n; ++e) {
    const double away = fabs(f->t->got[e] - f->want->value[e]);
    if (f->t->state[e] != FA_ELEMENT_SKIPPED && isfinite(away)) f->away += away;
  }
}

/* How far the subject is from a scale of `by` times the right one. */
static double away(fitting *f, double by) {
  fa_mistake m;
  fa_wants wants;
  fa_error err;
  fa_mistake_init(&m, f->x);
  m.p.scale *= by;
  m.values_only = true;
  if (fa_mistake_compute(f->x, &m, FA_BIT(f->t->id), &f->scope, &wants, &err) != FA_OK) return INFINITY;
  f->want = &wants.t[f->t->id];
  f->away = 0;
  fa_scope_each(f->x, &f->scope, f->t, add_away, f);
  fa_wants_free(&wants);
  return f->away;
}

/* The best power of 2 on a grid of exponents. */
static double coarse(fitting *f, double low, double high, double step) {
  double best = low, least = INFINITY;
  for (double e = low; e <= high && fa_failure_in_time(f->x); e += step) {
    const double a = away(f, exp2(e));
    if (a < least) {
      least = a;
      best = e;
    }
  }
  return best;
}

/* Golden section search in low .. high, down to the width that matters. */
static double fine(fitting *f, double low, double high) {
  const double part = 0.6180339887498949;
  double a = high - part * (high - low), b = low + part * (high - low);
  double at_a = away(f, exp2(a)), at_b = away(f, exp2(b));
  while (high - low > 0x1p-24 && fa_failure_in_time(f->x)) {
    if (at_a < at_b) {
      high = b;
      b = a;
      at_b = at_a;
      at_a = away(f, exp2(a = high - part * (high - low)));
    } else {
      low = a;
      a = b;
      at_a = at_b;
      at_b = away(f, exp2(b = low + part * (high - low)));
    }
  }
  return (low + high) / 2;
}

double fa_fit_scale(const fa_failure *x) {
  fitting f = {.x = x, .t = fa_failure_find(x, FA_T_O)};
  if (!f.t) f.t = fa_failure_find(x, FA_T_DQ);
  if (!f.t || x->p->scale == 0) return 0;
  fa_scope_sample(x, &f.scope);
  const double step = 0.5, best = coarse(&f, -8, 8, step);
  return exp2(fine(&f, best - step, best + step));
}
