/* How often P is rounded on its way through dropout: once, behind it, as a fused kernel does; or before it and again
 * behind it, as operations one after the other do. Two operands that nearly cancel leave what the roundings made of
 * them. */
#include "fuzz/probe/format.h"
#include "fuzz/probe/questions.h"

#include <math.h>
#include <stdlib.h>

enum { ROWS = 64, KEYS = 64, COLUMNS = 9, FIRST = 32, SECOND = 33 };
#define P_DROP 0.3

static const struct way {
  const char *text;
  bool before, factor, behind; /* what is rounded: P, dropout's factor, their product */
} ways[] = {{"once, behind", false, false, true},
            {"before alone", true, false, false},
            {"before and behind", true, false, true},
            {"P, factor, product", true, true, true}};
enum { N_WAYS = sizeof ways / sizeof *ways, N_ONCE = 2 };

static double rounded(const probe *x, double p) {
  const fa_arithmetic *f = &x->r->found.arithmetic;
  return probe_round(p * f->p_scale, f->p, f->p_rounding, x->dtype) / f->p_scale;
}

static double operand(const probe *x, const struct way *way, double p) {
  const double exact = 1 / (1 - P_DROP), factor = way->factor ? rounded(x, exact) : exact;
  const double product = (way->before ? rounded(x, p) : p) * factor;
  return way->behind ? rounded(x, product) : product;
}

/* Column d takes (8 + d) / 16 of key 0 from key 1. */
static double part(int d) {
  return (8 + d) / 16.0;
}

/* O of a row with exp(x_1 - x_0) = r, of which P is the part `share` if it is not divided first. */
static double predict(const probe *x, const struct way *way, bool divided, double r, int d) {
  const double share = 1 / (1 + r), by = divided ? share : 1;
  return (operand(x, way, r * by) - part(d) * operand(x, way, by)) * (divided ? 1 : share);
}

/* Where the exponential's own error decides which way an operand is rounded, an answer says nothing. */
static bool explains(const probe *x, const struct way *way, bool divided, double r, int d, double got) {
  const double want = predict(x, way, divided, r, d);
  const double low = predict(x, way, divided, r * (1 - 0x1p-20), d),
               high = predict(x, way, divided, r * (1 + 0x1p-20), d);
  const double loose = fabs(high - want) + fabs(want - low);
  const double slack = 1.5 * fa_half_ulp(x->dtype, want) + 4 * x->noise;
  return fabs(got - want) <= slack + (loose > 0x1p-18 ? loose : 0);
}

/* Rows that kept both keys; explained[w] of them by each way. */
static int count_rows(const probe_ask *a, bool divided, int explained[N_WAYS]) {
  int rows = 0;
  for (int64_t i = 0; i < ROWS; ++i) {
    if (!(ask_get(a, FA_T_O, i, 0, FIRST) > 0 && ask_get(a, FA_T_O, i, 0, SECOND) > 0)) continue;
    ++rows;
    const double r = exp(-(double)probe_units(i % 32) / 128.0);
    for (int w = 0; w < N_WAYS; ++w) {
      bool all = true;
      for (int d = 0; d < COLUMNS; ++d)
        all &= explains(a->x, &ways[w], divided, r, d, ask_get(a, FA_T_O, i, 0, d));
      explained[w] += all;
    }
  }
  return rows;
}

static void say(const probe_ask *a) {
  probe *x = a->x;
  const fa_finding *by_sum = fa_probe_find(x->r, "p is divided");
  int explained[N_WAYS] = {0}, once = 0, again = N_ONCE;
  const int rows = count_rows(a, by_sum && by_sum->value[0] == 'b', explained);
  for (int w = 0; w < N_ONCE; ++w) once = explained[w] > explained[once] ? w : once;
  for (int w = N_ONCE; w < N_WAYS; ++w) again = explained[w] > explained[again] ? w : again;
  const int best = explained[again] > explained[once] ? again : once;
  const bool told = explained[best] >= rows * 4 / 5 && abs(explained[again] - explained[once]) > 2;
  if (told) x->r->found.arithmetic.dropout_rounded = best == again;
  probe_say(x, "dropout_rounded", told ? FA_PROBE_CERTAIN : FA_PROBE_UNTOLD,
            !told           ? ""
            : best == again ? "true"
                            : "false",
            "P of two keys times V that nearly cancels, p = 0.3: rounded %s explains %d of %d rows, %s %d",
            ways[once].text, explained[once], rows, ways[again].text, explained[again]);
}

void probe_dropout_rounding(probe *x) {
  const fa_finding *p = fa_probe_find(x->r, "p");
  probe_ask a;
  const bool told = p && p->confidence >= FA_PROBE_LIKELY;
  if (!told || x->r->found.arithmetic.p == FA_FORMAT_F32) {
    probe_say_not_asked(x, "dropout_rounded", told ? "P is not rounded" : "it is not known how P is rounded");
    return;
  }
  if (ask_begin(&a, x, FA_PASS_FORWARD, 1, ROWS, KEYS)) {
    a.c.problem.dropout.p = P_DROP;
    a.c.problem.dropout.seed = 1;
    if (ask_build(&a, KEYS)) {
      probe_set_keys(&a);
      for (int64_t i = 0; i < ROWS; ++i) probe_set_pair(&a, i, probe_units(i % 32));
      for (int d = 0; d < COLUMNS; ++d) {
        ask_set(&a, FA_T_V, 0, 0, d, -part(d));
        ask_set(&a, FA_T_V, 1, 0, d, 1.0);
      }
      ask_set(&a, FA_T_V, 0, 0, FIRST, 1.0);
      ask_set(&a, FA_T_V, 1, 0, SECOND, 1.0);
      if (ask_run(&a)) {
        say(&a);
        ask_end(&a);
        return;
      }
    }
  }
  probe_say_not_asked(x, "dropout_rounded", a.why);
  ask_end(&a);
}
