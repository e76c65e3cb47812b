/* What P and dS are rounded to. Two operands that nearly cancel leave the rounding error of one of them, large beside
 * the output's own rounding; every format predicts it. */
#include "fuzz/probe/format.h"
#include "fuzz/probe/questions.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS = 64, COARSE = 9, COLUMNS = 2 * (COARSE + 1), STEP = 16 };

/* Columns: subtract 8/16, 9/16 ... 16/16, and nothing; the same for numbers 2^-15 times as large. */
static void column(int d, double small, double *v1, double *v0) {
  const int c = d % (COARSE + 1);
  *v1 = d > COARSE ? 1.0 / small * 0x1p-7 : 1.0;
  *v0 = c == COARSE ? 0.0 : -(8 + c) / 16.0;
  if (d > COARSE) *v0 *= 0x1p-7;
}

int64_t probe_units(int64_t i) {
  if (i < 32) return 2 * i + 1;          /* r from 0.99 to 0.61 */
  if (i < 48) return 8 * (166 + i - 32); /* r about 2^-15 */
  return 16 * (34 + i - 48);             /* r from 2^-6 to 2^-9 */
}

void probe_set_pair(probe_ask *a, int64_t i, int64_t units) {
  ask_set_bits(a, FA_T_Q, i, 0, 1, units);
  ask_set(a, FA_T_Q, i, 0, 20, -4096.0);
}

void probe_set_keys(probe_ask *a) {
  ask_set_range(a, FA_T_K, 1, 0, 1, 11, -1.0 / STEP);
  for (int64_t j = 2; j < KEYS; ++j) ask_set(a, FA_T_K, j, 0, 20, 1.0);
}

static void say_match(probe *x, const char *field, const probe_match *m, fa_format *format, fa_rounding *how,
                      double *scale, const char *what) {
  char value[64], other[64];
  probe_rounding_text(&m->best, x->dtype, value, sizeof value);
  probe_rounding_text(&m->other, x->dtype, other, sizeof other);
  const bool told = m->best_rows >= m->rows * 9 / 10 && m->best_rows > m->other_rows + 2;
  if (told) {
    *format = probe_io_format(m->best.format, x->dtype);
    *how = m->best.how;
    if (scale) *scale = m->best.scale;
  }
  probe_say(x, field, told ? FA_PROBE_CERTAIN : FA_PROBE_UNTOLD, told ? value : "",
            "%s: %s predicts %d of %d rows, %s %d", what, value, m->best_rows, m->rows, other, m->other_rows);
}

void probe_p(probe *x) {
  fa_arithmetic *found = &x->r->found.arithmetic;
  probe_ask a;
  if (probe_hides_small(x, FA_PRODUCT_QK)) {
    probe_say_not_asked(x, "p", "QK's operands are too coarse for small differences of scores");
    return;
  }
  if (!ask_begin(&a, x, FA_PASS_FORWARD, 1, KEYS, KEYS) || !ask_build(&a, KEYS)) {
    probe_say_not_asked(x, "p", a.why);
    ask_end(&a);
    return;
  }
  probe_set_keys(&a);
  for (int64_t i = 0; i < KEYS; ++i) probe_set_pair(&a, i, probe_units(i));
  for (int d = 0; d < COLUMNS; ++d) {
    double v1, v0;
    column(d, 0x1p-15, &v1, &v0);
    ask_set(&a, FA_T_V, 1, 0, d, v1);
    ask_set(&a, FA_T_V, 0, 0, d, v0);
  }
  if (!ask_run(&a)) {
    probe_say_not_asked(x, "p", a.why);
    ask_end(&a);
    return;
  }
  static probe_sample s[KEYS * COLUMNS];
  int n = 0;
  for (int i = 0; i < KEYS; ++i)
    for (int d = 0; d < COLUMNS; ++d) {
      const double r = exp(-(double)probe_units(i) / 128.0);
      double v1, v0;
      column(d, 0x1p-15, &v1, &v0);
      s[n++] = (probe_sample){.u = r,
                              .w = 1.0,
                              .factor = 1.0 / (1.0 + r),
                              .normalised_u = r / (1.0 + r),
                              .normalised_w = 1.0 / (1.0 + r),
                              .normalised_factor = 1.0,
                              .v1 = v1,
                              .v0 = v0,
                              .got = ask_get(&a, FA_T_O, i, 0, d),
                              .row = i};
    }
  const probe_match m = probe_explain(x, s, n, KEYS, true);
  say_match(x, "p", &m, &found->p, &found->p_rounding, &found->p_scale,
            "P of two keys times V that nearly cancels");
  if (m.best.format != FA_FORMAT_F32 && m.best_rows > m.rows * 9 / 10)
    probe_say(x, "p is divided", FA_PROBE_CERTAIN,
              m.best.normalised ? "before it is rounded" : "after the product", "the same rows");
  ask_end(&a);
}

/* ---- scores ---- */

/* Row i: dot products 1024 and 1024 + inc. Rounded to 8 or 11 bits, the difference comes in steps of 8 or 1. */
static double increment(int64_t i) {
  return i < 32 ? (double)i / 4.0 : (double)(i - 32) / 32.0;
}

static double step_error(const double *got, double step) {
  double worst = 0;
  for (int i = 0; i < KEYS; ++i) {
    const double sum = 1024 + increment(i);
    const double want = step > 0 ? rint(sum / step) * step - 1024 : sum - 1024;
    worst += fabs(got[i] - want) / KEYS;
  }
  return worst;
}

void probe_scores(probe *x) {
  fa_arithmetic *found = &x->r->found.arithmetic;
  probe_ask a;
  if (ask_begin(&a, x, FA_PASS_FORWARD, 1, KEYS, KEYS) && ask_build(&a, KEYS)) {
    ask_set(&a, FA_T_K, 0, 0, 0, 32.0);
    ask_set(&a, FA_T_K, 1, 0, 0, 32.0);
    ask_set_range(&a, FA_T_K, 1, 0, 1, 10, 1.0 / 32.0);
    for (int64_t i = 0; i < KEYS; ++i) {
      ask_set(&a, FA_T_Q, i, 0, 0, 32.0);
      ask_set_bits(&a, FA_T_Q, i, 0, 1, (int64_t)(increment(i) * 32.0));
    }
    ask_set(&a, FA_T_V, 0, 0, 0, 1.0);
    ask_set(&a, FA_T_V, 1, 0, 1, 1.0);
    if (ask_run(&a)) {
      double got[KEYS];
      for (int64_t i = 0; i < KEYS; ++i) {
        const double lse = ask_natural_lse(&a, 0, i),
                     ratio = ask_get(&a, FA_T_O, i, 0, 1) / ask_get(&a, FA_T_O, i, 0, 0);
        got[i] = log(isfinite(lse) ? exp(lse - 1024 * PROBE_SCALE) - 1 : ratio) / PROBE_SCALE;
      }
      const double exact = step_error(got, 0), f16 = step_error(got, 1), bf16 = step_error(got, 8);
      const double least = fmin(exact, fmin(f16, bf16));
      const bool told = least < 0.08;
      const fa_format f = least == exact ? FA_FORMAT_F32 : least == f16 ? FA_FORMAT_F16 : FA_FORMAT_BF16;
      const bool accumulator = found->accumulator[FA_PRODUCT_QK] >= FA_ACCUMULATOR_NARROW;
      if (told && !accumulator) found->scores = f;
      probe_say(x, "scores", told ? FA_PROBE_CERTAIN : FA_PROBE_UNTOLD, told ? probe_format_name(f) : "",
                "q k = 1024 + up to 7.75: off by %.3g on average, f16 by %.3g, bf16 by %.3g%s", exact, f16,
                bf16, accumulator && f != FA_FORMAT_F32 ? ": the accumulator's doing" : "");
      ask_end(&a);
      return;
    }
  }
  probe_say_not_asked(x, "scores", a.why);
  ask_end(&a);
}

/* ---- dS ---- */

/* dP of key 1 in row i: a number with 13 bits, of which dO and V have a few each. */
static double ds_of(int64_t i) {
  return 0.5 + (double)(i % 32 / 4) / 16.0 + (double)(2 * (i % 8) + 1) * 0x1p-8 +
         (double)(2 * (i * 7 % 16) + 1) * 0x1p-13;
}

/* dS is dP / 64: O and delta are 0. Rows from 32 on: 2^-10 times as large. */
static void set_ds_row(probe_ask *a, int64_t i) {
  const double size = i < 32 ? 1.0 : 0x1p-10;
  const double parts[3] = {0.5 + (double)(i % 32 / 4) / 16.0, (double)(2 * (i % 8) + 1) / 16.0,
                           (double)(2 * (i * 7 % 16) + 1) / 16.0};
  ask_set(a, FA_T_DO, i, 0, 0, size);
  for (int64_t d = 0; d < 3; ++d) ask_set(a, FA_T_DO, i, 0, d + 1, parts[d] * size);
}

/* The same samples under the hypothesis that dS is multiplied by the scale before it is rounded. */
static void scale_first(probe_sample *s, int n) {
  for (int i = 0; i < n; ++i) {
    s[i].u *= PROBE_SCALE;
    s[i].w *= PROBE_SCALE;
    s[i].factor /= PROBE_SCALE;
  }
}

/* Only numbers below f16's normal ones show on which side of the rounding a scale of 1/8 is. */
static probe_match explain_ds(probe *x, probe_sample *s, int n) {
  const probe_match late = probe_explain(x, s, n, KEYS, false);
  if (x->dtype != FA_F16) return late;
  scale_first(s, n);
  const probe_match early = probe_explain(x, s, n, KEYS, false);
  const bool scaled = early.best_rows > late.best_rows;
  const probe_match *best = scaled ? &early : &late;
  const int least = best->rows * 9 / 10, apart = abs(early.best_rows - late.best_rows);
  if (best->best_rows < least || apart <= 2) return *best;
  x->r->found.arithmetic.ds_scaled = scaled;
  probe_say(x, "ds_scaled", FA_PROBE_CERTAIN, scaled ? "true" : "false",
            "the rows of ds: %d of %d if dS is multiplied by the scale first, %d if not", early.best_rows,
            best->rows, late.best_rows);
  return *best;
}

void probe_ds(probe *x) {
  fa_arithmetic *found = &x->r->found.arithmetic;
  static const double places[3] = {1.0, 0x1p-4, 0x1p-9};
  probe_ask a;
  if (!x->has_backward) {
    probe_say_not_asked(x, "ds", "there is no backward");
    return;
  }
  if (!ask_begin(&a, x, FA_PASS_FORWARD | FA_PASS_BACKWARD, 1, KEYS, KEYS) || !ask_build(&a, KEYS)) {
    probe_say_not_asked(x, "ds", a.why);
    ask_end(&a);
    return;
  }
  ask_set(&a, FA_T_V, 0, 0, 0, 1.0);
  ask_set(&a, FA_T_V, 2, 0, 0, -1.0);
  for (int64_t d = 0; d < 3; ++d) {
    ask_set(&a, FA_T_V, 1, 0, d + 1, places[d]);
    ask_set(&a, FA_T_V, 2, 0, d + 1, -places[d]);
  }
  for (int64_t i = 0; i < KEYS; ++i) set_ds_row(&a, i);
  for (int d = 0; d < COLUMNS; ++d) {
    double v1, v0;
    column(d, 0x1p-17, &v1, &v0);
    if (d > COARSE) v0 = v0 / 0x1p-7 * v1; /* both dS are small here */
    ask_set(&a, FA_T_K, 1, 0, d, v1);
    ask_set(&a, FA_T_K, 0, 0, d, v0);
  }
  if (ask_run(&a)) {
    static probe_sample s[KEYS * COLUMNS];
    int n = 0;
    for (int i = 0; i < KEYS; ++i)
      for (int d = 0; d < COLUMNS; ++d) {
        const double size = (i < 32 ? 1.0 : 0x1p-10) / 64.0;
        double v1, v0;
        column(d, 0x1p-17, &v1, &v0);
        if (d > COARSE) v0 = v0 / 0x1p-7 * v1;
        s[n++] = (probe_sample){.u = ds_of(i) * size,
                                .w = size,
                                .factor = PROBE_SCALE,
                                .v1 = v1,
                                .v0 = v0,
                                .got = ask_get(&a, FA_T_DQ, i, 0, d),
                                .row = i};
      }
    const probe_match m = explain_ds(x, s, n);
    say_match(x, "ds", &m, &found->ds, &found->ds_rounding, NULL,
              "dS of 13 bits times K that nearly cancels");
  } else {
    probe_say_not_asked(x, "ds", a.why);
  }
  ask_end(&a);
}
