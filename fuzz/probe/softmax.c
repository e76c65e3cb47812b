/* The exponential; whether the backward makes P again from the LSE; tiles of the running softmax. */
#include "fuzz/probe/format.h"
#include "fuzz/probe/questions.h"

#include <math.h>
#include <stdio.h>

enum { KEYS = 64 };

/* ---- P kept, or made again ---- */

/* All scores of row i are x_i, about 2^20: an LSE of x_i + ln 64 in f32 is off by up to 1/16, and so is what the backward
 * makes of it, while P itself is 1/64. */
void probe_p_kept(probe *x) {
  enum { ROWS = 6 };
  probe_ask a;
  if (!x->has_backward) return;
  if (ask_begin(&a, x, FA_PASS_FORWARD | FA_PASS_BACKWARD, 1, KEYS, KEYS) && ask_build(&a, KEYS)) {
    for (int64_t j = 0; j < KEYS; ++j) ask_set(&a, FA_T_K, j, 0, 0, 2048.0);
    for (int64_t i = 0; i < ROWS; ++i) {
      ask_set(&a, FA_T_Q, i, 0, 0, 4096.0 + 512.0 * (double)i);
      ask_set(&a, FA_T_DO, i, 0, i, 64.0);
    }
    if (ask_run(&a)) {
      double worst = 0;
      for (int64_t i = 0; i < ROWS; ++i) {
        const double off = fabs(ask_get(&a, FA_T_DV, 0, 0, i) - 1);
        if (!(off <= worst)) worst = off; /* NaN stays */
        if (isnan(worst)) break;
      }
      const bool kept = worst < 0.005, told = isfinite(worst) && worst < 1;
      if (told) x->r->found.arithmetic.p_kept = kept;
      probe_say(x, "p_kept", told ? FA_PROBE_CERTAIN : FA_PROBE_UNTOLD,
                !told  ? ""
                : kept ? "true"
                       : "false",
                "scores of 2^20 and more, all equal: P of the backward is off by up to %.3g %% (from an LSE "
                "in f32: several %%)",
                100 * worst);
      ask_end(&a);
      return;
    }
  }
  probe_say_not_asked(x, "p_kept", a.why);
  ask_end(&a);
}

/* ---- the exponential ---- */

typedef struct exp_answer {
  double from_lse, from_o; /* largest relative error of exp that explains them; NAN: cannot be told */
} exp_answer;

static exp_answer measure(const probe_ask *a) {
  exp_answer e = {0, 0};
  for (int64_t i = 0; i < KEYS; ++i) {
    const double r = exp(-(double)(2 * i + 1) / 128.0), lse = ask_natural_lse(a, 0, i),
                 o = ask_get(a, FA_T_O, i, 0, 0);
    e.from_lse = fmax(e.from_lse, (fabs(lse - log1p(r)) - 0x1p-25) * (1 + r) / r);
    e.from_o = fmax(e.from_o, (fabs(o * (1 + r) / r - 1) - 0x1p-23) * (1 + r));
  }
  return e;
}

void probe_exp(probe *x) {
  fa_arithmetic *found = &x->r->found.arithmetic;
  probe_ask a;
  const bool by_lse = probe_reads_lse(x);
  if (probe_hides_small(x, FA_PRODUCT_QK)) {
    probe_say_not_asked(x, "eps_exp", "QK's operands are too coarse for small differences of scores");
    return;
  }
  if (!by_lse && x->dtype != FA_F32) {
    probe_say_not_asked(x, "eps_exp", "without a fine LSE the output's own rounding hides it");
    return;
  }
  if (ask_begin(&a, x, FA_PASS_FORWARD, 1, KEYS, KEYS) && ask_build(&a, KEYS)) {
    ask_set_range(&a, FA_T_K, 1, 0, 1, 8, -1.0 / 16);
    for (int64_t j = 2; j < KEYS; ++j) ask_set(&a, FA_T_K, j, 0, 20, 1.0);
    ask_set(&a, FA_T_V, 1, 0, 0, 1.0);
    for (int64_t i = 0; i < KEYS; ++i) {
      ask_set_bits(&a, FA_T_Q, i, 0, 1, 2 * i + 1);
      ask_set(&a, FA_T_Q, i, 0, 20, -4096.0);
    }
    if (ask_run(&a)) {
      const exp_answer e = measure(&a);
      const double eps = by_lse ? e.from_lse : e.from_o;
      char value[64];
      const bool ordinary = eps < 0x1p-20;
      if (!(eps < 0.05)) {
        probe_say(x, "eps_exp", FA_PROBE_UNTOLD, "", "%s would need a relative error of %.3g",
                  by_lse ? "LSE of two keys" : "O of two keys", eps);
        ask_end(&a);
        return;
      }
      if (!ordinary) found->eps_exp = 1.5 * eps;
      if (!ordinary) x->noise = fmax(x->noise, 2 * eps);
      snprintf(value, sizeof value, ordinary ? "below 2^-20" : "%.3g", eps);
      probe_say(x, "eps_exp", FA_PROBE_LIKELY, value,
                "%s over 64 gaps up to 1: relative error up to %.3g (2^-22 is %.3g)",
                by_lse ? "LSE of two keys" : "O of two keys", eps > 0 ? eps : 0, 0x1p-22);
      ask_end(&a);
      return;
    }
  }
  probe_say_not_asked(x, "eps_exp", a.why);
  ask_end(&a);
}

/* ---- tiles ---- */

/* A row's P are rounded beside the maximum of their tile. Key A has a low score, another key j the highest: if j is in
 * A's tile, or in one before it, P of A is rounded; if j comes later, A was 1 when it was rounded. */
enum { LONG = 256, NOBODY = -1 };

/* The dot product of A below the maximum, in 1/16: the one whose rounding shows best. */
static int64_t choose_units(const probe *x, double *c) {
  const fa_arithmetic *f = &x->r->found.arithmetic;
  int64_t best = 1;
  double most = -1;
  for (int64_t u = 1; u < 64; u += 2) {
    const double r = exp(-(double)u / 128.0), near = rint(r * 16) / 16;
    const double error = fabs(probe_round(r * f->p_scale, f->p, f->p_rounding, x->dtype) / f->p_scale - r);
    if (error / (fabs(r - near) + 0.004) > most) most = error / (fabs(r - near) + 0.004), best = u, *c = near;
  }
  return best;
}

static void set_row_for(probe_ask *a, int64_t row, int64_t j, int64_t units) {
  ask_set(a, FA_T_Q, row, 0, j / 16, 256.0);
  ask_set(a, FA_T_Q, row, 0, 16 + j % 16, 256.0);
  ask_set(a, FA_T_Q, row, 0, 32, 512.0);
  ask_set_bits(a, FA_T_Q, row, 0, 33, units);
}

/* rounded[j]: P of key `at` was rounded beside key j's. */
static bool ask_tiles(probe *x, int64_t at, int8_t rounded[LONG], char *why, size_t size) {
  const fa_arithmetic *f = &x->r->found.arithmetic;
  probe_ask a;
  double c = 1;
  const int64_t units = choose_units(x, &c);
  const double r = exp(-(double)units / 128.0);
  const double r_rounded = probe_round(r * f->p_scale, f->p, f->p_rounding, x->dtype) / f->p_scale;
  bool good = ask_begin(&a, x, FA_PASS_FORWARD, 1, LONG, LONG) && ask_build(&a, KEYS);
  for (int64_t j = 0; good && j < LONG; ++j) {
    ask_set(&a, FA_T_V, j, 0, 0, j == at ? 1.0 : -c);
    if (j == at) {
      ask_set(&a, FA_T_K, j, 0, 32, 1.0);
      ask_set_range(&a, FA_T_K, j, 0, 33, 6, -1.0 / 16);
      continue;
    }
    ask_set(&a, FA_T_K, j, 0, j / 16, 1.0);
    ask_set(&a, FA_T_K, j, 0, 16 + j % 16, 1.0);
    set_row_for(&a, j, j, units);
  }
  good = good && ask_run(&a);
  for (int64_t j = 0; good && j < LONG; ++j) {
    const double got = ask_get(&a, FA_T_O, j, 0, 0) * (1 + r) + c;
    rounded[j] = j == at ? NOBODY : fabs(got - r_rounded) < fabs(got - r);
  }
  if (!good) snprintf(why, size, "%s", a.why);
  ask_end(&a);
  return good;
}

/* The number of keys from `at` on, in the direction of step, beside which A was rounded; LONG: all; 0: no clean
 * boundary. */
static int64_t boundary(const int8_t rounded[LONG], int64_t at, int64_t step) {
  int64_t n = 1;
  while (at + n * step >= 0 && at + n * step < LONG && rounded[at + n * step]) ++n;
  if (n == LONG) return LONG;
  for (int64_t k = n; at + k * step >= 0 && at + k * step < LONG; ++k)
    if (rounded[at + k * step]) return 0;
  return n;
}

static void say_tiles(probe *x, int64_t forward, int64_t back) {
  const int64_t n = forward > 0 && forward < LONG ? forward : back > 0 && back < LONG ? back : 0;
  char value[64] = "";
  if (n > 1) {
    x->r->found.arithmetic.block_n = (int)n;
    snprintf(value, sizeof value, "%lld", (long long)n);
    probe_say(x, "block_n", FA_PROBE_CERTAIN, value,
              "a low P is rounded beside a maximum up to %lld keys %s, not beyond", (long long)n - 1,
              forward == n ? "behind it" : "before it");
  } else if (forward == LONG && back == LONG) {
    x->r->found.arithmetic.block_n = LONG;
    probe_say(x, "block_n", FA_PROBE_LIKELY, "256 or more",
              "a low P is rounded beside a maximum anywhere in 256 keys");
  } else {
    probe_say(x, "block_n", FA_PROBE_UNTOLD, "", "no clean boundary (%lld, %lld)", (long long)forward,
              (long long)back);
  }
}

void probe_tiles(probe *x) {
  const fa_finding *divided = fa_probe_find(x->r, "p is divided");
  const fa_finding *p = fa_probe_find(x->r, "p");
  char why[256] = "";
  int8_t rounded[LONG];
  if (!p || p->confidence < FA_PROBE_LIKELY || x->r->found.arithmetic.p == FA_FORMAT_F32) {
    probe_say_not_asked(x, "block_n", "P is not rounded, so that nothing shows where a tile ends");
    return;
  }
  if (divided && divided->value[0] == 'b') {
    x->r->found.arithmetic.block_n = LONG;
    probe_say(x, "block_n", FA_PROBE_LIKELY, "256 or more",
              "P is divided by its sum before it is rounded: a whole row at once");
    return;
  }
  if (!ask_tiles(x, 0, rounded, why, sizeof why)) {
    probe_say_not_asked(x, "block_n", why);
    return;
  }
  const int64_t forward = boundary(rounded, 0, 1);
  const int64_t back = ask_tiles(x, LONG - 1, rounded, why, sizeof why) ? boundary(rounded, LONG - 1, -1) : 0;
  say_tiles(x, forward, back);
}
