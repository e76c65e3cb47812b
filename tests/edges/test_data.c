/* Data at the edges of what cases ask for, against values worked out by hand. */
#include "cases/arithmetic/formats.h"
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "cases/data/fill_plan.h"
#include "cases/tensors/descale.h"
#include "cases/tensors/guard.h"
#include "cases/tensors/mixed.h"
#include "cases/tensors/safetensors.h"
#include "cases/tensors/table.h"
#include "tests/edges/taken.h"
#include "tests/support/check.h"

#include <math.h>
#include <stdio.h>
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

/* A number beside the middle between two is in doubt on either side of it, and of either sign; one that is divided exactly is not. */
static void test_doubt(void) {
  for (int sign = -1; sign <= 1; sign += 2)
    for (int side = -1; side <= 1; side += 2)
      CHECK(fa_quantised_doubt(FA_I8, sign * 1.5 * (1 + side * 0x1p-24), 3) == 1);
  CHECK(fa_quantised_doubt(FA_I8, 1.6, 3) == 0 && fa_quantised_doubt(FA_I8, 2 * (1 + 0x1p-24), 4) == 0);
}

/* What a call quantises is in doubt by its own sequence's descale, or by those of all that share its memory. */
static void test_doubt_of_others(void) {
  static float descale[2] = {4, 4};
  static fa_case c = {
      .problem = {.batch = 2,
                  .heads_q = 1,
                  .heads_kv = 1,
                  .quantized = {.present = true, .dtype = FA_I8, .per = FA_PER_HEAD, .quantizes_new = true}}};
  static fa_tensors set;
  const fa_tensor stored = {.dtype = FA_F32, .rank = 1, .shape = {1}, .stride = {1}};
  const int64_t index[FA_MAX_RANK] = {0};
  set.t[FA_T_K_DESCALE] =
      (fa_tensor){.dtype = FA_F32, .rank = 2, .shape = {2, 1}, .stride = {1, 1}, .data = (char *)descale};
  for (int at = 0; at < 8; ++at) {
    const int own = at & 1, other = at >> 1 & 1;
    const bool shared = at >> 2;
    const fa_fill_row row = {.c = &c, .set = &set, .id = FA_T_K_NEW, .b = own};
    double value = 1.5;
    c.strides[FA_T_K_NEW].expand[0] = shared;
    descale[0] = descale[1] = 4, descale[other] = 3; /* 1.5 / 3 is the middle */
    fa_quantize_row(&row, &stored, index, &value);
    CHECK_MSG((value != 1.5) == (shared || other == own), "%d: %.9g", at, value);
  }
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

/* Parts without rows have a place too, with a gap between the rows that there are not. */
static void test_empty_parts(void) {
  fa_tensors in;
  fa_case c = build(
      "{\"family\":\"merge\",\"seqlen_q\":0,\"head_dim\":8,\"strides\":{\"o_parts\":{\"gap\":[0,8,0]}}}",
      &in);
  CHECK(in.t[FA_T_O_PARTS].stride[0] == 8);
  drop(&c, &in);
}

/* Keys before a sequence's first have no descale. */
static void test_descales_of_keys(void) {
  fa_tensors in;
  fa_case c = build(
      "{\"family\":\"kvcache\",\"head_dim\":16,\"seqlen_q\":1,\"seqlen_k\":32,\"kvcache\":{\"len\":[20]},"
      "\"leftpad_k\":[3],\"quantized\":{\"dtype\":\"i8\",\"descale\":\"token\"}}",
      &in);
  for (int64_t s = 0; s < 20; ++s) {
    const int64_t at[3] = {0, s, 0};
    CHECK_MSG(isnan(fa_tensor_get(&in.t[FA_T_K_DESCALE], at)) == (s < 3), "key %lld", (long long)s);
  }
  drop(&c, &in);
}

/* A table of angles has the rows that somebody reads. */
static void test_one_angle(void) {
  fa_tensors in;
  fa_case c = build("{\"family\":\"kvcache\",\"head_dim\":16,\"seqlen_q\":1,\"seqlen_k\":32,\"kvcache\":{"
                    "\"len\":[0],\"new\":1,"
                    "\"rotary\":{\"dim\":16}}}",
                    &in);
  CHECK(in.t[FA_T_ROTARY_COS].shape[0] == 1 && in.t[FA_T_ROTARY_SIN].shape[0] == 1);
  drop(&c, &in);
}

/* With one column a step's number is there whole. */
static void test_narrow_staircase(void) {
  const int64_t at[4] = {0, 300, 0, 0};
  fa_tensors in;
  fa_case c = build(
      "{\"family\":\"flex\",\"head_dim\":1,\"seqlen_q\":2,\"seqlen_k\":301,\"fill\":\"staircase_up\"}", &in);
  CHECK_MSG(fa_tensor_get(&in.t[FA_T_K], at) == 300, "%g", fa_tensor_get(&in.t[FA_T_K], at));
  drop(&c, &in);
}

/* Lists that are made from a mask later hide no key yet. */
static void test_one_hot_of_later_lists(void) {
  const int64_t last[4] = {0, 0, 0, 31};
  fa_tensors in;
  fa_case c = build("{\"family\":\"flex\",\"head_dim\":32,\"seqlen_q\":16,\"seqlen_k\":64,\"fill\":\"one_"
                    "hot\",\"mask_mod\":\"q_idx >= "
                    "kv_idx\",\"block_sparse\":{\"q_block\":16,\"kv_block\":16,\"from\":\"mask_mod\"}}",
                    &in);
  CHECK(fa_tensor_get(&in.t[FA_T_Q], last) != 0);
  drop(&c, &in);
}

/* Elements before a tensor whose heads come first, and behind it. */
static void test_offset(void) {
  fa_tensors in;
  fa_case c = build(
      "{\"seqlen_q\":3,\"heads_q\":2,\"head_dim\":8,\"strides\":{\"lse\":{\"offset\":3,\"tail\":5}}}", &in);
  const fa_buffer *b = &in.buffer[FA_T_LSE];
  CHECK(in.t[FA_T_LSE].data == fa_buffer_payload(b) + 3 * sizeof(float));
  CHECK(b->bytes == (3 + 6 + 5) * sizeof(float));
  drop(&c, &in);
}

/* Columns behind the tiles have no descale. */
static void test_mixed_descales(void) {
  static const fa_problem p = {.head_dim = 2 * FA_MIXED_TILE + 64, .head_dim_v = 2 * FA_MIXED_TILE};
  _Alignas(4) char row[2 * FA_MIXED_TILE + 200];
  const float descale[] = {3, 5, 7};
  memcpy(row + p.head_dim_v, descale, sizeof descale);
  CHECK(fa_mixed_descale(&p, row, 0) == 3 && fa_mixed_descale(&p, row, 1) == 5);
  CHECK(fa_mixed_descale(&p, row, 2) == 1);
  const fa_problem mixed = {.quantized = {.present = true, .per = FA_PER_TILE}};
  CHECK(fa_tensor_descale_of(&mixed, FA_T_K) == FA_T_COUNT); /* they lie in its rows */
}

/* A scale of O that is one power of two of six. */
static void test_o_scale(void) {
  int64_t seen[6] = {0};
  for (int seed = 1; seed <= 60; ++seed) {
    char text[200];
    fa_tensors in;
    snprintf(text, sizeof text,
             "{\"dtype\":\"bf16\",\"seqlen_q\":2,\"head_dim\":16,\"data_seed\":\"%d\",\"quantized\":{"
             "\"dtype\":\"e4m3\",\"values\":\"powers\",\"o\":\"e4m3\"}}",
             seed);
    fa_case c = build(text, &in);
    const int64_t one = 0;
    const double power = log2(fa_tensor_get(&in.t[FA_T_O_SCALE], &one));
    CHECK_MSG(power == floor(power) && power >= 2 && power <= 7, "2^%g", power);
    if (power >= 2 && power <= 7) ++seen[(int)power - 2];
    drop(&c, &in);
  }
  for (int i = 0; i < 6; ++i) CHECK(seen[i] > 0);
}

/* Bytes of a file's header; *last: its last one. */
static uint64_t header_of(const char *path, char *last) {
  uint64_t n = 0;
  FILE *f = fopen(path, "rb");
  REQUIRE(f && fread(&n, sizeof n, 1, f) == 1 && fseek(f, (long)n - 1, SEEK_CUR) == 0 &&
          fread(last, 1, 1, f) == 1);
  fclose(f);
  return n;
}

/* A header is filled up to whole words, and no further: names of every length modulo 8. */
static void test_padding(void) {
  char path[] = "/tmp/fa-test-data-edges-XXXXXX", name[] = "12345678", last;
  float value[] = {1};
  const fa_tensor t = {.dtype = FA_F32, .rank = 1, .shape = {1}, .stride = {1}, .data = (char *)value};
  const fa_tensor *const tensors[] = {&t};
  const char *const names[] = {name};
  uint64_t before = 0;
  int grown = 0, whole = 0;
  close(mkstemp(path));
  for (int n = 0; n < 8; ++n) {
    name[8 - n] = 0;
    REQUIRE(fa_safetensors_write(path, names, tensors, 1, NULL, NULL, 0, NULL) == FA_OK);
    const uint64_t bytes = header_of(path, &last);
    CHECK(bytes % 8 == 0);
    grown += n > 0 && bytes != before, whole += last == '}';
    before = bytes;
  }
  CHECK_MSG(grown == 1 && whole == 1, "%d, %d", grown, whole);
  unlink(path);
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
  test_doubt();
  test_doubt_of_others();
  test_sinks();
  test_integers();
  test_tree();
  test_descales();
  test_empty_parts();
  test_descales_of_keys();
  test_one_angle();
  test_narrow_staircase();
  test_one_hot_of_later_lists();
  test_offset();
  test_mixed_descales();
  test_o_scale();
  test_padding();
  test_safetensors();
  test_cache_shapes();
  test_lengths_of_others();
  test_filler();
  test_buffers();
  test_leaks();
  return check_done();
}
