/* Dropout's generator, told by which pairs survive. */
#include "fuzz/probe/questions.h"

#include "ref/engine/dropout.h"

#include <math.h>
#include <string.h>

enum { ROWS = 64, KEYS = 64, HEADS = 2 };
#define P_DROP 0.3
#define SEED 0x123456789abcdefull

static bool keeps_flash(int rounds, int64_t h, int64_t i, int64_t j, bool strict) {
  const int64_t r = i % 16, c = j % 32, lane = (r % 8) * 4 + (c % 8) / 2;
  const int64_t byte = (c / 8) * 4 + (r / 8) * 2 + (c & 1);
  const uint32_t counter[4] = {(uint32_t)(h * 32 + lane), 0, (uint32_t)(i / 16), (uint32_t)(j / 32)};
  const uint32_t last = (uint32_t)floor((double)(1.0f - (float)P_DROP) * 255.0);
  uint32_t out[4];
  fa_ref_philox(SEED, rounds, counter, out);
  const uint32_t drawn = out[byte / 4] >> (8 * (byte % 4)) & 255;
  return strict ? drawn < last : drawn <= last;
}

static bool keeps_memeff(int rounds, int64_t h, int64_t i, int64_t j, bool strict) {
  const uint64_t n = (uint64_t)((h * ROWS + i) * KEYS + j);
  const uint32_t counter[4] = {(uint32_t)(n / 4), 0, 0, 0};
  uint32_t out[4];
  fa_ref_philox(SEED, rounds, counter, out);
  const float u = (float)out[n % 4] * 0x1p-32f + 0x1p-33f;
  return strict ? u <= 1.0f - (float)P_DROP : u > (float)P_DROP;
}

typedef struct scheme {
  const char *name;
  bool memeff;
  int rounds;
  bool strict; /* the other rule of keeping */
} scheme;

static const scheme schemes[] = {
    {"flash, 7 rounds", false, 7, false},          {"flash, 10 rounds", false, 10, false},
    {"memeff, 10 rounds", true, 10, false},        {"memeff, 7 rounds", true, 7, false},
    {"flash, 7 rounds, byte < T", false, 7, true}, {"memeff, 10 rounds, u <= 1 - p", true, 10, true}};

/* Share of pairs on which the scheme and the answer agree. */
static double agreement(const probe_ask *a, const scheme *s) {
  int64_t same = 0;
  for (int64_t h = 0; h < HEADS; ++h)
    for (int64_t i = 0; i < ROWS; ++i)
      for (int64_t j = 0; j < KEYS; ++j) {
        const bool want = s->memeff ? keeps_memeff(s->rounds, h, i, j, s->strict)
                                    : keeps_flash(s->rounds, h, i, j, s->strict);
        same += want == (ask_get(a, FA_T_O, i, h, j) > 0);
      }
  return (double)same / (HEADS * ROWS * KEYS);
}

static void say_scheme(probe *x, const probe_ask *a) {
  const bool memeff = a->c.problem.family == FA_MEMEFF;
  const scheme *best = &schemes[0];
  double kept = 0, at_best = 0;
  for (size_t s = 0; s < sizeof schemes / sizeof *schemes; ++s) {
    const double same = agreement(a, &schemes[s]);
    if (same > at_best) at_best = same, best = &schemes[s];
  }
  for (int64_t i = 0; i < ROWS; ++i)
    for (int64_t j = 0; j < KEYS; ++j) kept += (ask_get(a, FA_T_O, i, 0, j) > 0) / (double)(ROWS * KEYS);
  probe_say_convention(x, "dropout", FA_PROBE_CERTAIN, at_best == 1 ? best->name : "other",
                       memeff ? "memeff, 10 rounds" : "flash, 7 rounds",
                       "p = 0.3, 8192 pairs, %.1f %% kept: %s agrees on %.2f %%; by chance 58 %%", 100 * kept,
                       best->name, 100 * at_best);
}

void probe_dropout(probe *x) {
  probe_ask a;
  if (ask_begin(&a, x, FA_PASS_FORWARD, HEADS, ROWS, KEYS)) {
    a.c.problem.dropout.p = P_DROP;
    a.c.problem.dropout.seed = SEED;
    if (ask_build(&a, KEYS)) {
      for (int64_t h = 0; h < HEADS; ++h)
        for (int64_t j = 0; j < KEYS; ++j) ask_set(&a, FA_T_V, j, h, j, 1.0);
      if (ask_run(&a)) {
        say_scheme(x, &a);
        ask_end(&a);
        return;
      }
    }
  }
  probe_say_not_asked(x, "dropout", a.why);
  ask_end(&a);
}
