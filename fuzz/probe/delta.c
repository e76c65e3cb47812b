/* Where dS = P (dP - delta) takes delta from. */
#include "fuzz/probe/format.h"
#include "fuzz/probe/questions.h"

#include <math.h>

enum { KEYS = 64 };

/* Two keys, P = 1 / (1 + r) and r / (1 + r). 16 bits: values 1 and 1 + 4 ulp; dS = P (dP - delta) is small beside delta, so
 * that a rounding of O in delta shows in it. f32: two columns, M and M + 1 beside -M and -M: dP is 0 and 1, and O has
 * errors as of M. */
typedef struct delta_values {
  double dp0, dp1, m; /* m 0: one column */
} delta_values;

static delta_values values_for(const probe *x) {
  const fa_arithmetic *f = &x->r->found.arithmetic;
  int least = probe_fraction_bits(f->p, x->dtype);
  static const fa_product products[] = {FA_PRODUCT_PV, FA_PRODUCT_DP};
  for (int i = 0; i < 2; ++i) {
    const int bits = probe_fraction_bits(f->operand[products[i]], x->dtype);
    least = bits < least ? bits : least;
  }
  const int own = probe_fraction_bits(FA_FORMAT_IO, x->dtype);
  if (x->dtype == FA_F32 && least >= 20) return (delta_values){0, 1, 0x1p18};
  return (delta_values){1, 1 + 4 * ldexp(1.0, -(least < own && x->dtype == FA_F32 ? least : own)), 0};
}

typedef struct delta_errors {
  double stored, exact, sum;
} delta_errors;

static delta_errors compare_deltas(const probe_ask *a, int64_t rows, const delta_values *v) {
  const fa_arithmetic *f = &a->x->r->found.arithmetic;
  delta_errors e = {0};
  for (int64_t i = 0; i < rows; ++i) {
    const double r = exp(-(double)probe_units(i) / 128.0), p1 = r / (1 + r);
    const double rounded = probe_round(r * f->p_scale, f->p, f->p_rounding, a->x->dtype) / f->p_scale;
    const double got = v->dp1 - ask_get(a, FA_T_DQ, i, 0, 30) / PROBE_SCALE / p1;
    const double size = v->dp1 - v->dp0, stored = ask_get(a, FA_T_O, i, 0, 0) + ask_get(a, FA_T_O, i, 0, 1);
    e.stored += fabs(got - stored) / size / (double)rows;
    e.exact += fabs(got - (v->dp0 + rounded * v->dp1) / (1 + r)) / size / (double)rows;
    e.sum += fabs(got - (v->dp0 + r * v->dp1) / (1 + r)) / size / (double)rows;
  }
  return e;
}

static void say_delta(probe *x, const delta_errors *e) {
  fa_arithmetic *found = &x->r->found.arithmetic;
  const double least = fmin(e->stored, fmin(e->exact, e->sum));
  const bool alike =
      fabs(e->exact - e->sum) < 0.25 * fmax(e->exact, e->sum) || fmax(e->exact, e->sum) < 0.004;
  const char *value = "";
  fa_probe_confidence confidence = FA_PROBE_CERTAIN;
  if (!(least < 0.1) || (e->stored > 1.5 * least && least > 0.5 * e->stored)) {
    confidence = FA_PROBE_UNTOLD;
  } else if (e->stored <= 1.5 * least) {
    found->delta = FA_DELTA_STORED_O, value = "stored_o";
    if (least > 0.5 * fmin(e->exact, e->sum)) confidence = FA_PROBE_LIKELY;
  } else {
    found->delta = e->exact < e->sum && !alike ? FA_DELTA_EXACT_O : FA_DELTA_SUM_P_DP;
    value = found->delta == FA_DELTA_EXACT_O ? "exact_o" : "sum_p_dp";
    if (alike) confidence = FA_PROBE_LIKELY;
  }
  probe_say(x, "delta", confidence, value,
            "dS = P (dP - delta) of two keys: delta is off by %.3g of dP's difference if it is of the stored "
            "O, %.3g of the exact "
            "O, %.3g sum P dP%s",
            e->stored, e->exact, e->sum, alike ? "; the last two are alike here" : "");
}

static void set_values(probe_ask *a, const delta_values *v, int64_t rows) {
  probe_set_keys(a);
  for (int64_t i = 0; i < rows; ++i) {
    probe_set_pair(a, i, probe_units(i));
    ask_set(a, FA_T_DO, i, 0, 0, 1.0);
    ask_set(a, FA_T_DO, i, 0, 1, v->m > 0);
  }
  for (int64_t j = 0; j < 2; ++j) {
    ask_set(a, FA_T_V, j, 0, 0, v->m + (j ? v->dp1 : v->dp0));
    ask_set(a, FA_T_V, j, 0, 1, -v->m);
  }
  ask_set(a, FA_T_K, 1, 0, 30, 1.0);
}

void probe_delta(probe *x) {
  enum { ROWS = 32 };
  probe_ask a;
  if (!x->has_backward) return;
  if (probe_hides_small(x, FA_PRODUCT_QK)) {
    probe_say_not_asked(x, "delta", "QK's operands are too coarse for small differences of scores");
    return;
  }
  if (ask_begin(&a, x, FA_PASS_FORWARD | FA_PASS_BACKWARD, 1, KEYS, KEYS) && ask_build(&a, KEYS)) {
    const delta_values v = values_for(x);
    set_values(&a, &v, ROWS);
    if (ask_run(&a)) {
      const delta_errors e = compare_deltas(&a, ROWS, &v);
      say_delta(x, &e);
      ask_end(&a);
      return;
    }
  }
  probe_say_not_asked(x, "delta", a.why);
  ask_end(&a);
}
