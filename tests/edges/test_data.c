/* Data at the edges of what cases ask for, against values worked out by hand. */
#include "cases/arithmetic/formats.h"
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "cases/data/fill_plan.h"
#include "cases/tensors/descale.h"
#include "cases/tensors/safetensors.h"
#include "cases/tensors/table.h"
#include "tests/edges/taken.h"
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

/* To the nearest number of the type, and no further than its largest. */
static void test_quantised(void) {
  CHECK(fa_quantised(FA_E4M3, 3.3) == 3.25 && fa_quantised(FA_E4M3, -1e6) == -448);
  CHECK(fa_quantised(FA_E5M2, 3.3) == 3.5 && fa_quantised(FA_E5M2, 1e6) == 57344);
  CHECK(fa_quantised(FA_I8, 2.5) == 2 && fa_quantised(FA_I8, 300) == 127 &&
        fa_quantised(FA_I8, -300) == -128);
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

static int64_t count_of(const fa_problem *p, fa_tensor_id id, int64_t axis) {
  int64_t shape[4] = {0};
  fa_tensor_shape(p, id, shape);
  return shape[axis];
}

/* [rows, Sc, Hk, D] of caches, [B, n_new, Hk, D] of what is appended. */
static void test_cache_shapes(void) {
  fa_tensors in;
  fa_case c =
      build("{\"family\":\"kvcache\",\"batch\":2,\"seqlen_q\":3,\"seqlen_k\":12,\"heads_q\":4,\"heads_kv\":4,"
            "\"kvcache\":{\"len\":[5,6],\"batch_idx\":[2,0],\"new\":3}}",
            &in);
  const int64_t cache[] = {3, 12, 4, c.problem.head_dim}, new_keys[] = {2, 3, 4, c.problem.head_dim};
  for (int axis = 0; axis < 4; ++axis) {
    CHECK(count_of(&c.problem, FA_T_K, axis) == cache[axis]);
    CHECK(count_of(&c.problem, FA_T_K_NEW, axis) == new_keys[axis]);
  }
  drop(&c, &in);
}

/* Lengths lie in the caller's memory: what is before them is none of this call's. */
static void test_lengths_of_others(void) {
  int32_t lengths[] = {7, 3, 5};
  fa_tensors in, again;
  char where[200] = "";
  fa_case c = build(
      "{\"family\":\"kvcache\",\"batch\":2,\"seqlen_k\":8,\"head_dim\":8,\"kvcache\":{\"len\":[3,5]}}", &in);
  int32_t *own = c.problem.kvcache.len.v;
  c.problem.kvcache.len.v = lengths + 1;
  REQUIRE(fa_case_build(&c, &again, NULL) == FA_OK);
  CHECK_MSG(fa_tensors_guards_intact(&again, where, sizeof where), "%s", where);
  CHECK_MSG(fa_tensors_inputs_equal(&in, &again, where, sizeof where), "%s", where);
  c.problem.kvcache.len.v = own;
  fa_tensors_free(&again);
  drop(&c, &in);
}

static fa_tensor_bits count_calls(void *self, const fa_case *c, fa_tensors *set) {
  (void)c, (void)set;
  ++*(int *)self;
  return 0;
}

/* Who else makes values is asked for cases alone, and once. */
static void test_filler(void) {
  int n = 0;
  const fa_filler filler = {&n, count_calls};
  fa_tensors in;
  fa_case c = build("{\"seqlen_q\":3,\"head_dim\":8}", &in);
  fa_tensors_free(&in);
  REQUIRE(fa_case_build_with(&c, 1, &filler, &in, NULL) == FA_OK && n == 1);
  fa_tensors_free(&in);
  c.problem.heads_q = -1;
  CHECK(fa_case_build_with(&c, 1, &filler, &in, NULL) == FA_ERR_INPUT && n == 1);
  fa_case_free(&c);
}

/* What a device may fill, down to tensors of one element, and how many elements those of some buffers have. */
static void test_buffers(void) {
  fa_tensors in;
  fa_case c = build("{\"seqlen_q\":1,\"seqlen_k\":3,\"head_dim\":1,\"head_dim_v\":1}", &in);
  const fa_tensor_bits inputs =
      FA_TENSOR_BIT(FA_T_Q) | FA_TENSOR_BIT(FA_T_K) | FA_TENSOR_BIT(FA_T_V) | FA_TENSOR_BIT(FA_T_DO);
  CHECK(fa_tensor_count(&in.t[FA_T_Q]) == 1 && fa_fill_buffers(&c, &in) == inputs);
  CHECK(fa_fill_count(&in, FA_TENSOR_BIT(FA_T_Q)) == 1 && fa_fill_count(&in, FA_TENSOR_BIT(FA_T_K)) == 3);
  CHECK(fa_fill_count(&in, inputs) == 8 && fa_fill_count(&in, 0) == 0);
  drop(&c, &in);
}

/* A gradient that is made of V's mean. */
static void test_leaks(void) {
  size_t before = 0;
  for (int k = 0; k < 100; ++k) {
    fa_tensors in;
    if (k == 10) before = bytes_taken();
    fa_case c =
        build("{\"seqlen_q\":3,\"seqlen_k\":9,\"head_dim\":64,\"fill\":{\"do\":\"do_aligned\"}}", &in);
    drop(&c, &in);
  }
  CHECK_MSG(bytes_taken() < before + 4000, "%zu bytes are kept", bytes_taken() - before);
}

int main(void) {
  test_types();
  test_quantised();
  test_sinks();
  test_integers();
  test_tree();
  test_descales();
  test_safetensors();
  test_cache_shapes();
  test_lengths_of_others();
  test_filler();
  test_buffers();
  test_leaks();
  return check_done();
}
