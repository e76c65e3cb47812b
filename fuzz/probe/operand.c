/* What operands that come from memory are rounded to before they are multiplied: 1 + 2^-k goes through a product
 * that leaves it alone, and comes back whole or not. */
#include "fuzz/probe/format.h"
#include "fuzz/probe/questions.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
  KEYS = 64,
  N_BITS = 23,
  PAIR = 30 /* 1 + 2^-12 + 2^-23: three tf32 products lose the end */,
  QUARTERS = 24
};
static const int quarter_bits[] = {2, 3, 7,
                                   10}; /* columns from QUARTERS on: 1 + 3/4 of the last of so many bits */

static bool is_representable(const probe *x, double v) {
  return probe_round(v, FA_FORMAT_IO, FA_ROUND_NEAREST, x->dtype) == v;
}

static double vector_at(const probe *x, int64_t d) {
  double v = 1.0;
  if (d >= 1 && d <= N_BITS) v = 1.0 + ldexp(1.0, -(int)d);
  if (d >= QUARTERS && d < QUARTERS + 4) v = 1.0 + 0.75 * ldexp(1.0, -quarter_bits[d - QUARTERS]);
  if (d == PAIR) v = 1.0 + 0x1p-12 + 0x1p-23;
  return is_representable(x, v) ? v : 1.0;
}

static void set_vector(probe_ask *a, fa_tensor_id id, int64_t s, int64_t first) {
  for (int64_t d = 0; d <= PAIR; ++d) ask_set(a, id, s, 0, first + d, vector_at(a->x, d));
}

/* How many of the bits k = 1, 2 ... came through, of those that the element type has. */
static int bits_kept(const probe *x, const bool *kept) {
  const int most = probe_fraction_bits(FA_FORMAT_IO, x->dtype);
  int k = 0;
  while (k < most && kept[k + 1]) ++k;
  return k;
}

static fa_format format_of_bits(const probe *x, int bits, bool pair_lost, bool overflows) {
  if (bits == probe_fraction_bits(FA_FORMAT_IO, x->dtype) && x->dtype != FA_F32)
    return overflows ? FA_FORMAT_F16 : FA_FORMAT_IO;
  if (bits >= N_BITS) return pair_lost ? FA_FORMAT_3XTF32 : FA_FORMAT_IO;
  if (bits >= 19) return FA_FORMAT_3XTF32;
  if (bits >= 10) return overflows ? FA_FORMAT_F16 : FA_FORMAT_TF32;
  if (bits >= 7) return FA_FORMAT_BF16;
  if (bits == 3) return FA_FORMAT_E4M3;
  return bits == 2 ? FA_FORMAT_E5M2
                   : FA_FORMAT_INT8; /* whole numbers, with a step that depends on their block */
}

static void say(probe *x, fa_product product, const char *field, int bits, fa_format f, int truncated,
                const char *how) {
  char value[64];
  x->r->found.arithmetic.operand[product] = f;
  snprintf(value, sizeof value, "%s", probe_format_name(f));
  if (truncated > 0) x->r->found.arithmetic.operand_rounding = FA_ROUND_TRUNCATE;
  if (truncated > 0) strcat(value, ", truncated");
  probe_say(x, field, f == FA_FORMAT_INT8 ? FA_PROBE_LIKELY : FA_PROBE_CERTAIN, value,
            "%s: 1 + 2^-k comes back whole up to k = %d of %d%s%s", how, bits,
            probe_fraction_bits(FA_FORMAT_IO, x->dtype),
            truncated < 0 ? ""
            : truncated   ? "; 1 + 3/4 of that bit is cut"
                          : "; 1 + 3/4 of it rounds up",
            f == FA_FORMAT_3XTF32 ? "; 1 + 2^-12 + 2^-23 does not" : "");
}

/* Reads the vector back from row s of an output, where it stands times a factor, which is that of column 0. In gradients
 * the factor is no power of two, and the last bits say nothing: there they are taken to be as in the forward. */
static void read_vector(probe_ask *a, fa_product product, const char *field, fa_tensor_id id, int64_t s,
                        int64_t first, bool exact, bool overflows, const char *how) {
  probe *x = a->x;
  bool kept[N_BITS + 2] = {false};
  int truncated = -1;
  const double one = ask_get(a, id, s, 0, first);
  for (int64_t k = 1; k <= N_BITS; ++k)
    kept[k] = fabs(ask_get(a, id, s, 0, first + k) / one - vector_at(x, k)) < 0.3 * ldexp(1.0, (int)-k);
  int bits = bits_kept(x, kept);
  bool pair_lost = fabs(ask_get(a, id, s, 0, first + PAIR) / one - vector_at(x, PAIR)) > 0x1p-25;
  const int most = probe_fraction_bits(FA_FORMAT_IO, x->dtype);
  const fa_format forward = x->r->found.arithmetic.operand[FA_PRODUCT_PV];
  if (!exact && bits >= most - 3 && (forward == FA_FORMAT_IO || forward == FA_FORMAT_3XTF32)) {
    pair_lost = forward == FA_FORMAT_3XTF32;
    bits = most;
  }
  for (int q = 0; q < 4; ++q)
    if (quarter_bits[q] == bits && vector_at(x, QUARTERS + q) != 1.0)
      truncated = fabs(ask_get(a, id, s, 0, first + QUARTERS + q) / one - 1.0) < 0.1 * ldexp(1.0, -bits);
  say(x, product, field, bits, format_of_bits(x, bits, pair_lost, overflows), truncated, how);
}

/* All but key 0 (or, from `from` on, no key) are far below. */
static void hide_keys(probe_ask *a, int64_t row, int64_t from, int64_t dim) {
  ask_set(a, FA_T_Q, row, 0, dim, -4096.0);
  for (int64_t j = from; j < a->c.problem.seqlen_k; ++j) ask_set(a, FA_T_K, j, 0, dim, 1.0);
}

/* f16 operands of other elements end at 65504. */
static bool overflows_at_2_17(probe *x) {
  probe_ask a;
  bool over = false;
  if (x->dtype != FA_F16 && ask_begin(&a, x, FA_PASS_FORWARD, 1, KEYS, KEYS)) {
    if (ask_build(&a, KEYS)) {
      hide_keys(&a, 0, 1, 20);
      ask_set(&a, FA_T_V, 0, 0, 0, 0x1p17);
      if (ask_run(&a)) over = !(ask_get(&a, FA_T_O, 0, 0, 0) == 0x1p17);
    }
    ask_end(&a);
  }
  return over;
}

static void ask_pv(probe *x) {
  probe_ask a;
  if (ask_begin(&a, x, FA_PASS_FORWARD, 1, KEYS, KEYS) && ask_build(&a, KEYS)) {
    hide_keys(&a, 0, 1, 20);
    set_vector(&a, FA_T_V, 0, 0);
    if (ask_run(&a)) {
      read_vector(&a, FA_PRODUCT_PV, "operand_pv", FA_T_O, 0, 0, true, overflows_at_2_17(x), "P = 1, V");
      ask_end(&a);
      return;
    }
  }
  probe_say_not_asked(x, "operand_pv", a.why);
  ask_end(&a);
}

/* Row k has two keys in sight: key 0 with score 0, and key k with q k = -A (1 + 2^-k) + A = -one, a score of -1; 0 if the
 * bit is lost. Key 24: as the column PAIR. */
static void set_differences(probe_ask *a, int n, double one) {
  for (int k = 1; k <= n; ++k) {
    const double size = one * ldexp(1.0, k <= N_BITS ? k : N_BITS), low = k <= N_BITS ? 0 : 0x1p-12;
    ask_set(a, FA_T_K, k, 0, 0, k <= N_BITS ? vector_at(a->x, k) : vector_at(a->x, PAIR));
    ask_set(a, FA_T_K, k, 0, 1, 1.0);
    ask_set(a, FA_T_K, k, 0, 50, low);
    ask_set(a, FA_T_K, k, 0, 2 + k, 1.0);
    ask_set(a, FA_T_V, k, 0, 0, 1.0);
    ask_set(a, FA_T_Q, k, 0, 0, -size);
    ask_set(a, FA_T_Q, k, 0, 1, size);
    ask_set(a, FA_T_Q, k, 0, 50, low > 0 ? size : 0);
    for (int other = 1; other <= n; ++other)
      if (other != k) ask_set(a, FA_T_Q, k, 0, 2 + other, -4096.0);
    hide_keys(a, k, n + 1, 40);
  }
}

typedef struct qk_answer {
  int bits;
  bool asked, pair_lost, overflows;
} qk_answer;

static qk_answer ask_differences(probe *x, double scale, char *why, size_t size) {
  probe_ask a;
  qk_answer e = {0};
  bool kept[N_BITS + 2] = {false};
  const int most = probe_fraction_bits(FA_FORMAT_IO, x->dtype), n = x->dtype == FA_F32 ? N_BITS + 1 : most;
  bool good = ask_begin(&a, x, FA_PASS_FORWARD, 1, KEYS, KEYS);
  a.c.problem.scale = scale;
  good = good && ask_build(&a, KEYS);
  if (good) set_differences(&a, n, 1.0 / scale);
  e.asked = good && ask_run(&a);
  for (int k = 1; e.asked && k <= n; ++k) {
    const double o = ask_get(&a, FA_T_O, k, 0, 0);
    kept[k] = fabs(o - 0.26894) < 0.01;
    e.overflows |= isnan(o);
  }
  e.bits = bits_kept(x, kept);
  e.pair_lost = n > N_BITS && !kept[n];
  if (!e.asked) snprintf(why, size, "%s", a.why);
  ask_end(&a);
  return e;
}

/* Some multiply both operands by the root of the scale, which rounds them unless that is a power of two, as of 1/4. */
static void ask_qk(probe *x) {
  char why[256] = "", how[128] = "q k = 4 - 4 (1 + 2^-k) / 2^-k, scale 1/4";
  const qk_answer e = ask_differences(x, 0.25, why, sizeof why);
  if (!e.asked) {
    probe_say_not_asked(x, "operand_qk", why);
    return;
  }
  if (x->dtype == FA_F32 && e.bits == N_BITS) {
    const qk_answer rooted = ask_differences(x, PROBE_SCALE, why, sizeof why);
    if (rooted.asked && rooted.bits < N_BITS)
      snprintf(how, sizeof how,
               "q k = 4 - 4 (1 + 2^-k) / 2^-k, scale 1/4 (1/8, whose root is no power of two: up to k = %d)",
               rooted.bits);
  }
  say(x, FA_PRODUCT_QK, "operand_qk", e.bits, format_of_bits(x, e.bits, e.pair_lost, e.overflows), -1, how);
}

void probe_operands(probe *x) {
  ask_qk(x);
  ask_pv(x);
}

/* ---- backward ---- */

/* P is 1/64 everywhere, O is 0, and dS is +-1/64 for two keys: dV, dQ and dK repeat rows of dO, K and Q. */
static bool set_gradients(probe_ask *a) {
  set_vector(a, FA_T_DO, 0, 0);
  set_vector(a, FA_T_Q, 0, 0);  /* keys have nothing there */
  set_vector(a, FA_T_K, 1, 32); /* queries have nothing there */
  ask_set(a, FA_T_DO, 0, 0, 63, 1.0);
  ask_set(a, FA_T_V, 1, 0, 63, 1.0);
  ask_set(a, FA_T_V, 0, 0, 63, -1.0);
  return ask_run(a);
}

static void say_gradient_scale(probe *x, const char *field, double got, const char *what) {
  const double ratio = got / (PROBE_SCALE / 64.0);
  const char *value = fabs(ratio - 1) < 0.02                 ? "as asked"
                      : fabs(ratio * PROBE_SCALE - 1) < 0.02 ? "missing"
                                                             : "other";
  probe_say_convention(x, field, FA_PROBE_CERTAIN, value, "as asked",
                       "dS = 1/64, scale 1/8: %s is %.6g of scale dS", what, ratio);
}

static void ask_gradients(probe *x) {
  probe_ask a;
  if (ask_begin(&a, x, FA_PASS_FORWARD | FA_PASS_BACKWARD, 1, KEYS, KEYS) && ask_build(&a, KEYS) &&
      set_gradients(&a)) {
    say_gradient_scale(x, "dq scale", ask_get(&a, FA_T_DQ, 0, 0, 32), "dQ");
    say_gradient_scale(x, "dk scale", ask_get(&a, FA_T_DK, 1, 0, 0), "dK");
    read_vector(&a, FA_PRODUCT_DV, "operand_dv", FA_T_DV, 0, 0, false, false, "dV = P dO");
    read_vector(&a, FA_PRODUCT_DQ, "operand_dq", FA_T_DQ, 0, 32, false, false, "dQ = scale dS K");
    read_vector(&a, FA_PRODUCT_DK, "operand_dk", FA_T_DK, 1, 0, false, false, "dK = scale dS Q");
  } else {
    probe_say_not_asked(x, "operand_dv", a.why);
  }
  ask_end(&a);
}

/* Row k: dO V = (1 + 2^-k) - 1 for key 1, of which dS and dQ are made. */
static void ask_dp(probe *x) {
  probe_ask a;
  const int most = probe_fraction_bits(FA_FORMAT_IO, x->dtype), n = x->dtype == FA_F32 ? N_BITS + 1 : most;
  if (!ask_begin(&a, x, FA_PASS_FORWARD | FA_PASS_BACKWARD, 1, KEYS, KEYS) || !ask_build(&a, KEYS)) {
    probe_say_not_asked(x, "operand_dp", a.why);
    ask_end(&a);
    return;
  }
  bool kept[N_BITS + 2] = {false};
  ask_set(&a, FA_T_K, 1, 0, 0, 1.0);
  ask_set_range(&a, FA_T_V, 1, 0, 0, 3, 1.0);
  for (int k = 1; k <= n; ++k) {
    ask_set(&a, FA_T_DO, k, 0, 0, k <= N_BITS ? vector_at(x, k) : vector_at(x, PAIR));
    ask_set(&a, FA_T_DO, k, 0, 1, -1.0);
    ask_set(&a, FA_T_DO, k, 0, 2, k <= N_BITS ? 0 : -0x1p-12);
  }
  if (ask_run(&a)) {
    for (int k = 1; k <= n; ++k) {
      const double one = ldexp(1.0, k <= N_BITS ? -k : -N_BITS);
      kept[k] = fabs(ask_get(&a, FA_T_DQ, k, 0, 0) / (PROBE_SCALE / 64 * one * (1 - 1.0 / 64)) - 1) < 0.1;
    }
    const int bits = bits_kept(x, kept);
    say(x, FA_PRODUCT_DP, "operand_dp", bits, format_of_bits(x, bits, n > N_BITS && !kept[n], false), -1,
        "dP = (1 + 2^-k) - 1");
  } else {
    probe_say_not_asked(x, "operand_dp", a.why);
  }
  ask_end(&a);
}

void probe_backward_operands(probe *x) {
  if (!x->has_backward) {
    probe_say_not_asked(x, "operand_dp", "there is no backward");
    return;
  }
  ask_dp(x);
  ask_gradients(x);
}
