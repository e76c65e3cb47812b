/* Dropout. */
#include "fuzz/explain/hypothesis.h"

static bool has_dropout(const fa_failure *x) {
  return x->p->dropout.p > 0;
}

/* Where the forward is right, it is the backward that has none. */
static bool missing(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  m->p.dropout.p = 0;
  fa_mistake_say(m, "no dropout");
  return has_dropout(x) && (x->set & FA_BIT(FA_T_O));
}

static bool missing_in_backward(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  m->p.dropout.p = 0;
  fa_mistake_say(m, "no dropout in the backward");
  return has_dropout(x) && !(x->set & FA_BIT(FA_T_O));
}

static bool inverted(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  m->twist.drop_inverted = true;
  fa_mistake_say(m, "dropout drops what it should keep");
  return has_dropout(x);
}

static bool not_scaled(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  m->twist.drop_factor = 1;
  fa_mistake_say(m, "dropout without the factor 1 / (1 - p)");
  return has_dropout(x);
}

static bool scaled_twice(const fa_failure *x, int v, fa_mistake *m) {
  const double keep = 1 - x->p->dropout.p;
  static const char *const texts[] = {"dropout scaled twice", "dropout multiplied by 1 - p",
                                      "dropout multiplied by 1 / p"};
  const double by[] = {1 / keep / keep, keep, x->p->dropout.p > 0 ? 1 / x->p->dropout.p : 1};
  m->twist.drop_factor = by[v];
  fa_mistake_say(m, "%s", texts[v]);
  return has_dropout(x);
}

static bool other_rounds(const fa_failure *x, int v, fa_mistake *m) {
  static const int rounds[] = {7, 10, 6, 8, 9};
  const int right = x->p->family == FA_MEMEFF ? 10 : 7;
  m->twist.drop_rounds = rounds[v];
  fa_mistake_say(m, "dropout's generator with %d rounds instead of %d", rounds[v], right);
  return has_dropout(x) && rounds[v] != right;
}

static bool other_offset(const fa_failure *x, int v, fa_mistake *m) {
  static const int64_t by[] = {1, -1, 4, -4, 2, 16, 32, -32}; /* 32: a head's numbers in flash's scheme */
  enum { N_BY = sizeof by / sizeof *by };
  fa_dropout *d = &m->p.dropout;
  if (v < N_BY) {
    d->offset += (uint64_t)by[v];
    fa_mistake_say(m, "dropout's offset %lld too %s", (long long)(by[v] < 0 ? -by[v] : by[v]),
                   by[v] < 0 ? "small" : "large");
  } else if (v == N_BY) {
    d->offset = 0;
    fa_mistake_say(m, "dropout's offset ignored");
  } else if (v == N_BY + 1) {
    d->offset &= 0xffffffffu;
    fa_mistake_say(m, "dropout's offset cut to 32 bits");
  } else {
    d->offset = x->p->dropout.seed;
    d->seed = x->p->dropout.offset;
    fa_mistake_say(m, "dropout's seed and offset exchanged");
  }
  return has_dropout(x) && (d->offset != x->p->dropout.offset || d->seed != x->p->dropout.seed);
}

const fa_hypothesis fa_hypotheses_of_dropout[] = {
    {"dropout_missing", "nothing is dropped", FA_OF_ALL, 1, missing},
    {"dropout_missing_in_backward", "the backward drops nothing", FA_OF_BACKWARD, 1, missing_in_backward},
    {"dropout_inverted", "what should be kept is dropped", FA_OF_ALL, 1, inverted},
    {"dropout_not_scaled", "what is kept lacks the factor 1 / (1 - p)", FA_OF_ALL, 1, not_scaled},
    {"dropout_scaled_twice", "what is kept has another factor than 1 / (1 - p)", FA_OF_ALL, 3, scaled_twice},
    {"dropout_other_rounds", "the generator has another number of rounds", FA_OF_ALL, 5, other_rounds},
    {"dropout_other_offset", "the generator starts elsewhere", FA_OF_ALL, 11, other_offset},
    {.name = NULL}};
