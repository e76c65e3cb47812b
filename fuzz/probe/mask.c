/* Which keys a row sees. With V the identity and all scores equal, O is P itself. */
#include "fuzz/probe/questions.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 48, KEYS = 64, SHIFT = KEYS - ROWS };

/* Asks with this mask. seen[i]: first and last visible key of each row; -1: none. */
static bool ask_seen(probe *x, fa_mask mask, int64_t seen[ROWS][2], int64_t *shift, char *why, size_t size) {
  probe_ask a;
  bool good = ask_begin(&a, x, FA_PASS_FORWARD, 1, ROWS, KEYS);
  a.c.problem.mask = mask;
  a.any_align = true;
  good = good && ask_build(&a, KEYS);
  for (int64_t j = 0; good && j < KEYS; ++j) ask_set(&a, FA_T_V, j, 0, j, 1.0);
  good = good && ask_run(&a);
  for (int64_t i = 0; good && i < ROWS; ++i) {
    seen[i][0] = seen[i][1] = -1;
    for (int64_t j = 0; j < KEYS; ++j) {
      if (!(ask_get(&a, FA_T_O, i, 0, j) > 0)) continue;
      if (seen[i][0] < 0) seen[i][0] = j;
      seen[i][1] = j;
    }
  }
  *shift = a.c.problem.mask.align == FA_ALIGN_TOP_LEFT ? 0 : SHIFT;
  if (!good) snprintf(why, size, "%s", a.why);
  ask_end(&a);
  return good;
}

static bool is_causal(int64_t seen[ROWS][2], int64_t shift, int64_t more) {
  for (int64_t i = 0; i < ROWS; ++i) {
    const int64_t last = i + shift + more;
    if (seen[i][1] != (last < 0 ? -1 : last < KEYS - 1 ? last : KEYS - 1)) return false;
  }
  return true;
}

static void say_corner(probe *x, int64_t seen[ROWS][2], int64_t shift) {
  static const struct {
    const char *name;
    int64_t shift, more;
  } ways[] = {{"bottom right", SHIFT, 0},           {"top left", 0, 0},
              {"bottom right, one more", SHIFT, 1}, {"bottom right, one fewer", SHIFT, -1},
              {"top left, one more", 0, 1},         {"top left, one fewer", 0, -1}};
  const char *expected = shift ? "bottom right" : "top left", *value = "other";
  for (size_t w = 0; w < sizeof ways / sizeof *ways; ++w)
    if (is_causal(seen, ways[w].shift, ways[w].more)) value = ways[w].name;
  probe_say_convention(
      x, "mask corner", FA_PROBE_CERTAIN, value, expected,
      "causal, 48 rows over 64 keys: row 10 sees up to key %lld (bottom right 26, top left 10)",
      (long long)seen[10][1]);
}

void probe_keys(probe *x) {
  char why[256] = "", value[64];
  int64_t seen[ROWS][2], shift;
  if (ask_seen(x, (fa_mask){.type = FA_MASK_NONE, .left = -1, .right = -1}, seen, &shift, why, sizeof why)) {
    snprintf(value, sizeof value, "%lld to %lld", (long long)seen[0][0], (long long)seen[0][1]);
    probe_say_convention(x, "keys", FA_PROBE_CERTAIN, value, "0 to 63", "no mask, 64 keys: row 0 sees these");
  }
  if (ask_seen(x, (fa_mask){.type = FA_MASK_CAUSAL, .left = -1, .right = -1}, seen, &shift, why, sizeof why))
    say_corner(x, seen, shift);
  else
    probe_say_not_asked(x, "mask corner", why);
  fa_mask window = {.type = FA_MASK_WINDOW, .left = 5, .right = 3};
  if (!ask_seen(x, window, seen, &shift, why, sizeof why)) {
    probe_say_not_asked(x, "window", why);
    return;
  }
  const int64_t at = 20 + shift;
  snprintf(value, sizeof value, "left %lld, right %lld", (long long)(at - seen[20][0]),
           (long long)(seen[20][1] - at));
  probe_say_convention(x, "window", FA_PROBE_CERTAIN, value, "left 5, right 3",
                       "window (5, 3): row 20, whose diagonal is key %lld, sees keys %lld to %lld",
                       (long long)at, (long long)seen[20][0], (long long)seen[20][1]);
}

/* Row i has key 1 with a score, and 63 keys with score 0: the LSE tells the score; or P1 / P0, if P is not too coarse. */
static double score_of(const probe_ask *a, int64_t i) {
  const double lse = ask_natural_lse(a, 0, i);
  if (isfinite(lse)) return log(exp(lse) - (KEYS - 1));
  return log(ask_get(a, FA_T_O, i, 0, 1) / ask_get(a, FA_T_O, i, 0, 0));
}

void probe_scale(probe *x) {
  probe_ask a;
  if (ask_begin(&a, x, FA_PASS_FORWARD, 1, KEYS, KEYS) && ask_build(&a, KEYS)) {
    for (int64_t j = 0; j < KEYS; ++j) ask_set(&a, FA_T_V, j, 0, j, 1.0);
    ask_set(&a, FA_T_Q, 0, 0, 0, 48.0);
    ask_set(&a, FA_T_K, 1, 0, 0, 1.0);
    if (ask_run(&a)) {
      const double ratio = score_of(&a, 0) / 6.0;
      char value[64] = "as asked";
      if (!(fabs(ratio - 1) < 0.002)) snprintf(value, sizeof value, "%.4g of it", ratio);
      probe_say_convention(x, "scale", FA_PROBE_CERTAIN, value, "as asked",
                           "q k = 48, scale 1/8: the score is %.6g (6)", 6 * ratio);
      ask_end(&a);
      return;
    }
  }
  probe_say_not_asked(x, "scale", a.why);
  ask_end(&a);
}

void probe_softcap(probe *x) {
  probe_ask a;
  if (ask_begin(&a, x, FA_PASS_FORWARD, 1, KEYS, KEYS)) {
    a.c.problem.softcap = 2.0;
    if (ask_build(&a, KEYS)) {
      for (int64_t j = 0; j < KEYS; ++j) ask_set(&a, FA_T_V, j, 0, j, 1.0);
      ask_set(&a, FA_T_Q, 0, 0, 0, 32.0);
      ask_set(&a, FA_T_K, 1, 0, 0, 1.0);
      if (ask_run(&a)) {
        const double s = score_of(&a, 0);
        const double after = 2 * tanh(2.0), before = 2 * tanh(16.0) / 8;
        const char *value = fabs(s - after) < 0.1    ? "after the scale"
                            : fabs(s - before) < 0.1 ? "before the scale"
                            : fabs(s - 4) < 0.1      ? "ignored"
                                                     : "other";
        probe_say_convention(
            x, "softcap", FA_PROBE_CERTAIN, value, "after the scale",
            "q k = 32, scale 1/8, cap 2: score %.5g (after the scale %.5g, before %.5g, none 4)", s, after,
            before);
        ask_end(&a);
        return;
      }
    }
  }
  probe_say_not_asked(x, "softcap", a.why);
  ask_end(&a);
}

void probe_gqa(probe *x) {
  probe_ask a;
  if (ask_begin(&a, x, FA_PASS_FORWARD, 4, KEYS, KEYS)) {
    a.c.problem.heads_kv = 2;
    if (ask_build(&a, KEYS)) {
      for (int64_t j = 0; j < KEYS; ++j)
        for (int64_t h = 0; h < 2; ++h) ask_set(&a, FA_T_V, j, h, 0, (double)h);
      if (ask_run(&a)) {
        char read[8] = "";
        for (int64_t h = 0; h < 4; ++h) read[h] = ask_get(&a, FA_T_O, 0, h, 0) > 0.5 ? '1' : '0';
        const char *value = strcmp(read, "0011") == 0   ? "h / group"
                            : strcmp(read, "0101") == 0 ? "h % heads_kv"
                                                        : "other";
        probe_say_convention(x, "gqa", FA_PROBE_CERTAIN, value, "h / group",
                             "four heads over two: they read %s (h / group 0011, h %% heads_kv 0101)", read);
        ask_end(&a);
        return;
      }
    }
  }
  probe_say_not_asked(x, "gqa", a.why);
  ask_end(&a);
}
