/* ALiBi: its form in P, and from where the LSE counts it. */
#include "fuzz/probe/questions.h"

#include <math.h>
#include <stdlib.h>

enum { ROWS = 48, KEYS = 64, SHIFT = KEYS - ROWS };
#define SLOPE 0.125

typedef enum form { DISTANCE, GROWING, COLUMN, NO_SHIFT, NOTHING, N_FORMS } form;
static const char *const form_names[] = {"-slope |i + shift - j|", "+slope |i + shift - j|", "slope j",
                                         "-slope |i - j|", "ignored"};

static double bias_of(form f, int64_t i, int64_t j) {
  const double away = fabs((double)(i + SHIFT - j));
  const double all[] = {-SLOPE * away, SLOPE * away, SLOPE * (double)j, -SLOPE * fabs((double)(i - j)), 0};
  return all[f];
}

/* The largest difference of ln P from what the form says, over a row's keys. */
static double distance_from(const probe_ask *a, form f, int64_t i, int64_t n) {
  double worst = 0, shift = 0;
  for (int64_t j = 0; j < n; ++j) shift += log(ask_get(a, FA_T_O, i, 0, j)) - bias_of(f, i, j);
  for (int64_t j = 0; j < n; ++j)
    worst = fmax(worst, fabs(log(ask_get(a, FA_T_O, i, 0, j)) - bias_of(f, i, j) - shift / (double)n));
  return worst;
}

/* causal: as many rows as keys, few. Otherwise ROWS over KEYS. */
static bool ask_alibi(probe_ask *a, probe *x, bool causal) {
  const int64_t rows = causal ? x->few : ROWS, keys = causal ? x->few : KEYS;
  if (!ask_begin(a, x, FA_PASS_FORWARD, 1, rows, keys)) return false;
  fa_problem *p = &a->c.problem;
  if (causal) p->mask.type = FA_MASK_CAUSAL;
  p->alibi.present = true;
  p->alibi.n = 1;
  p->alibi.slopes = malloc(sizeof *p->alibi.slopes);
  if (!p->alibi.slopes) return false;
  *p->alibi.slopes = (float)SLOPE;
  if (!ask_build(a, KEYS)) return false;
  for (int64_t j = 0; j < keys; ++j) ask_set(a, FA_T_V, j, 0, j, 1.0);
  return ask_run(a);
}

/* Under a causal mask: slope * j and the distance differ by a constant of the row. */
static void say_lse(probe *x, const probe_ask *a) {
  const int64_t at = x->few - 1;
  double sum = 0;
  for (int64_t j = 0; j <= at; ++j) sum += exp(-SLOPE * (double)(at - j));
  const double got = ask_natural_lse(a, 0, at), distance = log(sum), column = distance + SLOPE * (double)at;
  const bool is_column = fabs(got - column) < 0.05;
  if (!is_column && fabs(got - distance) > 0.05) {
    probe_say(x, "lse.alibi", FA_PROBE_UNTOLD, "", "LSE of the last row is %.6g (distance %.6g, column %.6g)",
              got, distance, column);
    return;
  }
  x->r->found.contract.lse_alibi = is_column ? FA_LSE_ALIBI_COLUMN : FA_LSE_ALIBI_DISTANCE;
  x->r->found.contract_given |= FA_CONTRACT_LSE_ALIBI;
  probe_say(x, "lse.alibi", FA_PROBE_CERTAIN, fa_lse_alibi_name(x->r->found.contract.lse_alibi),
            "causal, slope 1/8: LSE of the last row is %.6g (distance %.6g, column %.6g)", got, distance,
            column);
}

void probe_alibi(probe *x) {
  probe_ask a;
  if (!ask_alibi(&a, x, false)) {
    probe_say_not_asked(x, "alibi", a.why);
  } else {
    int best = 0;
    for (int f = 0; f < N_FORMS; ++f)
      if (distance_from(&a, (form)f, 20, KEYS) < distance_from(&a, (form)best, 20, KEYS)) best = f;
    const double off = distance_from(&a, (form)best, 20, KEYS);
    probe_say_convention(
        x, "alibi", FA_PROBE_CERTAIN, off < 0.15 ? form_names[best] : "other", form_names[DISTANCE],
        "slope 1/8, row 20 of 48 over 64 keys: ln P is off by at most %.2g (the other forms: %.2g and more)",
        off,
        fmin(distance_from(&a, best == DISTANCE ? GROWING : DISTANCE, 20, KEYS),
             distance_from(&a, best == NO_SHIFT ? COLUMN : NO_SHIFT, 20, KEYS)));
  }
  ask_end(&a);
}

void probe_alibi_lse(probe *x) {
  probe_ask a;
  if (!probe_reads_lse(x)) return;
  if (ask_alibi(&a, x, true)) say_lse(x, &a);
  ask_end(&a);
}
