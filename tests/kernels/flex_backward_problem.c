#include "tests/kernels/flex_backward_problem.h"

#include "gpu/kernels/params/attention.h"
#include "gpu/kernels/params/memeff_backward.h"

#include <math.h>
#include <string.h>

struct flex_memory memory;
struct flex_wants wanted;

/* ---- the expressions ---- */

static bool mask_of(const fa_flex_pair *at) {
  return (at->i + 2 * at->j + at->h + at->b) % 3 != 0 && at->i % 50 != 7;
}
static int table_at(const fa_flex_pair *at) {
  const int d = at->i - at->j + 20;
  return d < 0 ? 0 : d < TABLE ? d : TABLE - 1;
}
/* Pairs with P = 0 and an infinite derivative. */
static bool is_steep(const problem *x, const fa_flex_pair *at) {
  return !x->causal && at->i % 7 == 3 && at->j % 5 == 1; /* and the row has other visible keys */
}

int flex_kind_of(int b, int h, int i, int j) {
  return memory.map[((b * HQ + h) * N_Q + i / Q_BLOCK) * N_KV + j / KV_BLOCK];
}

/* Kernels may evaluate scores of pairs past the ends. */
static bool is_visible(const problem *x, const fa_flex_pair *at) {
  if (at->i >= SQ || at->j >= SK) return false;
  if (x->causal && at->j > at->i + SK - SQ) return false;
  const int kind = x->lists ? flex_kind_of(at->b, at->h, at->i, at->j) : FA_FLEX_PARTIAL;
  if (kind == FA_FLEX_FULLY_MASKED) return false;
  return kind == FA_FLEX_FULL || !x->mask || mask_of(at);
}

float flex_score_of(void *self, float s, const fa_flex_pair *at) {
  const problem *x = self;
  if (!is_visible(x, at)) return at->j % 2 ? NAN : INFINITY;
  if (is_steep(x, at)) return s - 500;
  return s * (1 + 0.25f * memory.scales[at->h]) + 0.5f * memory.table[table_at(at)] + tanhf(s);
}
float flex_derivative_of(void *self, float s, const fa_flex_pair *at, fa_flex_read *read) {
  const problem *x = self;
  const bool bad = !is_visible(x, at) || is_steep(x, at);
  read[0] = (fa_flex_read){0, at->h, bad ? NAN : 0.25f * s};
  read[1] = (fa_flex_read){2, table_at(at), bad ? INFINITY : 0.5f};
  return bad ? INFINITY : 1 + 0.25f * memory.scales[at->h] + 1 - tanhf(s) * tanhf(s);
}
int flex_mask_function(void *self, const fa_flex_pair *at) {
  (void)self;
  return mask_of(at);
}

/* ---- expected values ---- */

typedef struct pair_values {
  double logit, derivative, scaled; /* derivative: of the logit with respect to the scaled product */
} pair_values;

/* score_mod like the functions above, where it has a value. */
static pair_values pair_of(const problem *x, const fa_flex_pair *at) {
  const int hk = at->h / (HQ / HK);
  double s = 0, derivative = 1;
  for (int d = 0; d < D; ++d)
    s += load(x, memory.q, q_at(at->b, at->i, at->h) + d) * load(x, memory.k, k_at(at->b, at->j, hk) + d);
  s *= scale;
  if (x->softcap > 0) {
    const double th = tanh(s / x->softcap);
    s = x->softcap * th;
    derivative = 1 - th * th;
  }
  double t = s;
  if (x->score && is_steep(x, at)) {
    t = s - 500;
  } else if (x->score) {
    const double factor = 1 + 0.25 * memory.scales[at->h];
    t = s * factor + 0.5 * memory.table[table_at(at)] + tanh(s);
    derivative *= factor + 1 - tanh(s) * tanh(s);
  }
  if (x->alibi) t -= memory.alibi[at->b * HQ + at->h] * fabs((double)at->i + SK - SQ - at->j);
  if (x->bias) t += load(x, memory.bias, ((int64_t)(at->b * HQ + at->h) * SQ + at->i) * SK + at->j);
  return (pair_values){t, derivative, s};
}

static void add_pair(const problem *x, const fa_flex_pair *at, pair_values v, double delta) {
  const int b = at->b, h = at->h, i = at->i, j = at->j, hk = h / (HQ / HK);
  const double p = x->score && is_steep(x, at) ? 0 : exp(v.logit - memory.lse[row_at(b, h, i)]);
  double dp = 0;
  for (int d = 0; d < DV; ++d) {
    dp += load(x, memory.d_o, o_at(b, i, h) + d) * load(x, memory.v, v_at(b, j, hk) + d);
    wanted.dv[v_at(b, j, hk) + d] += p * load(x, memory.d_o, o_at(b, i, h) + d);
  }
  const double g = p * (dp - delta), ds = scale * g * v.derivative;
  wanted.dbias[((x->dbias_sums & FA_MEMEFF_SUM_BATCH ? 0 : b) * (int64_t)HQ + h) * SQ * SK + (int64_t)i * SK +
               j] += g;
  if (x->score) {
    wanted.scales[h] += g * 0.25 * v.scaled;
    wanted.table[table_at(at)] += g * 0.5;
  }
  for (int d = 0; d < D; ++d) {
    wanted.dq[q_at(b, i, h) + d] += ds * load(x, memory.k, k_at(b, j, hk) + d);
    wanted.dk[k_at(b, j, hk) + d] += ds * load(x, memory.q, q_at(b, i, h) + d);
  }
}

/* O, LSE and the gradients of one row. */
static void row_gradients(const problem *x, int b, int h, int i) {
  static pair_values v[SK];
  double sum = 0, max = -INFINITY, o[DV] = {0}, delta = x->dlse ? -memory.dlse[row_at(b, h, i)] : 0;
  bool visible[SK];
  fa_flex_pair at = {b, h, i, 0, SQ, SK};
  for (int j = 0; j < SK; ++j) {
    at.j = j;
    visible[j] = is_visible(x, &at);
    v[j] = pair_of(x, &at);
    if (visible[j]) max = fmax(max, v[j].logit);
  }
  for (int j = 0; j < SK; ++j)
    if (visible[j]) sum += exp(v[j].logit - max);
  memory.lse[row_at(b, h, i)] = sum == 0 ? -INFINITY : (float)(max + log(sum));
  for (int j = 0; j < SK; ++j)
    for (int d = 0; d < DV && visible[j]; ++d)
      o[d] += exp(v[j].logit - max) / sum * load(x, memory.v, v_at(b, j, h / (HQ / HK)) + d);
  for (int d = 0; d < DV; ++d) {
    store(x, memory.o, o_at(b, i, h) + d, (float)o[d]);
    delta += load(x, memory.o, o_at(b, i, h) + d) * load(x, memory.d_o, o_at(b, i, h) + d);
  }
  for (int j = 0; j < SK; ++j) {
    at.j = j;
    if (visible[j]) add_pair(x, &at, v[j], delta);
  }
}

void flex_expect(const problem *x) {
  memset(&wanted, 0, sizeof wanted);
  for (int b = 0; b < B; ++b)
    for (int h = 0; h < HQ; ++h)
      for (int i = 0; i < SQ; ++i) row_gradients(x, b, h, i);
}
