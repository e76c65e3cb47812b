/* Sinks: the logits in the denominator that no value belongs to. */
#include "fuzz/explain/hypothesis.h"

static bool has_sinks(const fa_failure *x) {
  return x->p->sinks.present;
}

static bool sinks_missing(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  m->p.sinks = (fa_sinks){0};
  m->in.t[FA_T_SINKS].data = NULL;
  fa_mistake_say(m, "sinks missing");
  return has_sinks(x);
}

/* The logits in double, head by head; NULL: there are none. */
static double *own_sinks(const fa_failure *x, fa_mistake *m) {
  const int64_t n = x->p->heads_q;
  double *value = has_sinks(x) ? fa_mistake_alloc(m, (size_t)n * sizeof *value) : NULL;
  fa_tensor *t = &m->in.t[FA_T_SINKS];
  for (int64_t h = 0; value && h < n; ++h) value[h] = fa_tensor_get(&x->in->t[FA_T_SINKS], &h);
  if (!value) return NULL;
  t->dtype = FA_F64;
  t->data = (char *)value;
  t->stride[0] = 1;
  return value;
}

static bool sinks_in_other_units(const fa_failure *x, int v, fa_mistake *m) {
  static const char *const texts[] = {"sinks multiplied by the scale", "sinks not multiplied by log2(e)",
                                      "sinks multiplied by log2(e)", "sinks divided by the scale"};
  const double by[] = {x->p->scale, 1 / LOG2_E, LOG2_E, 1 / x->p->scale};
  double *value = by[v] != 1 ? own_sinks(x, m) : NULL;
  for (int64_t h = 0; value && h < x->p->heads_q; ++h) value[h] *= by[v];
  fa_mistake_say(m, "%s", texts[v]);
  return value;
}

static bool sinks_of_other_head(const fa_failure *x, int v, fa_mistake *m) {
  static const char *const what[] = {"the head after", "the head before", "the first head",
                                     "the key/value head"};
  const int64_t n = x->p->heads_q;
  if (n == 1 || (v == 3 && x->place.group == 1) || (n == 2 && v == 1)) return false;
  double *value = own_sinks(x, m);
  for (int64_t h = 0; value && h < n; ++h) {
    const int64_t of[] = {(h + 1) % n, (h + n - 1) % n, 0, h / x->place.group};
    value[h] = fa_tensor_get(&x->in->t[FA_T_SINKS], &of[v]);
  }
  fa_mistake_say(m, "sink of %s", what[v]);
  return value;
}

static bool sinks_other_lse(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  m->p.sinks.in_lse = !x->p->sinks.in_lse;
  fa_mistake_say(m, x->p->sinks.in_lse ? "LSE without the sink" : "LSE with the sink");
  return has_sinks(x);
}

const fa_hypothesis fa_hypotheses_of_sinks[] = {
    {"sinks_missing", "the denominator has no sink", FA_OF_ALL, 1, sinks_missing},
    {"sinks_in_other_units", "the sinks are in other units than the scores", FA_OF_ALL, 4,
     sinks_in_other_units},
    {"sinks_of_other_head", "the sink is that of another head", FA_OF_ALL, 4, sinks_of_other_head},
    {"sinks_other_lse", "the LSE has a sink that it should not have, or lacks it", FA_BIT(FA_T_LSE), 1,
     sinks_other_lse},
    {0}};
