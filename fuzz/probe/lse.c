/* The LSE's conventions, and rows without a key. */
#include "fuzz/probe/questions.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG2_E 1.44269504088896340736

/* Few rows and keys first: some subjects are slow, and some take whole tiles only. */
static const int64_t sizes[] = {8, 64};

static void note_outputs(probe *x, const probe_ask *a, bool backward, char *missing) {
  static const fa_tensor_id ids[] = {FA_T_O, FA_T_LSE, FA_T_DQ, FA_T_DK, FA_T_DV};
  for (int i = 0; i < (backward ? 5 : 2); ++i) {
    if (!ask_is_unwritten(a, ids[i])) continue;
    x->r->found.contract.outputs &= ~FA_TENSOR_BIT(ids[i]);
    strcat(missing, missing[0] ? " " : "");
    strcat(missing, fa_tensor_id_name(ids[i]));
  }
  x->has_lse = !ask_is_unwritten(a, FA_T_LSE);
  x->has_backward = backward;
  x->way = a->way;
  x->r->usable = true;
  x->r->found.contract_given |= FA_CONTRACT_OUTPUTS;
}

/* The first calls, until one works: with a backward and without, with few keys and with more. */
enum { N_TRIES = 4, FIRST_FORWARD = 2 };

static void note_failure(probe *x, const char *why) {
  if (!x->why[0] || x->tries == FIRST_FORWARD) snprintf(x->why, sizeof x->why, "%s", why);
  ++x->tries;
  if (x->tries == N_TRIES) memcpy(x->r->why_not, x->why, sizeof x->why);
}

bool probe_skip_first_try(probe *x, const char *reason) {
  note_failure(x, reason);
  return x->tries < N_TRIES;
}

static bool try_first_call(probe *x, char *missing) {
  probe_ask a;
  const bool backward = x->tries < FIRST_FORWARD;
  const unsigned passes = FA_PASS_FORWARD | (backward ? FA_PASS_BACKWARD : 0);
  x->few = sizes[x->tries % 2];
  const bool good = ask_begin(&a, x, passes, 1, x->few, x->few) && ask_build(&a, 64) && ask_run(&a);
  if (good)
    note_outputs(x, &a, backward, missing);
  else
    note_failure(x, a.why);
  ask_end(&a);
  return good;
}

void probe_outputs(probe *x) {
  char missing[64] = "";
  while (x->tries < N_TRIES && !try_first_call(x, missing)) {}
  if (!x->r->usable) return;
  probe_say(x, "outputs", FA_PROBE_CERTAIN, missing[0] ? missing : "all", "%s%s%s",
            missing[0] ? "these were not written" : "every output was written",
            x->has_backward ? "" : "; no backward: ", x->has_backward ? "" : x->why);
  if (x->way != probe_way_at(0))
    probe_say(x, "asked as", FA_PROBE_CERTAIN, x->way->name, "the first kind of call that it takes");
}

/* What the LSE in the harness's conventions is multiplied by. */
static double factor_of(const fa_contract *c) {
  return (c->lse_base_2 ? LOG2_E : 1.0) * (c->lse_unscaled ? 1.0 / PROBE_SCALE : 1.0);
}

static void say_lse(probe *x, double flat, double rise) {
  const double declared = factor_of(&x->declared.contract);
  for (int way = 0; way < 4; ++way) {
    fa_contract c = {.lse_base_2 = way & 1, .lse_unscaled = way & 2};
    const double want = factor_of(&c) / declared;
    if (fabs(flat / want - 1) > 0.02 || fabs(rise / want - 1) > 0.02) continue;
    x->lse_factor = want;
    x->r->found.contract.lse_base_2 = c.lse_base_2;
    x->r->found.contract.lse_unscaled = c.lse_unscaled;
    x->r->found.contract_given |= FA_CONTRACT_LSE_BASE | FA_CONTRACT_LSE_UNSCALED;
    probe_say(x, "lse.base", FA_PROBE_CERTAIN, c.lse_base_2 ? "2" : "e",
              "equal scores of 0 and of 8, %d keys: LSE / ln of that is %.6g, its rise / 8 is %.6g (natural "
              "1, base 2: 1.44270)",
              (int)x->few, flat * declared, rise * declared);
    probe_say(x, "lse.scaled", FA_PROBE_CERTAIN, c.lse_unscaled ? "false" : "true",
              "the same, scale 1/8: a factor of %.6g (unscaled: 8)", rise * declared);
    return;
  }
  probe_say(x, "lse.base", FA_PROBE_UNTOLD, "",
            "LSE / ln of the number of keys is %.6g and its rise / 8 is %.6g: neither base e nor base 2",
            flat * declared, rise * declared);
}

void probe_lse(probe *x) {
  probe_ask a;
  if (!x->has_lse) {
    probe_say_not_asked(x, "lse.base", "there is no LSE");
    return;
  }
  if (ask_begin(&a, x, FA_PASS_FORWARD, 1, x->few, x->few) && ask_build(&a, 64)) {
    ask_set(&a, FA_T_Q, 1, 0, 0, 64.0);
    for (int64_t j = 0; j < x->few; ++j) ask_set(&a, FA_T_K, j, 0, 0, 1.0);
    if (ask_run(&a)) {
      const double zero = ask_lse(&a, 0, 0), eight = ask_lse(&a, 0, 1);
      say_lse(x, zero / log((double)x->few), (eight - zero) / 8.0);
      ask_end(&a);
      return;
    }
  }
  probe_say_not_asked(x, "lse.base", a.why);
  ask_end(&a);
}

/* ---- rows without a key ---- */

typedef struct empty_answer {
  bool asked, empty,
      unmasked; /* unmasked: O is what it would be if the row saw every key, and so is the LSE */
  double o, lse;
  fa_empty_lse wanted;
  const char *how;
} empty_answer;

/* The first rows of a causal call with more rows than keys, or rows whose keys do not exist. */
static void set_empty(probe_ask *a, int how) {
  if (how == 0) a->c.problem.mask.type = FA_MASK_CAUSAL;
  a->no_keys = how == 1;
}

/* Scores grow by 1/4 from key to key, and values by 1: the mean of V, O of all keys and O of key 0 are different numbers. */
static void set_ramp(probe_ask *a) {
  for (int64_t i = 0; i < a->rows; ++i) ask_set(a, FA_T_Q, i, 0, 0, 64.0);
  for (int64_t j = 0; j < a->keys; ++j) {
    ask_set(a, FA_T_K, j, 0, 0, (double)j / 32.0);
    ask_set(a, FA_T_V, j, 0, 0, 1.0 + (double)j);
  }
}

static bool is_unmasked(const probe *x, const empty_answer *e) {
  double sum = 0, o = 0;
  for (int64_t j = 0; j < x->few; ++j) {
    sum += exp((double)j / 4.0);
    o += exp((double)j / 4.0) * (1.0 + (double)j);
  }
  const bool lse_too = !(x->lse_factor > 0) || fabs(e->lse / x->lse_factor - log(sum)) < 0.1;
  return fabs(e->o / (o / sum) - 1) < 0.01 && lse_too;
}

static empty_answer ask_empty(probe *x, int how, bool turned, char *why, size_t size) {
  empty_answer e = {.how = how == 0 ? "causal, more rows than keys, row 0" : "no key is used"};
  probe_ask a;
  bool good = ask_begin(&a, x, FA_PASS_FORWARD, 1, 2 * x->few, x->few);
  set_empty(&a, how);
  good = good && ask_build(&a, 64);
  if (good) {
    if (turned)
      a.c.problem.empty_lse = a.c.problem.empty_lse == FA_EMPTY_ZERO ? FA_EMPTY_NEG_INF : FA_EMPTY_ZERO;
    e.wanted = a.c.problem.empty_lse;
    set_ramp(&a);
    e.asked = ask_run(&a);
    e.o = ask_get(&a, FA_T_O, 0, 0, 0);
    e.lse = ask_lse(&a, 0, 0);
    e.empty = !(fabs(e.o - 1.0) <= 0.01); /* the row sees key 0: the mask has another corner */
    e.unmasked = is_unmasked(x, &e);
  }
  if (!e.asked) snprintf(why, size, "%s", a.why);
  ask_end(&a);
  return e;
}

static fa_lse_of_empty class_of(double lse) {
  if (isnan(lse)) return FA_LSE_EMPTY_NAN;
  if (isinf(lse)) return lse > 0 ? FA_LSE_EMPTY_POS_INF : FA_LSE_EMPTY_NEG_INF;
  return lse == 0 ? FA_LSE_EMPTY_ZERO : FA_LSE_EMPTY_ANY;
}

static fa_lse_of_empty wanted_class(fa_empty_lse wanted) {
  static const fa_lse_of_empty classes[] = {[FA_EMPTY_POS_INF] = FA_LSE_EMPTY_POS_INF,
                                            [FA_EMPTY_NEG_INF] = FA_LSE_EMPTY_NEG_INF,
                                            [FA_EMPTY_ZERO] = FA_LSE_EMPTY_ZERO};
  return classes[wanted];
}

static void say_empty_o(probe *x, const empty_answer *e) {
  const double mean = ((double)x->few + 1) / 2.0;
  const fa_o_of_empty o = e->o == 0                      ? FA_O_EMPTY_ZERO
                          : isnan(e->o)                  ? FA_O_EMPTY_NAN
                          : fabs(e->o / mean - 1) < 0.02 ? FA_O_EMPTY_MEAN_V
                                                         : FA_O_EMPTY_ANY;
  x->r->found.contract.o_of_empty = o;
  x->r->found.contract_given |= FA_CONTRACT_O_OF_EMPTY;
  probe_say(x, "empty_o", FA_PROBE_CERTAIN, fa_o_of_empty_name(o), "%s: O is %.6g (the mean of V is %g)",
            e->how, e->o, mean);
}

static void say_empty_lse(probe *x, int how, const empty_answer *e) {
  char why[256];
  fa_lse_of_empty lse = class_of(e->lse);
  if (lse == wanted_class(e->wanted)) {
    const empty_answer turned = ask_empty(x, how, true, why, sizeof why);
    if (turned.asked && class_of(turned.lse) == wanted_class(turned.wanted)) lse = FA_LSE_EMPTY_AS_CASE;
  }
  x->r->found.contract.lse_of_empty = lse;
  x->r->found.contract_given |= FA_CONTRACT_LSE_OF_EMPTY;
  probe_say(x, "lse.empty", FA_PROBE_CERTAIN, fa_lse_of_empty_name(lse), "%s: LSE is %.6g%s", e->how, e->lse,
            lse == FA_LSE_EMPTY_AS_CASE ? ", and 0 or -inf where the case asks for that" : "");
}

/* No value to declare: the mask is missing. */
static void say_unmasked(probe *x, const empty_answer *e) {
  probe_say_convention(x, "empty rows", FA_PROBE_CERTAIN, "see every key", "see no key",
                       "%s: O is %.6g and the LSE %.6g, as if the row saw all keys", e->how, e->o, e->lse);
}

void probe_empty_rows(probe *x) {
  char why[256] = "";
  for (int how = 0; how < 2; ++how) {
    const empty_answer e = ask_empty(x, how, false, why, sizeof why);
    if (!e.asked || !e.empty) continue;
    if (e.unmasked) {
      say_unmasked(x, &e);
      continue;
    }
    say_empty_o(x, &e);
    if (x->has_lse) say_empty_lse(x, how, &e);
    return;
  }
  probe_say_not_asked(x, "empty_o", why[0] ? why : "no row was treated as one without a key");
}
