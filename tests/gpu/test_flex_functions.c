/* The interpreter of the host's flex kernels in cases that tests/gpu/test_expr_emit.c does not cover:
 * constants, absent expressions, more values than a stack should hold, too many reads, and several threads at
 * once. */
#include "gpu/expr/functions.h"
#include "tests/support/check.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const fa_capture captures[2] = {
    {.name = "x", .rank = 1, .shape = {3}, .dtype = FA_F32, .grad = true},
    {.name = "n", .rank = 2, .shape = {2, 3}, .dtype = FA_I32, .below = 9}};
static const float x_data[3] = {0.5f, 2, -1};
static const int32_t n_data[6] = {1, 2, 3, 4, 5, 6};
static const void *const data[2] = {x_data, n_data};
static const bool wanted[2] = {true, false};

static fa_expr parse(const char *text, fa_expr_kind kind) {
  fa_expr e;
  fa_error err = {""};
  REQUIRE(fa_expr_parse(text, strlen(text), kind, captures, 2, &e, &err) == FA_OK);
  return e;
}

static fa_status make(const char *score, const char *mask, const bool *gradients, fa_flex_interpreter **out,
                      fa_error *err) {
  fa_expr s = {0}, m = {0};
  if (score) s = parse(score, FA_EXPR_SCORE_MOD);
  if (mask) m = parse(mask, FA_EXPR_MASK_MOD);
  const fa_status status =
      fa_flex_interpreter_make(score ? &s : NULL, &m, captures, 2, data, gradients, out, err);
  fa_expr_free(&s);
  fa_expr_free(&m);
  return status;
}

static void test_few(void) {
  fa_flex_interpreter *x;
  fa_flex_read read[2];
  const fa_flex_pair at = {.b = 1, .h = 0, .i = 1, .j = 7, .len_q = 2, .len_k = 8};
  REQUIRE(make("score * x[n[b, q_idx] - 3] + x[kv_idx]", "q_idx < kv_idx && 5 / 2 == 2", wanted, &x, NULL) ==
          FA_OK);
  const fa_flex_functions *f = fa_flex_interpreter_functions(x);
  CHECK(f->score(f->self, 3, &at) == 3 * -1.0f + -1.0f); /* n[1, 1] - 3 is 2; 7 is clamped to 2 */
  CHECK(f->mask(f->self, &at) == 1 && f->n_reads == 2);
  CHECK(f->derivative(f->self, 3, &at, read) == -1);
  CHECK(read[0].buffer == 0 && read[0].element == 2 && read[0].derivative == 3);
  CHECK(read[1].buffer == 0 && read[1].element == 2 && read[1].derivative == 1);
  fa_flex_interpreter_free(x);
  REQUIRE(make("2.0 * 3.0 - 7.0", NULL, wanted, &x, NULL) == FA_OK);
  f = fa_flex_interpreter_functions(x);
  CHECK(f->score(f->self, NAN, &at) == -1 && !f->mask && f->derivative(f->self, 1, &at, NULL) == 0);
  fa_flex_interpreter_free(x);
  REQUIRE(make(NULL, "false", NULL, &x, NULL) == FA_OK);
  f = fa_flex_interpreter_functions(x);
  CHECK(!f->score && !f->derivative && f->mask(f->self, &at) == 0);
  fa_flex_interpreter_free(x);
  REQUIRE(make("score", NULL, NULL, &x, NULL) == FA_OK);
  CHECK(!fa_flex_interpreter_functions(x)->derivative); /* not wanted */
  fa_flex_interpreter_free(x);
}

/* A product whose derivative needs every factor again. */
static void test_many_values(void) {
  enum { N = 900 };
  static char text[16 * N];
  const fa_flex_pair at = {0};
  char *end = text;
  fa_flex_interpreter *x;
  double want = 0;
  for (int k = 0; k < N; ++k) end += sprintf(end, "%scos(score)", k ? "*" : "");
  REQUIRE(make(text, NULL, wanted, &x, NULL) == FA_OK);
  const fa_flex_functions *f = fa_flex_interpreter_functions(x);
  const double s = 0.01;
  want = -N * pow(cos((float)s), N - 1) * sin((float)s);
  CHECK(fabs(f->score(f->self, (float)s, &at) - pow(cos((float)s), N)) < 1e-3);
  CHECK(fabs(f->derivative(f->self, (float)s, &at, NULL) - want) < 1e-3 * fabs(want));
  fa_flex_interpreter_free(x);
}

/* Sums of 32 in sums of 32, because a tree must not be higher than 1000. */
static void test_too_many_reads(void) {
  static char text[8 * (FA_FLEX_MAX_READS + 64)];
  for (int n = FA_FLEX_MAX_READS; n <= FA_FLEX_MAX_READS + 1; ++n) {
    char *end = text;
    fa_flex_interpreter *x;
    fa_error err = {""};
    for (int k = 0; k < n; ++k)
      end += sprintf(end, "%s%sx[%d]%s", k ? "+" : "", k % 32 == 0 ? "(" : "", k % 3,
                     k % 32 == 31 || k == n - 1 ? ")" : "");
    const fa_status status = make(text, NULL, wanted, &x, &err);
    CHECK_MSG(status == (n <= FA_FLEX_MAX_READS ? FA_OK : FA_ERR_UNSUPPORTED), "%d: %s", n, err.text);
    fa_flex_interpreter_free(x);
  }
}

/* ---- threads ---- */

static void *use(void *argument) {
  const fa_flex_functions *f = argument;
  intptr_t n_wrong = 0;
  for (int i = 0; i < 20000; ++i) {
    const fa_flex_pair at = {.b = i % 2, .h = 0, .i = i % 3, .j = i % 5, .len_q = 3, .len_k = 5};
    fa_flex_read read[1];
    const float score = (float)(i % 7), factor = x_data[n_data[at.b * 3 + at.i] % 3];
    n_wrong += !(f->score(f->self, score, &at) == score * factor + score);
    n_wrong += !(f->derivative(f->self, score, &at, read) == factor + 1 && read->derivative == score);
    n_wrong += !(f->mask(f->self, &at) == (at.j - at.i > 1));
  }
  return (void *)n_wrong;
}

static void test_threads(void) {
  fa_flex_interpreter *x;
  pthread_t thread[3];
  REQUIRE(make("score * x[n[b, q_idx] % 3] + score", "kv_idx - q_idx > 1", wanted, &x, NULL) == FA_OK);
  for (int k = 0; k < 3; ++k)
    REQUIRE(pthread_create(&thread[k], NULL, use, (void *)fa_flex_interpreter_functions(x)) == 0);
  for (int k = 0; k < 3; ++k) {
    void *n_wrong = NULL;
    REQUIRE(pthread_join(thread[k], &n_wrong) == 0);
    CHECK(n_wrong == NULL);
  }
  fa_flex_interpreter_free(x);
}

int main(void) {
  test_few();
  test_many_values();
  test_too_many_reads();
  test_threads();
  return check_done();
}
