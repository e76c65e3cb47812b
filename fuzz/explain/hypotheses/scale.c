/* The scale of the scores. */
#include "fuzz/explain/fit.h"
#include "fuzz/explain/hypothesis.h"

#include <math.h>

static bool set_scale(const fa_failure *x, double scale, fa_mistake *m) {
  const double right = x->p->scale;
  if (fabs(scale - right) <= 0x1p-20 * fabs(right)) return false;
  m->p.scale = scale;
  return true;
}

static bool scale_missing(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  fa_mistake_say(m, "scores not scaled");
  return set_scale(x, 1, m);
}

static bool scale_twice(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  fa_mistake_say(m, "scores scaled twice");
  return set_scale(x, x->p->scale * x->p->scale, m);
}

static bool scale_of_padded(const fa_failure *x, int v, fa_mistake *m) {
  static const int to[] = {8, 16, 32, 64, 128, 256};
  const int64_t d = x->p->head_dim, padded = (d + to[v] - 1) / to[v] * to[v];
  if (padded == d || fabs(x->p->scale - fa_default_scale(d)) > 1e-6 * fabs(x->p->scale)) return false;
  fa_mistake_say(m, "scale of a head dim padded to %lld", (long long)padded);
  return set_scale(x, fa_default_scale(padded), m);
}

static bool scale_log2e(const fa_failure *x, int v, fa_mistake *m) {
  fa_mistake_say(m,
                 v ? "log2(e) applied twice to the scores" : "log2(e) missing where powers of 2 are taken");
  return set_scale(x, v ? x->p->scale * LOG2_E : x->p->scale / LOG2_E, m);
}

/* True if it is one of those that have names. */
static bool is_known(const fa_failure *x, double by) {
  const double s = x->p->scale, known[] = {1, 1 / s, s, LOG2_E, 1 / LOG2_E};
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
    if (fabs(by - known[i]) < 1e-3 * known[i]) return true;
  for (int64_t padded = 8; padded <= 256; padded *= 2)
    if (fabs(by - fa_default_scale(padded) / s) < 1e-3 * by) return true;
  return false;
}

static bool scale_times(const fa_failure *x, int v, fa_mistake *m) {
  const double by = fa_fit_scale(x);
  (void)v;
  fa_mistake_say(m, "scale times %.4g", by);
  return by > 0 && !is_known(x, by) && set_scale(x, by * x->p->scale, m);
}

const fa_hypothesis fa_hypotheses_of_scales[] = {
    {"scale_missing", "the scores are not scaled", FA_OF_ALL, 1, scale_missing},
    {"scale_twice", "the scores are scaled twice", FA_OF_ALL, 1, scale_twice},
    {"scale_of_padded_head_dim", "the default scale is taken of a padded head dim", FA_OF_ALL, 6,
     scale_of_padded},
    {"scale_log2e", "log2(e) is missing from the scores, or applied twice", FA_OF_ALL, 2, scale_log2e},
    {"scale_times", "the scale is so many times the right one", FA_OF_ALL, 1, scale_times},
    {.name = NULL}};
