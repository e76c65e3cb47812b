#include "fuzz/generate/operators.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 4000, MOST_USED = 2 };

/* Each has a value at every pair, and no rounding decides an int: the arguments of int and ceil stay away from whole
 * numbers. "%s" is the expression so far. */
static const char *const score_forms[] = {
    "(%s + 0.25 * erf(score))",
    "(%s * (0.5 + sigmoid(score)))",
    "(%s + 0.1 * floormod(q_idx - kv_idx, 7))",
    "(%s - 0.05 * floordiv(kv_idx - q_idx, 3))",
    "(%s + 0.1 * floormod(kv_idx - q_idx, -5))",
    "(%s - 0.1 * pow(1.0 + abs(q_idx - kv_idx), 0.5))",
    "(%s + 0.05 * pow(min(max(score, -4.0), 4.0), 2.0))",
    "(%s + 0.05 * pow(1.0 + abs(tanh(score)), 1.0 + sigmoid(score)))",
    "(%s + 0.02 * float((q_idx ^ kv_idx) & 15))",
    "where(q_idx >> 2 == kv_idx >> 2, %s, 0.5 * %s)",
    "(%s + 0.1 * ((kv_idx << 1 | 1) & 7))",
    "(%s + 0.05 * (~kv_idx & 3))",
    "(%s - 0.01 * int(0.25 * kv_idx + 0.125))",
    "(%s + 0.01 * ceil(0.25 * (q_idx - kv_idx) + 0.125))",
    "(%s - sigmoid(%s))",
};
static const char *const mask_forms[] = {
    "(%s) & ((q_idx ^ kv_idx) < 96)",
    "(%s) | (floormod(q_idx - kv_idx, 5) == 0)",
    "(%s) ^ ((kv_idx & 7) == 3)",
    "(%s) & ~((kv_idx >> 2 & 3) == 1)",
    "where(h & 1, %s, floordiv(q_idx - kv_idx, 4) >= 0)",
    "(%s) & (floormod(kv_idx - q_idx, 9) < 6)",
    "(%s) && int(0.25 * kv_idx + 0.125) != 2",
    "(%s) | (1 << (q_idx & 15) > kv_idx)",
};

static char *wrap(const char *form, char *text) {
  char *longer = malloc(LONGEST);
  if (!longer) {
    free(text);
    return NULL;
  }
/* the only conversions in a form are %s, twice at most */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  const int n = snprintf(longer, LONGEST, form, text, text);
#pragma GCC diagnostic pop
  const bool fits = n > 0 && n < LONGEST;
  free(fits ? text : longer);
  return fits ? longer : text;
}

char *fa_gen_operators(const fa_gen *g, fa_expr_kind kind, char *text) {
  fa_rng r = fa_gen_rng(g, kind == FA_EXPR_SCORE_MOD ? FA_GEN_SCORE_OPERATORS : FA_GEN_MASK_OPERATORS);
  const char *const *forms = kind == FA_EXPR_SCORE_MOD ? score_forms : mask_forms;
  const int64_t n_forms =
      (int64_t)(kind == FA_EXPR_SCORE_MOD ? sizeof score_forms : sizeof mask_forms) / (int64_t)sizeof *forms;
  if (!text || !fa_rng_chance(&r, 0.35)) return text;
  for (int64_t n = fa_rng_range(&r, 1, MOST_USED); text && n > 0; --n)
    text = wrap(forms[fa_rng_below(&r, n_forms)], text);
  return text;
}
