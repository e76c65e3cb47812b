/* Data at the edges of what cases ask for, against values worked out by hand. */
#include "cases/arithmetic/formats.h"
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "cases/tensors/descale.h"
#include "cases/tensors/safetensors.h"
#include "cases/tensors/table.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

static fa_case build(const char *text, fa_tensors *in) {
  fa_case c;
  fa_error err = {""};
  CHECK_MSG(fa_case_from_text(text, &c, &err) == FA_OK, "%s: %s", text, err.text);
  CHECK_MSG(fa_case_build(&c, in, &err) == FA_OK, "%s: %s", text, err.text);
  return c;
}

static void drop(fa_case *c, fa_tensors *in) {
  fa_tensors_free(in);
  fa_case_free(c);
}

/* The largest numbers of types without a fraction, and what products are called. */
static void test_types(void) {
  CHECK(fa_dtype_max(FA_U8) == 255 && fa_dtype_max(FA_BOOL) == 1 && fa_dtype_max(FA_I8) == 127);
  CHECK(fa_dtype_max(FA_I32) == 2147483647.0 && fa_dtype_max(FA_I64) == 0x1p63 - 1024);
  for (int i = 0; i < FA_N_PRODUCTS; ++i)
    for (int k = 0; k < i; ++k) CHECK(strcmp(fa_product_name(i), fa_product_name(k)) != 0);
}

/* One number for each query head. */
static void test_sinks(void) {
  fa_tensors in;
  fa_case c = build("{\"heads_q\":3,\"seqlen_q\":2,\"sinks\":{\"grad\":true}}", &in);
  CHECK(in.t[FA_T_SINKS].rank == 1 && in.t[FA_T_SINKS].shape[0] == 3);
  CHECK(in.t[FA_T_DSINKS].rank == 1 && in.t[FA_T_DSINKS].shape[0] == 3);
  int64_t shape[4] = {0};
  fa_tensor_shape(&c.problem, FA_T_SINKS, shape);
  CHECK(shape[0] * shape[1] * shape[2] * shape[3] == 3);
  drop(&c, &in);
}

static void test_integers(void) {
  fa_tensors in;
  fa_case c =
      build("{\"family\":\"merge\",\"seqlen_q\":9,\"merge\":{\"parts\":3},\"fill\":\"integer\"}", &in);
  const fa_tensor *t = &in.t[FA_T_O_PARTS];
  int64_t not_zero = 0;
  for (int64_t e = 0; e < fa_tensor_count(t); ++e) {
    int64_t at[FA_MAX_RANK];
    fa_tensor_unravel(t, e, at);
    const double x = fa_tensor_get(t, at);
    CHECK(x == floor(x));
    not_zero += x != 0;
  }
  CHECK(not_zero > 0);
  drop(&c, &in);
}

static bool bit(const fa_tensors *in, int64_t n) {
  return in->t[FA_T_MASK_BITS].data[n / 8] >> n % 8 & 1;
}

/* Rows of a tree see every key before the draft tokens, themselves, and of the other drafts only earlier ones. */
static void test_tree(void) {
  fa_tensors in;
  fa_case c = build("{\"seqlen_q\":5,\"seqlen_k\":9,\"mask_bits\":{\"tree\":\"random\"}}", &in);
  for (int64_t i = 0; i < 5; ++i)
    for (int64_t j = 0; j < 9; ++j) {
      const bool seen = bit(&in, i * 9 + j);
      if (j < 4 || j == 4 + i) CHECK_MSG(seen, "row %lld, key %lld", (long long)i, (long long)j);
      if (j > 4 + i) CHECK_MSG(!seen, "row %lld, key %lld", (long long)i, (long long)j);
    }
  drop(&c, &in);
}

/* The extremes of what is there, and 1 where nothing is. */
static void test_descales(void) {
  fa_tensors in;
  fa_case c = build(
      "{\"heads_q\":4,\"heads_kv\":4,\"seqlen_q\":3,\"quantized\":{\"dtype\":\"e4m3\",\"descale\":\"head\"}}",
      &in);
  const fa_tensor *t = &in.t[FA_T_K_DESCALE];
  double least = INFINITY, most = 0;
  for (int64_t e = 0; e < fa_tensor_count(t); ++e) {
    int64_t at[FA_MAX_RANK];
    fa_tensor_unravel(t, e, at);
    least = fmin(least, fabs(fa_tensor_get(t, at)));
    most = fmax(most, fabs(fa_tensor_get(t, at)));
  }
  CHECK(fa_tensor_count(t) > 1 && least < most);
  CHECK(fa_descale_largest(&c.problem, &in, FA_T_K) == most &&
        fa_descale_smallest(&c.problem, &in, FA_T_K) == least);
  CHECK(fa_descale_largest(&c.problem, &in, FA_T_O) == 1 &&
        fa_descale_smallest(&c.problem, &in, FA_T_O) == 1);
  drop(&c, &in);
}

/* Rows with a step of 2, and names that are given twice, far from each other. */
static void test_safetensors(void) {
  char path[] = "/tmp/fa-test-data-edges-XXXXXX";
  const int fd = mkstemp(path);
  float value[] = {1, -1, 2, -2, 3, -3};
  const fa_tensor t = {.dtype = FA_F32, .rank = 1, .shape = {3}, .stride = {2}, .data = (char *)value};
  const fa_tensor *const tensors[] = {&t, &t, &t};
  const char *const names[] = {"x", "a", "x"};
  fa_safetensors f;
  fa_error err = {""};
  REQUIRE(fd >= 0);
  close(fd);
  REQUIRE(fa_safetensors_write(path, names, tensors, 1, NULL, NULL, 0, &err) == FA_OK);
  REQUIRE(fa_safetensors_open(path, &f, &err) == FA_OK);
  const fa_tensor *x = fa_safetensors_find(&f, "x");
  REQUIRE(x && x->rank == 1 && x->shape[0] == 3);
  for (int64_t e = 0; e < 3; ++e) CHECK(fa_tensor_get(x, &e) == (double)(e + 1));
  fa_safetensors_close(&f);
  CHECK(fa_safetensors_write(path, names, tensors, 3, NULL, NULL, 0, &err) == FA_ERR_INPUT &&
        strstr(err.text, "twice"));
  unlink(path);
}

int main(void) {
  test_types();
  test_sinks();
  test_integers();
  test_tree();
  test_descales();
  test_safetensors();
  return check_done();
}
