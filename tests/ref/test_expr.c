/* The judge's evaluation of expressions: known values, float32 within its bounds, derivatives against
 * differences and against the kernels' symbolic ones, and expressions without a value. */
#include "gpu/expr/diff.h"
#include "gpu/ref_f32/expr.h"
#include "ref/mods/expr.h"
#include "tests/support/check.h"
#include "tests/support/random_expr.h"

#include <math.h>
#include <string.h>

enum { N = 32 };

static fa_tensors buffers;

static bool parse(const char *text, fa_expr_kind kind, fa_expr *e) {
  fa_error err = {""};
  const fa_status status =
      fa_expr_parse(text, strlen(text), kind, random_expr_captures, RANDOM_EXPR_BUFFERS, e, &err);
  CHECK_MSG(status == FA_OK, "%s: %s", text, err.text);
  return status == FA_OK;
}

static void set_buffer(int k, int64_t element, double value) {
  int64_t index[FA_MAX_RANK];
  fa_tensor_unravel(&buffers.t[FA_T_BUFFER_0 + k], element, index);
  fa_tensor_set(&buffers.t[FA_T_BUFFER_0 + k], index, value);
}

/* ---- known values ---- */

typedef struct known {
  double v, e, derivative, derivative_e;
  int fault;
  char why[256];
} known;

static bool fast; /* for at(): allow the device's approximations */

/* One pair: b 1, h 2, q_idx 5, kv_idx 3, of 10 x 20. error NaN: none is given. */
static known at(const char *text, fa_expr_kind kind, double score, float error) {
  known k = {0};
  fa_expr e;
  fa_ref_expr x;
  if (!parse(text, kind, &e)) return k;
  REQUIRE(fa_ref_expr_init(&x, &e, &buffers, NULL) == FA_OK);
  const fa_ref_pairs p = {.b = 1,
                          .h = 2,
                          .i = 5,
                          .j0 = 3,
                          .n = 1,
                          .seqlen_q = 10,
                          .seqlen_k = 20,
                          .score = &score,
                          .error = isnan(error) ? NULL : &error};
  x.fast = fast;
  fa_ref_expr_eval(&x, &p);
  k.v = *fa_ref_expr_row(x.value, e.root);
  k.e = *fa_ref_expr_row(x.error, e.root);
  k.fault = x.fault[(int64_t)e.root * FA_EXPR_LANES];
  if (k.fault || k.e > 0) fa_ref_expr_explain(&x, 0, k.why, sizeof k.why);
  fa_ref_expr_derive(&x, 1);
  for (int node = 0; node < e.n; ++node) {
    double v, derivative_e;
    if (e.node[node].op != FA_EXPR_SCORE) continue;
    fa_ref_expr_share(&x, node, 0, &v, &derivative_e);
    k.derivative += v;
    k.derivative_e += derivative_e;
  }
  fa_ref_expr_free(&x);
  fa_expr_free(&e);
  return k;
}

static void value(const char *text, double want) {
  const known k = at(text, FA_EXPR_SCORE_MOD, 0.5, 0);
  CHECK_MSG(!k.fault && (k.v == want || fabs(k.v - want) <= 1e-12 * (1 + fabs(want))), "%s: %.17g, not %.17g",
            text, k.v, want);
}

static void test_values(void) {
  value("score", 0.5);
  value("b + 10 * h + 100 * q_idx + 1000 * kv_idx", 3521);
  value("seqlen_q - seqlen_k", -10);
  value("(q_idx - 8) / 2", -1); /* truncates, as C does */
  value("(q_idx - 8) % 2", -1);
  value("q_idx / 2.0", 2.5);
  value("7 / 2 * 2", 6);
  value("0.1", (double)0.1f); /* a literal is an f32 */
  value("-abs(-3) + min(2, 5) + max(1.5, 1)", 0.5);
  value("exp(score) + log(score) + sqrt(score) + tanh(score) + sin(score) + cos(score)",
        exp(0.5) + log(0.5) + sqrt(0.5) + tanh(0.5) + sin(0.5) + cos(0.5));
  value("floor(-1.5) + floor(score)", -2);
  value("(h == 2) + (h != 2) * 5", 1);
  value("h > 3 ? score : -score", -0.5);
  value("q_idx < kv_idx ? 1 : 2.5", 2.5);
  value("1 ? 2 : 3", 2);
  value("-inf", -INFINITY);
  value("true && !false || b", 1);
  value("slopes[h]", 3.25);
  value("table[h, q_idx]", -1.5);
  value("table[h][q_idx] * one", -6);
  value("doc[q_idx + kv_idx] + 1", 3);
  value("h >= 0 || slopes[99] > 0", 1); /* if one side decides alone, the other is not evaluated */
  value("h < 0 && slopes[99] > 0", 0);
  value("h == 2 ? score : log(-1.0)", 0.5);
}

static void test_more_values(void) {
  value("floordiv(q_idx - 12, 2)", -4); /* Python's: -7 // 2, and the sign of the divisor */
  value("floormod(q_idx - 12, 2)", 1);
  value("floordiv(7, -2) * 100 + floormod(7, -2)", -401);
  value("floormod(-7, -2)", -1);
  value("floormod(-6, 3) + floordiv(-6, 3)", -2);
  value("floormod(-2147483647 - 1, -1)", 0);
  value("(q_idx & 6) + 10 * (q_idx | 8) + 100 * (q_idx ^ 1) + 1000 * ~q_idx", 4 + 130 + 400 - 6000);
  value("(1 << 30) + (-q_idx << 2) + (-q_idx >> 1)", 1073741824.0 - 20 - 3);
  value("((h == 2) | (slopes[h] < 0)) + 0", 1);
  value("((h == 2) ^ (b == 1)) + 2 * ((h == 2) & (b == 0)) + 4 * ~(h == 1)", 4);
  value("((h == 2) & 3) + ~1", -1);
  value("int(-2.9) + 10 * int(2.9) + 100 * int(h == 2) + 1000 * int(7)", 7118);
  /* Rounding decides both: the value is that of float64. */
  value("int(score + 2.5) + 0 * int(0.3 * (q_idx + 5))", 3);
  value("float(q_idx) / 2", 2.5);
  value("ceil(-1.5) + ceil(score)", 0);
  value("erf(score) + sigmoid(score)", erf(0.5) + 1 / (1 + exp(-0.5)));
  value("sigmoid(-inf) + sigmoid(inf) + erf(-inf)", 0);
  value("pow(score, 3)", 0.125);
  value("pow(-score, 3) + pow(-score, 2.0)", 0.125);
  value("pow(0.0, 2) + pow(0.0, 0.0) + pow(score - 0.5, 0.5)", 1);
  value("pow(score, -1.5) + pow(q_idx, 2)", pow(0.5, -1.5) + 25);
  value("where(h == 2, score, log(-1.0))", 0.5);
}

static void refused(const char *text, fa_expr_kind kind, const char *why) {
  const known k = at(text, kind, 0.5, 1e-6f);
  CHECK_MSG(k.fault || k.e > 0, "%s has a value", text);
  CHECK_MSG(strcmp(k.why, why) == 0, "%s: %s", text, k.why);
}

static void test_faults(void) {
  set_buffer(4, 3, -7); /* an int64 inside 32 bits, and beyond them */
  value("long_[kv_idx] + 0", -7);
  set_buffer(4, 3, 2147483648.0);
  refused("long_[kv_idx] + 0", FA_EXPR_SCORE_MOD, "column 1: the buffer holds a number beyond int32 there");
  refused("q_idx > 4 && long_[kv_idx] > 0", FA_EXPR_MASK_MOD,
          "column 14: the buffer holds a number beyond int32 there");
  value("where(h == 2, 1.0, long_[kv_idx])", 1); /* not looked at */
  set_buffer(4, 3, 0);
  const double slope = fa_tensor_get(&buffers.t[FA_T_BUFFER_0], (int64_t[FA_MAX_RANK]){2});
  set_buffer(0, 2, NAN);
  refused("slopes[h] + 0", FA_EXPR_SCORE_MOD, "column 1: the buffer holds no finite number there");
  set_buffer(0, 2, slope);
  refused("slopes[q_idx]", FA_EXPR_SCORE_MOD, "column 1: index 0 is 5, not in 0 .. 3");
  refused("1.0 + table[h, kv_idx - q_idx]", FA_EXPR_SCORE_MOD, "column 7: index 1 is -2, not in 0 .. 8");
  refused("score / (h - 2)", FA_EXPR_SCORE_MOD, "column 7: 0.5 / 0 has no value in f32");
  refused("h / (h - 2)", FA_EXPR_SCORE_MOD, "column 3: 2 / 0 has no value in int32");
  refused("h % (h - 2)", FA_EXPR_SCORE_MOD, "column 3: 2 % 0 has no value in int32");
  refused("2147483647 + h", FA_EXPR_SCORE_MOD, "column 12: 2147483647 + 2 has no value in int32");
  refused("log(score - 1)", FA_EXPR_SCORE_MOD, "column 1: log of -0.5 has no value in f32");
  refused("log(0.0)", FA_EXPR_SCORE_MOD, "column 1: log of 0 has no value in f32");
  refused("sqrt(-score)", FA_EXPR_SCORE_MOD, "column 1: sqrt of -0.5 has no value in f32");
  refused("exp(score * 1000)", FA_EXPR_SCORE_MOD, "column 1: exp of 500 has no value in f32");
  refused("score * 1e38 * 1e38", FA_EXPR_SCORE_MOD,
          "column 14: 4.99999984e+37 * 9.99999968e+37 has no value in f32");
  refused("inf - inf", FA_EXPR_SCORE_MOD, "column 5: inf - inf has no value in f32");
  refused("0.0 * inf", FA_EXPR_SCORE_MOD, "column 5: 0 * inf has no value in f32");
  refused("floordiv(h, h - 2)", FA_EXPR_SCORE_MOD, "column 1: 2 floordiv 0 has no value in int32");
  refused("floormod(h, h - 2)", FA_EXPR_SCORE_MOD, "column 1: 2 floormod 0 has no value in int32");
  refused("floordiv(-2147483647 - 1, -1)", FA_EXPR_SCORE_MOD,
          "column 1: -2147483648 floordiv -1 has no value in int32");
  refused("1 << 31", FA_EXPR_SCORE_MOD, "column 3: 1 << 31 has no value in int32");
  refused("1 << 32", FA_EXPR_SCORE_MOD, "column 3: 1 << 32 has no value in int32");
  refused("1 >> -b", FA_EXPR_SCORE_MOD, "column 3: 1 >> -1 has no value in int32");
  refused("int(score * 1e10)", FA_EXPR_SCORE_MOD, "column 1: int of 5000000000 has no value in int32");
  refused("int(slopes[h] * 1e10)", FA_EXPR_SCORE_MOD, "column 1: int of 3.25e+10 has no value in int32");
  refused("int(inf)", FA_EXPR_SCORE_MOD, "column 1: int of inf has no value in int32");
  refused("int(score + 0.5)", FA_EXPR_SCORE_MOD, "column 1: rounding decides it");
  value("pow(inf, 2.0)", INFINITY);
  refused("pow(inf, score)", FA_EXPR_SCORE_MOD, "column 1: rounding decides whether there is a value");
  refused("pow(-score, 0.5)", FA_EXPR_SCORE_MOD, "column 1: -0.5 pow 0.5 has no value in f32");
  refused("pow(0.0, -1)", FA_EXPR_SCORE_MOD, "column 1: 0 pow -1 has no value in f32");
  refused("pow(10.0, 39)", FA_EXPR_SCORE_MOD, "column 1: 10 pow 39 has no value in f32");
  refused("pow(score - 0.5, 0.5)", FA_EXPR_SCORE_MOD, "column 1: rounding decides whether there is a value");
  refused("(slopes[99] > 0) & false", FA_EXPR_MASK_MOD, "column 2: index 0 is 99, not in 0 .. 3");
  refused("sin(slopes[h]) < sin(slopes[2])", FA_EXPR_MASK_MOD, "column 16: rounding decides it");
}

static void derivative(const char *text, double score, double want) {
  const known k = at(text, FA_EXPR_SCORE_MOD, score, 0);
  CHECK_MSG(isnan(want) ? isnan(k.derivative) : fabs(k.derivative - want) <= 1e-12 * (1 + fabs(want)),
            "%s at %g: %.17g, not %g", text, score, k.derivative, want);
}

/* The conventions at kinks. */
static void test_kinks(void) {
  derivative("abs(score)", 0, 0);
  derivative("abs(score)", -2, -1);
  derivative("min(score, 0.0)", 0, 0.5);
  derivative("max(score, 3.0 * score)", 0, 2);
  derivative("max(score, 0.0)", 1, 1);
  derivative("floor(score)", 2, 0);
  derivative("floor(score) * score", 2.5, 2);
  derivative("score > 0.0 ? score : 0.1 * score", 0, (double)0.1f);
  derivative("score > 0.0 ? sqrt(score) : 0.0", 0, 0); /* the other branch's infinity has no effect */
  derivative("sqrt(score)", 0, NAN);
  derivative("abs(sqrt(score))", 0, NAN); /* 0 times infinity */
  derivative("q_idx >= kv_idx ? score : -inf", 1, 1);
  derivative("min(score, -inf)", 1, 0);
  derivative("ceil(score) * score", 2.5, 3);
  derivative("int(score) * score", 2.5, 2);
  derivative("float(score)", 2.5, 1);
  derivative("erf(score)", 0, 1.1283791670955126);
  derivative("sigmoid(score)", 0, 0.25);
  derivative("sigmoid(score)", -200, 0);
  derivative("pow(score, 2.0)", 0, 0);
  derivative("pow(score, 1.0)", 0, 1);
  derivative("pow(score, 0.0)", 0, 0); /* as PyTorch's */
  derivative("pow(score, 3)", -2, 12);
  derivative("pow(score, 0.5)", 0, NAN);
  derivative("pow(2.0, score)", 3, 8 * log(2));
  derivative("pow(0.0, score)", 3, 0);
  derivative("pow(-2.0, floor(score) + score * 0)", 3, NAN); /* the logarithm of a negative base */
  derivative("pow(score, score)", 2, 4 * (log(2) + 1));
}

/* Near a branch the error covers the other side. */
static void test_unsure(void) {
  known k = at("score > 0.5 ? score + 1 : score", FA_EXPR_SCORE_MOD, 0.5, 1e-6f);
  CHECK(k.v == 0.5 && k.e >= 1 && k.e < 1.001 && k.derivative == 1 && k.derivative_e >= 0);
  k = at("score > 0.25 ? score + 1 : score", FA_EXPR_SCORE_MOD, 0.5, 1e-6f);
  CHECK(k.v == 1.5 && k.e < 1e-5);
  k = at("max(score, 0.5)", FA_EXPR_SCORE_MOD, 0.5, 1e-6f);
  CHECK(k.e < 2e-6 && k.derivative_e >= 0.5);
  k = at("max(score, 0.5)", FA_EXPR_SCORE_MOD, 0.5, 0); /* a tie that nothing can undo */
  CHECK(k.derivative == 0.5 && k.derivative_e < 1e-6);
  k = at("abs(score - 0.5)", FA_EXPR_SCORE_MOD, 0.5, 1e-6f);
  CHECK(k.e < 2e-6 && k.derivative_e >= 1);
  k = at("floor(score * 2)", FA_EXPR_SCORE_MOD, 0.5, 1e-6f);
  CHECK(k.v == 1 && k.e == 1);
  k = at("int(score * 2) + kv_idx", FA_EXPR_SCORE_MOD, 0.5, 1e-6f);
  CHECK(k.v == 4 && k.e == INFINITY);
  k = at("int(score * 3) + kv_idx", FA_EXPR_SCORE_MOD, 0.5, 1e-6f);
  CHECK(k.v == 4 && k.e == 0);
  k = at("int(score * 2)", FA_EXPR_SCORE_MOD, 0.75, NAN);
  CHECK(k.v == 1 && k.e == 0);
  k = at("score", FA_EXPR_SCORE_MOD, 0.75, NAN);
  CHECK(k.v == 0.75 && k.e == 0);
  k = at("log(score - 0.5)", FA_EXPR_SCORE_MOD, 0.5000001, 1e-6f);
  CHECK(!k.fault && k.e == INFINITY && k.v < -10);
  k = at("slopes[score > 0.5 ? 1 : 2]", FA_EXPR_SCORE_MOD, 0.5, 1e-6f);
  CHECK(!k.fault && k.e == INFINITY);
  k = at("score == 0.5 ? 1 : 2", FA_EXPR_SCORE_MOD, 0.5, 0);
  CHECK(k.v == 1 && k.e == 0);
}

/* ---- random expressions ---- */

typedef struct random_row {
  double score[N];
  float error[N], got[N]; /* got: the input of the f32 side, within error of score */
  fa_ref_pairs want_pairs;
  fa_f32_pairs got_pairs;
} random_row;

static void random_row_make(fa_rng *r, random_row *row) {
  for (int lane = 0; lane < N; ++lane) {
    const float s = (float)(4 * fa_rng_uniform(7, (uint64_t)fa_rng_below(r, INT32_MAX), 0) - 2);
    row->score[lane] = fa_rng_below(r, 20) == 0 ? 0 : s;
    row->error[lane] = fa_rng_below(r, 3) == 0 ? 0 : 1e-5f;
    row->got[lane] = (float)row->score[lane];
    if (row->error[lane] > 0) row->got[lane] += (float)fa_rng_range(r, -8, 8) * 1e-6f;
  }
  const int64_t i = fa_rng_below(r, 200), j0 = fa_rng_below(r, 200), h = fa_rng_below(r, RANDOM_EXPR_HEADS);
  row->want_pairs = (fa_ref_pairs){.b = 1,
                                   .h = h,
                                   .i = i,
                                   .j0 = j0,
                                   .n = N,
                                   .seqlen_q = 200,
                                   .seqlen_k = 232,
                                   .score = row->score,
                                   .error = row->error};
  row->got_pairs = (fa_f32_pairs){
      .b = 1, .h = h, .i = i, .j0 = j0, .n = N, .seqlen_q = 200, .seqlen_k = 232, .score = row->got};
}

typedef struct tally {
  int64_t values, slopes, reads, faults, lost, differences, skipped;
  double worst, worst_slope;
} tally;

static void check_close(const char *text, double got, double want, double bound, double *worst,
                        const char *what) {
  const double err = fabs(got - want);
  CHECK_MSG(err <= bound, "%s: %s is %.9g, not %.9g +- %.3g", text, what, got, want, bound);
  if (bound > 0 && err / bound > *worst) *worst = err / bound;
}

/* Compares float32 (with its symbolic derivatives) with the bounds; false: the lane is not judged. */
static void compare_row(const char *text, const fa_ref_expr *x, const fa_f32_expr *y,
                        const fa_expr_gradient *g, tally *t) {
  const int root = x->e->root;
  for (int lane = 0; lane < N; ++lane) {
    const int64_t at = (int64_t)root * FA_EXPR_LANES + lane;
    double derivative = 0, derivative_e = 0, v, e;
    if (x->fault[at]) {
      ++t->faults;
      continue;
    }
    if (x->error[at] == INFINITY) ++t->lost;
    if (x->error[at] < INFINITY) {
      ++t->values;
      const double got = fa_f32_expr_row(y, root)[lane].f;
      if (isinf(x->value[at]))
        CHECK_MSG(got == x->value[at], "%s: %g, not %g", text, got, x->value[at]);
      else
        check_close(text, got, x->value[at], x->error[at], &t->worst, "the value");
    }
    for (int node = 0; node < x->e->n; ++node) {
      if (x->e->node[node].op != FA_EXPR_SCORE) continue;
      fa_ref_expr_share(x, node, lane, &v, &e);
      derivative += v;
      derivative_e += e;
    }
    if (!isnan(derivative) && derivative_e < INFINITY) {
      ++t->slopes;
      check_close(text, fa_f32_expr_row(y, g->score)[lane].f, derivative, derivative_e, &t->worst_slope,
                  "the slope");
    }
    for (int k = 0; k < g->n_reads; ++k) {
      fa_ref_expr_share(x, g->read[k].load, lane, &v, &e);
      if (isnan(v) || e == INFINITY) continue;
      ++t->reads;
      check_close(text, fa_f32_expr_row(y, g->read[k].derivative)[lane].f, v, e, &t->worst_slope,
                  "the slope of a read");
      if (v != 0 && !x->fault[(int64_t)g->read[k].load * FA_EXPR_LANES + lane])
        CHECK(y->element[(int64_t)g->read[k].load * FA_F32_PAIRS + lane] ==
              fa_ref_expr_element(x, g->read[k].load, lane));
    }
  }
}

static void test_random(bool mild, int rounds) {
  fa_rng r = fa_rng_make(mild ? 21 : 22, 0);
  tally t = {0};
  for (int round = 0; round < rounds; ++round) {
    char text[16384];
    fa_expr e;
    fa_expr_gradient g;
    fa_ref_expr x;
    fa_f32_expr y;
    random_row row;
    random_expr_score(&r, 1 + round % 5, mild, text, sizeof text);
    if (!parse(text, FA_EXPR_SCORE_MOD, &e)) return;
    REQUIRE(fa_expr_differentiate(&e, &g, NULL) == FA_OK);
    REQUIRE(fa_ref_expr_init(&x, &e, &buffers, NULL) == FA_OK &&
            fa_f32_expr_init(&y, &g.e, &buffers, NULL) == FA_OK);
    random_row_make(&r, &row);
    fa_ref_expr_eval(&x, &row.want_pairs);
    fa_ref_expr_derive(&x, N);
    fa_f32_expr_eval(&y, &row.got_pairs);
    compare_row(text, &x, &y, &g, &t);
    fa_f32_expr_free(&y);
    fa_ref_expr_free(&x);
    fa_expr_gradient_free(&g);
    fa_expr_free(&e);
  }
  printf("%s: %lld values (worst %.2f of the bound), %lld slopes and %lld of reads (worst %.2f); %lld "
         "without a value, "
         "%lld without a bound\n",
         mild ? "mild" : "wild", (long long)t.values, t.worst, (long long)t.slopes, (long long)t.reads,
         t.worst_slope, (long long)t.faults, (long long)t.lost);
  CHECK(t.values > rounds * N / 3 && t.slopes > rounds * N / 3 && t.reads > rounds * N / 20);
  if (mild) CHECK(t.faults == 0 && t.lost < t.values / 50);
  CHECK(t.worst > 0.05 && t.worst_slope > 0.05);
}

/* Evaluating whole rows gives the same bits as lane by lane. */
static void test_rows(void) {
  fa_rng r = fa_rng_make(24, 0);
  for (int round = 0; round < 1500; ++round) {
    char text[16384];
    fa_expr e;
    fa_ref_expr rows, lanes;
    random_row row;
    random_expr_score(&r, 1 + round % 5, false, text, sizeof text);
    if (!parse(text, FA_EXPR_SCORE_MOD, &e)) return;
    REQUIRE(fa_ref_expr_init(&rows, &e, &buffers, NULL) == FA_OK);
    REQUIRE(fa_ref_expr_init(&lanes, &e, &buffers, NULL) == FA_OK);
    memset(lanes.uniform, 1, (size_t)e.n); /* one lane at a time, no whole rows */
    random_row_make(&r, &row);
    fa_ref_expr_eval(&rows, &row.want_pairs);
    for (int lane = 0; lane < N; ++lane) {
      fa_ref_pairs one = row.want_pairs;
      one.j0 += lane;
      one.score += lane;
      one.error += lane;
      one.n = 1;
      fa_ref_expr_eval(&lanes, &one);
      for (int node = 0; node < e.n; ++node) {
        const int64_t at = (int64_t)node * FA_EXPR_LANES;
        CHECK_MSG(memcmp(&rows.value[at + lane], &lanes.value[at], sizeof(double)) == 0 &&
                      memcmp(&rows.error[at + lane], &lanes.error[at], sizeof(double)) == 0 &&
                      rows.fault[at + lane] == lanes.fault[at],
                  "%s: node %d (%s)", text, node, fa_expr_op_text(e.node[node].op));
      }
    }
    fa_ref_expr_free(&rows);
    fa_ref_expr_free(&lanes);
    fa_expr_free(&e);
  }
}

/* The documented maximum errors of a device's approximations are within the bounds if they are allowed, in
 * value and derivative; otherwise the bounds are much smaller. */
static void test_fast_functions(void) {
  static const struct {
    const char *text;
    double by, by_value, derivative;
  } off[] = {{"tanh(score)", 0, 0x1p-11, 0x1p-11},
             {"log(score)", 0x1p-22, 0x1p-22, 0},
             {"sin(score)", 0x1p-20 / M_SQRT2, 0, 0x1p-20 / M_SQRT2},
             {"cos(score)", 0x1p-20 / M_SQRT2, 0, 0x1p-20 / M_SQRT2},
             {"exp(score)", 0, 0x1p-22, 0},
             {"sqrt(score)", 0, 0x1p-23, 0}};
  for (int n = 0; n < (int)(sizeof off / sizeof *off); ++n)
    for (double score = 0.03125; score < 6; score *= 1.21) {
      const double x = (double)(float)score;
      fast = true;
      const known k = at(off[n].text, FA_EXPR_SCORE_MOD, x, 0);
      fast = false;
      const known accurate = at(off[n].text, FA_EXPR_SCORE_MOD, x, 0);
      const double need = off[n].by + off[n].by_value * fabs(k.v);
      CHECK_MSG(k.v == accurate.v && k.e >= need, "%s at %g: %g, %g needed", off[n].text, x, k.e, need);
      CHECK_MSG(n > 3 || fabs(k.v) > 0.2 || accurate.e < need / 2, "%s at %g: %g", off[n].text, x,
                accurate.e);
      /* tanh: 1 - y y, with y's own error; sin, cos: each other's */
      const double by = off[n].derivative * (n == 0 ? 2 * k.v * k.v : 1);
      CHECK_MSG(k.derivative_e >= by, "%s at %g: derivative %g, %g needed", off[n].text, x, k.derivative_e,
                by);
    }
  fast = false;
}

/* Central differences in double; skips lanes near a kink (within the step). */
static void test_differences(void) {
  fa_rng r = fa_rng_make(23, 0);
  const double h = 1e-6;
  tally t = {0};
  for (int round = 0; round < 3000; ++round) {
    char text[16384];
    fa_expr e;
    fa_ref_expr x;
    random_row row;
    double low[N], high[N], derivative[N] = {0}, derivative_e[N] = {0};
    random_expr_score(&r, 1 + round % 4, true, text, sizeof text);
    if (!parse(text, FA_EXPR_SCORE_MOD, &e)) return;
    REQUIRE(fa_ref_expr_init(&x, &e, &buffers, NULL) == FA_OK);
    random_row_make(&r, &row);
    for (int lane = 0; lane < N; ++lane) row.error[lane] = (float)(2 * h);
    fa_ref_expr_eval(&x, &row.want_pairs);
    fa_ref_expr_derive(&x, N);
    for (int node = 0; node < e.n; ++node)
      for (int lane = 0; lane < N && e.node[node].op == FA_EXPR_SCORE; ++lane) {
        double v, s;
        fa_ref_expr_share(&x, node, lane, &v, &s);
        derivative[lane] += v;
        derivative_e[lane] += s;
      }
    for (int side = -1; side <= 1; side += 2) {
      for (int lane = 0; lane < N; ++lane) row.score[lane] += side < 0 ? -h : 2 * h;
      fa_ref_expr_eval(&x, &row.want_pairs);
      memcpy(side < 0 ? low : high, fa_ref_expr_row(x.value, e.root), sizeof low);
    }
    for (int lane = 0; lane < N; ++lane) {
      const double size = 1 + fabs(derivative[lane]) + fabs(high[lane]);
      if (derivative_e[lane] > 1e-3 * size) {
        ++t.skipped;
        continue;
      }
      ++t.differences;
      const double got = (high[lane] - low[lane]) / (2 * h);
      CHECK_MSG(fabs(got - derivative[lane]) <= 1e-5 * size, "%s: %.9g by differences, %.9g", text, got,
                derivative[lane]);
    }
    fa_ref_expr_free(&x);
    fa_expr_free(&e);
  }
  CHECK_MSG(t.differences > 10 * t.skipped, "%lld, %lld", (long long)t.differences, (long long)t.skipped);
}

int main(void) {
  fa_rng r = fa_rng_make(20, 0);
  random_expr_tensors(&r, &buffers);
  set_buffer(0, 2, 3.25);
  set_buffer(1, 2 * 9 + 5, -1.5);
  set_buffer(2, 0, 4);
  set_buffer(3, 8, 2);
  test_values();
  test_more_values();
  test_faults();
  test_kinks();
  test_unsure();
  test_random(true, 4000);
  test_random(false, 4000);
  test_rows();
  test_fast_functions();
  test_differences();
  fa_tensors_free(&buffers);
  return check_done();
}
