/* Where products are added up. Large numbers that cancel take with them what an accumulator cannot hold beside them. */
#include "fuzz/probe/format.h"
#include "fuzz/probe/questions.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { KEYS = 64, N_SIZES = 26 };

static const char *const names[] = {"f32", "mma", "narrow", "f16", "bf16"};

/* first_lost: the k at which units beside +-2^k begin to be lost. */
static fa_accumulator width_of(int first_lost) {
  return first_lost >= 18   ? FA_ACCUMULATOR_F32
         : first_lost >= 13 ? FA_ACCUMULATOR_NARROW
         : first_lost >= 11 ? FA_ACCUMULATOR_F16
                            : FA_ACCUMULATOR_BF16;
}

/* What became of 1.5 units of the last place beside 1, by its position: 2 units (nearest), 0 (cut), or 1.5 or 1
 * (apart: in the block where the 1 is gone again). */
typedef struct ends {
  int up, cut, apart, last_apart; /* last_apart: so many of the last positions */
} ends;

static ends count_ends(const double *units, int n) {
  ends e = {0};
  for (int i = 0; i < n; ++i) {
    const bool apart = units[i] > 0.8 && units[i] < 1.7;
    e.apart += apart;
    e.up += fabs(units[i] - 2) < 0.2;
    e.cut += fabs(units[i]) < 0.2;
    e.last_apart = apart ? e.last_apart + 1 : 0;
  }
  return e;
}

static void set_noise(probe *x, fa_accumulator width) {
  static const double noise[] = {0x1p-19, 0x1p-18, 0x1p-11, 0x1p-9, 0x1p-6};
  x->noise = fmax(x->noise, noise[width]);
}

static bool truncates(const ends *e) {
  return e->cut > e->up;
}

static void say(probe *x, const char *field, fa_accumulator width, int first_lost, const ends *e, int block,
                int extra) {
  char blocks[64] = "";
  if (block) snprintf(blocks, sizeof blocks, "; blocks of %d, %d extra bits", block, extra);
  set_noise(x, width);
  probe_say(x, field, FA_PROBE_CERTAIN, names[width],
            "units beside +-2^k are lost from k = %d (f32 24, narrow 14, f16 11, bf16 8); 1 + 1.5 ulp: up "
            "%d, cut %d, apart %d%s",
            first_lost, e->up, e->cut, e->apart, blocks);
}

/* ---- P V ---- */

static double unit_of(const probe *x) {
  const fa_format f = x->r->found.arithmetic.operand[FA_PRODUCT_PV];
  if (f == FA_FORMAT_E4M3) return 0x1p-6;
  return x->dtype == FA_F16 ? 0x1p-10 : 1.0;
}

static int pv_first_lost(probe *x, char *why, size_t size) {
  probe_ask a;
  int first = -1;
  const double unit = unit_of(x);
  const int most = unit == 0x1p-6 ? 14 : N_SIZES - 1;
  if (ask_begin(&a, x, FA_PASS_FORWARD, 1, KEYS, KEYS) && ask_build(&a, KEYS)) {
    for (int k = 0; k <= most; ++k) {
      for (int64_t j = 1; j < KEYS - 1; ++j) ask_set(&a, FA_T_V, j, 0, k, unit);
      ask_set(&a, FA_T_V, 0, 0, k, ldexp(unit, k));
      ask_set(&a, FA_T_V, KEYS - 1, 0, k, -ldexp(unit, k));
    }
    if (ask_run(&a))
      for (first = 0; first <= most; ++first)
        if (!(fabs(ask_get(&a, FA_T_O, 0, 0, first) * KEYS / unit - 62) < 0.6)) break;
  }
  if (first > most && unit == 0x1p-6) first = 24;
  if (first < 0) snprintf(why, size, "%s", a.why);
  ask_end(&a);
  return first;
}

static ends pv_ends(probe *x) {
  probe_ask a;
  ends e = {0};
  const double one = x->dtype == FA_F16 ? 0x1p14 : 1.0;
  if (ask_begin(&a, x, FA_PASS_FORWARD, 1, KEYS, KEYS) && ask_build(&a, KEYS)) {
    for (int64_t d = 0; d < KEYS - 2; ++d) {
      ask_set(&a, FA_T_V, 0, 0, d, one);
      ask_set(&a, FA_T_V, d + 1, 0, d, 1.5 * 0x1p-24 * one);
      ask_set(&a, FA_T_V, KEYS - 1, 0, d, -one);
    }
    if (ask_run(&a)) {
      double units[KEYS];
      for (int64_t d = 0; d < KEYS - 2; ++d) units[d] = ask_get(&a, FA_T_O, 0, 0, d) * KEYS / one * 0x1p24;
      e = count_ends(units, KEYS - 2);
    }
  }
  ask_end(&a);
  return e;
}

/* Column s: block - 1 products of 2^-(23+s) beside 1, in the block of key 0. The most s at which they count. */
static int pv_extra_bits(probe *x, int block) {
  probe_ask a;
  int extra = 0;
  const double one = x->dtype == FA_F16 ? 0x1p14 : 1.0;
  if (ask_begin(&a, x, FA_PASS_FORWARD, 1, KEYS, KEYS) && ask_build(&a, KEYS)) {
    for (int s = 1; s <= 4; ++s) {
      ask_set(&a, FA_T_V, 0, 0, s, one);
      ask_set(&a, FA_T_V, KEYS - 1, 0, s, -one);
      for (int64_t j = 1; j < block; ++j) ask_set(&a, FA_T_V, j, 0, s, ldexp(one, -23 - s));
    }
    if (ask_run(&a))
      while (extra < 4 && ask_get(&a, FA_T_O, 0, 0, extra + 1) > 0) ++extra;
  }
  ask_end(&a);
  return extra;
}

static int block_of(const ends *e) {
  const int n = e->last_apart + 1;
  return n >= 32 ? 32 : n >= 16 ? 16 : n >= 8 ? 8 : 4;
}

/* The products of the backward are taken to be added up like the forward's of the same kind. */
static void set_alike(probe *x, fa_accumulator width, const fa_product *products, int n) {
  for (int i = 0; i < n; ++i) x->r->found.arithmetic.accumulator[products[i]] = width;
}

static void set_pv(probe *x, fa_accumulator width) {
  static const fa_product alike[] = {FA_PRODUCT_PV, FA_PRODUCT_DV, FA_PRODUCT_DQ, FA_PRODUCT_DK};
  set_alike(x, width, alike, 4);
}

void probe_pv_accumulator(probe *x) {
  char why[256] = "";
  fa_arithmetic *found = &x->r->found.arithmetic;
  const int first = pv_first_lost(x, why, sizeof why);
  if (first < 0) {
    probe_say_not_asked(x, "accumulator_pv", why);
    return;
  }
  fa_accumulator width = width_of(first);
  ends e = {0};
  int block = 0, extra = 0;
  if (width == FA_ACCUMULATOR_F32) e = pv_ends(x);
  if (truncates(&e)) {
    width = FA_ACCUMULATOR_MMA;
    block = block_of(&e);
    extra = pv_extra_bits(x, block);
    found->mma_block = block;
    found->mma_extra_bits = extra;
  }
  set_pv(x, width);
  say(x, "accumulator_pv", width, first, &e, block, extra);
}

/* ---- Q K ---- */

/* Key k has +-2^k units that cancel, and units in all other dimensions; P against key 0, whose score is 0, tells how
 * many came through. */
static int qk_first_lost(probe *x, int most, char *why, size_t size) {
  probe_ask a;
  int first = -1;
  if (ask_begin(&a, x, FA_PASS_FORWARD, 1, KEYS, KEYS) && ask_build(&a, KEYS)) {
    const int64_t n = a.c.problem.head_dim;
    const double unit = 0.125;
    double got[N_SIZES], slack = x->dtype == FA_BF16 ? 0.9 : 0.6;
    for (int64_t d = 0; d < n; ++d) ask_set(&a, FA_T_Q, 0, 0, d, d == 0 || d == n - 1 ? 128.0 : 1.0);
    for (int64_t j = 0; j < KEYS; ++j) ask_set(&a, FA_T_V, j, 0, j, 1.0);
    for (int k = 1; k < most; ++k) {
      ask_set_range(&a, FA_T_K, k, 0, 1, n - 2, unit);
      ask_set(&a, FA_T_K, k, 0, 0, ldexp(unit, k - 7));
      ask_set(&a, FA_T_K, k, 0, n - 1, -ldexp(unit, k - 7));
    }
    if (ask_run(&a)) {
      for (int k = 1; k < most; ++k)
        got[k] = log(ask_get(&a, FA_T_O, 0, 0, k) / ask_get(&a, FA_T_O, 0, 0, 0)) / PROBE_SCALE / unit -
                 (double)(n - 2);
      /* Nothing is lost below 2^4: what is off there is the reading, through a coarse P. */
      for (int k = 1; k <= 4; ++k) slack = fmax(slack, 3 * fabs(got[k]));
      for (first = 1; first < most && fabs(got[first]) < slack; ++first) {}
    }
  }
  if (first < 0) snprintf(why, size, "%s", a.why);
  ask_end(&a);
  return first;
}

static ends qk_ends(probe *x) {
  probe_ask a;
  ends e = {0};
  if (ask_begin(&a, x, FA_PASS_FORWARD, 1, KEYS, KEYS) && ask_build(&a, KEYS)) {
    const int64_t n = a.c.problem.head_dim;
    double units[KEYS];
    for (int64_t j = 0; j < KEYS; ++j) ask_set(&a, FA_T_V, j, 0, j, 1.0);
    for (int64_t d = 1; d < n - 1; ++d) ask_set(&a, FA_T_Q, 0, 0, d, 1.0);
    ask_set(&a, FA_T_Q, 0, 0, 0, 0x1p13);
    ask_set(&a, FA_T_Q, 0, 0, n - 1, 0x1p13);
    for (int64_t j = 1; j < KEYS - 1; ++j) {
      ask_set(&a, FA_T_K, j, 0, 0, 0x1p13);
      ask_set(&a, FA_T_K, j, 0, n - 1, -0x1p13);
      ask_set(&a, FA_T_K, j, 0, n - KEYS + j, 6.0);
    }
    if (ask_run(&a)) {
      for (int64_t j = 1; j < KEYS - 1; ++j)
        units[j - 1] = log(ask_get(&a, FA_T_O, 0, 0, j) / ask_get(&a, FA_T_O, 0, 0, 0)) / PROBE_SCALE / 4;
      e = count_ends(units, KEYS - 2);
    }
  }
  ask_end(&a);
  return e;
}

void probe_qk_accumulator(probe *x) {
  static const fa_product alike[] = {FA_PRODUCT_QK, FA_PRODUCT_DP};
  char why[256] = "";
  if (probe_hides_small(x, FA_PRODUCT_QK)) {
    probe_say_not_asked(x, "accumulator_qk",
                        "QK's operands are too coarse for small numbers beside large ones");
    return;
  }
  int first = qk_first_lost(x, 16, why,
                            sizeof why); /* larger ones would overflow a narrow accumulator, for all rows */
  if (first == 16) first = qk_first_lost(x, N_SIZES, why, sizeof why);
  if (first < 0) {
    probe_say_not_asked(x, "accumulator_qk", why);
    return;
  }
  fa_accumulator width = width_of(first);
  ends e = {0};
  int block = 0;
  if (width == FA_ACCUMULATOR_F32) e = qk_ends(x);
  if (truncates(&e)) {
    width = FA_ACCUMULATOR_MMA;
    block = block_of(&e);
    if (!x->r->found.arithmetic.mma_block) x->r->found.arithmetic.mma_block = block;
  }
  set_alike(x, width, alike, 2);
  say(x, "accumulator_qk", width, first, &e, block, x->r->found.arithmetic.mma_extra_bits);
}
