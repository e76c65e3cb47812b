/* The score chain: softcap and ALiBi. */
#include "fuzz/explain/hypothesis.h"

#include <string.h>

#define LN_2 0.6931471805599453

static bool softcap_missing(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  m->p.softcap = 0;
  fa_mistake_say(m, "softcap missing");
  return x->p->softcap > 0;
}

/* scale * cap tanh(q.k / cap) is a softcap of scale * cap. */
static bool softcap_before_scale(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  m->p.softcap *= x->p->scale;
  fa_mistake_say(m, "softcap before the scale");
  return x->p->softcap > 0 && x->p->scale > 0 && x->p->scale != 1;
}

static bool softcap_twice(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  m->twist.softcap_twice = true;
  fa_mistake_say(m, "softcap applied twice");
  return x->p->softcap > 0;
}

static bool softcap_not_derived(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  m->twist.softcap_not_derived = true;
  fa_mistake_say(m, "derivative of softcap missing");
  return x->p->softcap > 0;
}

static bool alibi_missing(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  m->p.alibi.present = false;
  fa_mistake_say(m, "ALiBi missing");
  return x->p->alibi.present;
}

static bool alibi_other_corner(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  m->twist.alibi_from_top = true;
  fa_mistake_say(m, "ALiBi's distances counted from the top left corner");
  return x->p->alibi.present;
}

/* Slopes [batch][heads_q] of its own, which the caller sets. NULL: no ALiBi, or no memory. */
static float *own_slopes(const fa_failure *x, fa_mistake *m) {
  const int64_t n = x->p->batch * x->p->heads_q;
  if (!x->p->alibi.present) return NULL;
  m->p.alibi.slopes = fa_mistake_alloc(m, (size_t)n * sizeof(float));
  m->p.alibi.n = n;
  m->in.t[FA_T_ALIBI_SLOPES].data = NULL;
  return m->p.alibi.slopes;
}

static float slope_of(const fa_failure *x, int64_t b, int64_t h) {
  const fa_alibi *a = &x->p->alibi;
  return a->slopes[a->n > x->p->heads_q ? b * x->p->heads_q + h : h];
}

static bool set_slopes(const fa_failure *x, double by, fa_mistake *m) {
  float *slopes = own_slopes(x, m);
  for (int64_t i = 0; slopes && i < m->p.alibi.n; ++i)
    slopes[i] = (float)(by * slope_of(x, i / x->p->heads_q, i % x->p->heads_q));
  return slopes != NULL;
}

static bool alibi_of_other_head(const fa_failure *x, int v, fa_mistake *m) {
  static const char *const what[] = {"the head after", "the head before", "the key/value head",
                                     "the first head"};
  const int64_t n = x->p->heads_q, group = x->place.group;
  float *slopes = n > 1 && (v != 2 || group > 1) ? own_slopes(x, m) : NULL;
  for (int64_t b = 0; slopes && b < x->p->batch; ++b)
    for (int64_t h = 0; h < n; ++h) {
      const int64_t from[] = {(h + 1) % n, (h + n - 1) % n, h / group, 0};
      slopes[b * n + h] = slope_of(x, b, from[v]);
    }
  fa_mistake_say(m, "ALiBi slope of %s", what[v]);
  return slopes != NULL;
}

static bool alibi_sign(const fa_failure *x, int v, fa_mistake *m) {
  fa_mistake_say(m, v ? "ALiBi's distances keep their sign" : "ALiBi with the other sign");
  m->twist.alibi_signed = v;
  return set_slopes(x, v ? 1 : -1, m);
}

static bool alibi_not_scaled(const fa_failure *x, int v, fa_mistake *m) {
  static const char *const texts[] = {"ALiBi added before the scale", "ALiBi not multiplied by log2(e)"};
  fa_mistake_say(m, "%s", texts[v]);
  return x->p->scale != 1 && set_slopes(x, v ? LN_2 : x->p->scale, m);
}

const fa_hypothesis fa_hypotheses_of_scores[] = {
    {"softcap_missing", "softcap is not applied", FA_OF_ALL, 1, softcap_missing},
    {"softcap_before_scale", "softcap is applied to scores that are not scaled yet", FA_OF_ALL, 1,
     softcap_before_scale},
    {"softcap_twice", "softcap is applied twice", FA_OF_ALL, 1, softcap_twice},
    {"softcap_not_derived", "the backward lacks softcap's derivative", FA_OF_BACKWARD, 1,
     softcap_not_derived},
    {"alibi_missing", "ALiBi is not applied", FA_OF_ALL, 1, alibi_missing},
    {"alibi_other_corner", "ALiBi's distances are counted from the other corner", FA_OF_ALL, 1,
     alibi_other_corner},
    {"alibi_of_other_head", "ALiBi has the slope of another head", FA_OF_ALL, 4, alibi_of_other_head},
    {"alibi_sign", "ALiBi, or its distances, have the wrong sign", FA_OF_ALL, 2, alibi_sign},
    {"alibi_not_scaled", "ALiBi is added in other units than the scores", FA_OF_ALL, 2, alibi_not_scaled},
    {.name = NULL}};
