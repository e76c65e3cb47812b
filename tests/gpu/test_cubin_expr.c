/* Expressions over sizes: what they compute, and what is refused where. */
#include "cases/codec/json.h"
#include "gpu/cubin/expr.h"
#include "gpu/cubin/sizes.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

static fa_case a_case;
static fa_tensors tensors;
static char somewhere;

static fa_status evaluate(const char *text, int64_t *out, fa_error *err) {
  const fa_cubin_sizes sizes = {&a_case.problem, &tensors, 132};
  fa_size_expr x;
  const fa_status status = fa_size_parse(text, fa_cubin_size_find, &x, err);
  return status == FA_OK ? fa_size_evaluate(&x, fa_cubin_size_value, &sizes, out, err) : status;
}

static void is(const char *text, int64_t want) {
  int64_t got = 0;
  fa_error err = {""};
  CHECK_MSG(evaluate(text, &got, &err) == FA_OK && got == want, "%s = %lld: %s", text, (long long)got,
            err.text);
}

static void refused(const char *text, const char *what) {
  int64_t got = 0;
  fa_error err = {""};
  CHECK_MSG(evaluate(text, &got, &err) == FA_ERR_INPUT && strstr(err.text, what), "%s: %s", text, err.text);
}

static void test_values(void) {
  is("7", 7);
  is(" 1 + 2 * 3 ", 7);
  is("(1 + 2) * 3", 9);
  is("10 - 3 - 2", 5);
  is("2 * -3", -6);
  is("--5", 5);
  is("cdiv(0, 64)", 0);
  is("cdiv(64, 64)", 1);
  is("cdiv(65, 64)", 2);
  is("cdiv(-65, 64)", -1);
  is("min(3, max(1, 2))", 2);
  is("1 + 1 == 2", 1);
  is("(3 < 3) + 2 * (3 <= 3) + 4 * (4 > 3) + 8 * (3 >= 4) + 16 * (1 != 2)", 22);
  is("9223372036854775807", INT64_MAX);
}

static void test_names(void) {
  const fa_tensor q = {
      .dtype = FA_F16, .rank = 4, .shape = {2, 70, 4, 64}, .stride = {17920, 256, 64, 1}, .data = &somewhere};
  tensors.t[FA_T_Q] = q;
  is("batch", 2);
  is("heads_q * seqlen_q", 280);
  is("group", 2);
  is("cdiv(seqlen_k, 64) * processors", 264);
  is("is_f16 + 2 * is_bf16 + 4 * is_f32", 1);
  is("window_left", -1);
  is("window_right", 0);
  is("varlen + top_left", 0);
  is("total_q", 140);
  is("q.stride.1", 256);
  is("q.shape.3", 64);
  is("q.shape.4", 0);
  is("q.present", 1);
  is("bias.present", 0);
  is("bias.stride.0", 0);
  for (int i = 0; fa_cubin_size_name(i); ++i) CHECK(fa_cubin_size_find(fa_cubin_size_name(i)) == i);
}

static void test_refused(void) {
  char deep[200];
  refused("", "column 1: a number, a name");
  refused("1 +", "column 4: a number");
  refused("1 2", "column 3: an operator");
  refused("(1", "column 3: a closing parenthesis");
  refused("seqlen", "column 1: there is no name seqlen");
  refused("2 * q.stride.5", "column 5: there is no name q.stride.5");
  refused("q.stride.-1", "no name q.stride.");
  refused("q.size", "no name");
  refused("buffer_0.present", "no name");
  refused("cdiv 1", "an opening parenthesis");
  refused("cdiv(1)", "a comma");
  refused("min(1, 2, 3)", "a closing parenthesis");
  refused("1 = 1", "an operator");
  refused("1 < 2 < 3", "an operator");
  refused("1.5", "an operator");
  refused("99999999999999999999", "too large");
  refused("9223372036854775807 + 1", "does not fit");
  refused("-9223372036854775807 - 2", "does not fit");
  refused("3037000500 * 3037000500", "does not fit");
  refused("cdiv(1, 0)", "cdiv by less than 1");
  refused("cdiv(1, -2)", "cdiv by less than 1");
  memset(deep, '-', sizeof deep - 1);
  deep[sizeof deep - 1] = 0;
  refused(deep, "too deeply");
  memset(deep, '(', sizeof deep - 1);
  refused(deep, "too deeply");
  for (size_t i = 0; i + 2 < sizeof deep; i += 2) memcpy(deep + i, "1+", 3);
  strcat(deep, "1");
  refused(deep, "too long");
}

int main(void) {
  fa_error err = {""};
  const fa_status status = fa_case_from_text("{\"batch\":2,\"heads_q\":4,\"heads_kv\":2,\"seqlen_q\":70,"
                                             "\"seqlen_k\":90,\"mask\":{\"type\":\"causal\"}}",
                                             &a_case, &err);
  CHECK_MSG(status == FA_OK, "%s", err.text);
  test_values();
  test_names();
  test_refused();
  fa_case_free(&a_case);
  return check_done();
}
