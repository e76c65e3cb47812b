/* Guarded tensors: every way in which a subject can touch memory that is not its own must be detected and
 * named. */
#include "cases/tensors/guard.h"
#include "cases/tensors/set.h"
#include "tests/support/check.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static char where[512];

static bool says(const char *part) {
  return strstr(where, part) != NULL;
}

static void test_access(void) {
  fa_tensors set = {0};
  fa_error err;
  const int64_t shape[3] = {2, 3, 4}, stride[3] = {24, 8, 2}; /* every second element, rows padded */
  REQUIRE(fa_tensors_add(&set, FA_T_O, FA_F16, 3, shape, stride, 5, &err) == FA_OK);
  fa_tensor *t = &set.t[FA_T_O];
  CHECK(fa_tensor_count(t) == 24 && ((uintptr_t)(t->data - 10) & 255) == 0);
  CHECK(set.buffer[FA_T_O].bytes == (5 + 24 + 16 + 6 + 1) * 2);
  for (int64_t i = 0; i < 24; ++i) {
    int64_t index[FA_MAX_RANK], at = 0;
    fa_tensor_unravel(t, i, index);
    for (int a = 0; a < 3; ++a) at = at * shape[a] + index[a];
    CHECK(at == i && fa_tensor_offset(t, index) == 2 * (index[0] * 24 + index[1] * 8 + index[2] * 2));
    CHECK(isnan(fa_tensor_get(t, index)) && fa_tensor_is_poison(t, index, FA_POISON_A));
    CHECK(!fa_tensor_is_poison(t, index, FA_POISON_B));
    fa_tensor_set(t, index, (double)i);
    CHECK(fa_tensor_get(t, index) == (double)i && !fa_tensor_is_poison(t, index, FA_POISON_A));
  }
  CHECK(fa_tensors_gaps_intact(&set, FA_T_O, FA_POISON_A, where, sizeof where));
  CHECK(!fa_tensors_gaps_intact(&set, FA_T_O, FA_POISON_B, where, sizeof where));
  fa_tensors_poison(&set, FA_T_O, FA_POISON_B);
  CHECK(fa_tensor_is_poison(t, (int64_t[]){1, 2, 3}, FA_POISON_B));
  CHECK(fa_tensors_gaps_intact(&set, FA_T_O, FA_POISON_B, where, sizeof where));
  const fa_tensor absent = {0};
  CHECK(fa_tensor_count(&absent) == 0);
  fa_tensors_free(&set);
}

/* A pattern's first element, or in types of one byte either of two, is NaN. */
static bool reads_as_nan(fa_dtype t, const char *p) {
  return isnan(fa_load(t, p)) || (fa_dtype_size(t) == 1 && isnan(fa_load(t, p + 1)));
}

/* All patterns are NaN in every float type, and differ from each other and from the NaNs of arithmetic. */
static void test_patterns(void) {
  const uint16_t pattern[] = {FA_PATTERN_GUARD,
                              FA_PATTERN_INPUT_GAP,
                              FA_PATTERN_POISON_A,
                              FA_PATTERN_POISON_B,
                              0x7fff,
                              0xffff,
                              0x7e00,
                              0xfe00,
                              0x7fc0,
                              0xffc0};
  for (int i = 0; i < 4; ++i) {
    fa_buffer b;
    REQUIRE(fa_buffer_alloc(&b, 32, NULL) == FA_OK);
    fa_buffer_fill(&b, pattern[i]);
    for (int t = 0; t < FA_N_DTYPES; ++t) {
      const double x = fa_load((fa_dtype)t, fa_buffer_payload(&b));
      if (t == FA_E2M1) /* has no NaN: what nobody reads has scales that are */
        continue;
      if (fa_dtype_is_float((fa_dtype)t))
        CHECK_MSG(reads_as_nan((fa_dtype)t, fa_buffer_payload(&b)), "%04x, %d", pattern[i], t);
      else
        CHECK(fa_dtype_size((fa_dtype)t) == 1 || x < 0 || x > 1e9);
    }
    for (int k = 0; k < 10; ++k) CHECK(k == i || pattern[k] != pattern[i]);
    fa_buffer_free(&b);
  }
}

static void test_guards(void) {
  fa_tensors set = {0};
  const int64_t shape[2] = {3, 5};
  REQUIRE(fa_tensors_add(&set, FA_T_Q, FA_F32, 2, shape, NULL, 0, NULL) == FA_OK);
  REQUIRE(fa_tensors_add(&set, FA_T_DQ, FA_BF16, 2, shape, NULL, 3, NULL) == FA_OK);
  CHECK(fa_tensors_guards_intact(&set, where, sizeof where));
  const struct {
    int64_t at; /* bytes relative to dq's payload */
    const char *says[3];
  } writes[] = {{-1, {"front guard of dq", "1 byte overwritten", "nearest 1 byte "}},
                {-FA_GUARD_BYTES, {"front guard of dq", "1 byte overwritten", "nearest 65536 bytes"}},
                {36, {"back guard of dq", "1 byte overwritten", "nearest 0 bytes past"}},
                {36 + 1000, {"back guard of dq", "1 byte overwritten", "nearest 1000 bytes past"}},
                {36 + FA_GUARD_BYTES - 1, {"back guard of dq", "1 byte overwritten", "nearest 65535 bytes"}}};
  CHECK(set.buffer[FA_T_DQ].bytes == 36);
  for (size_t i = 0; i < sizeof writes / sizeof *writes; ++i) {
    char *p = fa_buffer_payload(&set.buffer[FA_T_DQ]) + writes[i].at;
    const char old = *p;
    *p = (char)(old ^ 1);
    CHECK(!fa_tensors_guards_intact(&set, where, sizeof where));
    for (int k = 0; k < 3; ++k)
      CHECK_MSG(says(writes[i].says[k]), "\"%s\" lacks \"%s\"", where, writes[i].says[k]);
    *p = old;
    CHECK(fa_tensors_guards_intact(&set, where, sizeof where));
  }
  memset(fa_buffer_payload(&set.buffer[FA_T_Q]) + 60, 0, 64);
  CHECK(!fa_tensors_guards_intact(&set, where, sizeof where));
  CHECK_MSG(says("back guard of q: 64 bytes"), "%s", where);
  fa_tensors_free(&set);
}

static void test_gaps(void) {
  fa_tensors set = {0};
  const int64_t shape[3] = {2, 3, 4}, stride[3] = {4, 11, 1}; /* axes not in memory order, 3 unused per row */
  REQUIRE(fa_tensors_add(&set, FA_T_DK, FA_F32, 3, shape, stride, 2, NULL) == FA_OK);
  float *p = (float *)(void *)set.t[FA_T_DK].data;
  for (int64_t i = 0; i < 24; ++i) {
    int64_t index[FA_MAX_RANK];
    fa_tensor_unravel(&set.t[FA_T_DK], i, index);
    fa_tensor_set(&set.t[FA_T_DK], index, 1);
  }
  CHECK(fa_tensors_gaps_intact(&set, FA_T_DK, FA_POISON_A, where, sizeof where));
  const int gaps[] = {-2, -1, 8, 9, 10, 19, 20, 21};
  for (size_t i = 0; i < sizeof gaps / sizeof *gaps; ++i) {
    const float old = p[gaps[i]];
    p[gaps[i]] = 0;
    CHECK(!fa_tensors_gaps_intact(&set, FA_T_DK, FA_POISON_A, where, sizeof where));
    char part[64];
    snprintf(part, sizeof part, "first %d elements after element 0", gaps[i]);
    CHECK_MSG(says("gaps of dk: 1 element") && says(part), "%s", where);
    memcpy(&p[gaps[i]], &old, sizeof old);
  }
  CHECK(fa_tensors_gaps_intact(&set, FA_T_DK, FA_POISON_A, where, sizeof where));
  fa_tensors_free(&set);
}

/* Views share a buffer, so one's elements are not the other's gaps. */
static void test_views(void) {
  fa_tensors set = {0};
  fa_error err;
  const int64_t shape[2] = {3, 2}, stride[2] = {7, 1}; /* per row: 2 of dq, 2 of dk, 2 of dv, 1 unused */
  REQUIRE(fa_tensors_add_padded(&set, FA_T_DQ, FA_F32, 2, shape, stride, 0, 4, &err) == FA_OK);
  REQUIRE(fa_tensors_add_view(&set, FA_T_DK, FA_T_DQ, 2, shape, stride, 2, &err) == FA_OK);
  REQUIRE(fa_tensors_add_view(&set, FA_T_DV, FA_T_DQ, 2, shape, stride, 4, &err) == FA_OK);
  CHECK(set.owner[FA_T_DV] == FA_T_DQ && set.buffer[FA_T_DV].base == NULL);
  fa_tensors bad = set;
  CHECK(fa_tensors_add_view(&bad, FA_T_O, FA_T_DQ, 2, shape, stride, 5, &err) == FA_ERR_INPUT);
  CHECK(strstr(err.text, "o: reaches out of dq's buffer") != NULL);
  CHECK(fa_tensors_add_view(&bad, FA_T_O, FA_T_DQ, 2, shape, stride, -1, &err) == FA_ERR_INPUT);
  for (int64_t i = 0; i < 6; ++i) fa_tensor_set(&set.t[FA_T_DV], (int64_t[]){i / 2, i % 2}, 1);
  CHECK(fa_tensors_gaps_intact(&set, FA_T_DQ, FA_POISON_A, where, sizeof where));
  ((float *)(void *)set.t[FA_T_DQ].data)[6] = 3;
  CHECK(!fa_tensors_gaps_intact(&set, FA_T_DQ, FA_POISON_A, where, sizeof where));
  fa_tensors copy;
  REQUIRE(fa_tensors_clone(&copy, &set, &err) == FA_OK);
  CHECK(copy.t[FA_T_DV].data - copy.t[FA_T_DQ].data == 16 && copy.t[FA_T_DV].data != set.t[FA_T_DV].data);
  CHECK(fa_tensor_get(&copy.t[FA_T_DV], (int64_t[]){2, 1}) == 1);
  CHECK(fa_tensors_guards_intact(&copy, where, sizeof where));
  fa_tensors_free(&copy);
  fa_tensors_free(&set);
}

/* In a block of the caller's, which stays his. */
static void test_clone_into(void) {
  fa_tensors set = {0}, copy, plain;
  const int64_t shape[3] = {2, 3, 4};
  REQUIRE(fa_tensors_add(&set, FA_T_K, FA_F16, 3, shape, NULL, 1, NULL) == FA_OK);
  REQUIRE(fa_tensors_add(&set, FA_T_DQ, FA_F16, 3, shape, NULL, 0, NULL) == FA_OK);
  REQUIRE(fa_tensors_add_view(&set, FA_T_DV, FA_T_DQ, 2, (int64_t[]){2, 4}, (int64_t[]){4, 1}, 8, NULL) ==
          FA_OK);
  const size_t bytes = fa_tensors_block_bytes(&set);
  CHECK(bytes % FA_BLOCK_ALIGNMENT == 0 && bytes > 4 * FA_GUARD_BYTES);
  char *block = aligned_alloc(256, bytes);
  REQUIRE(block && fa_tensors_clone_poisoned(&plain, &set, FA_POISON_INF, NULL) == FA_OK);
  fa_tensors_clone_poisoned_into(&copy, &set, FA_POISON_INF, block);
  for (int i = 0; i < FA_T_COUNT; ++i) {
    const fa_buffer *a = &copy.buffer[i], *b = &plain.buffer[i];
    if (!b->base) continue;
    CHECK((a->base - block) % FA_BLOCK_ALIGNMENT == 0 && a->bytes == b->bytes);
    CHECK(memcmp(a->base, b->base, a->bytes + 2 * FA_GUARD_BYTES) == 0);
  }
  CHECK(copy.t[FA_T_DV].data - copy.t[FA_T_DQ].data == 16);
  fa_tensors_free(&copy);
  fa_tensors_free(&plain);
  fa_tensors_free(&set);
  free(block);
}

static void test_inputs_equal(void) {
  fa_tensors a = {0}, b;
  const int64_t shape[3] = {2, 3, 4}, stride[3] = {4, 11, 1}, n_new[4] = {1, 1, 1, 1};
  REQUIRE(fa_tensors_add(&a, FA_T_K, FA_F16, 3, shape, stride, 1, NULL) == FA_OK);
  REQUIRE(fa_tensors_add(&a, FA_T_O, FA_F16, 3, shape, NULL, 0, NULL) == FA_OK);
  REQUIRE(fa_tensors_clone(&b, &a, NULL) == FA_OK);
  CHECK(fa_tensors_inputs_equal(&a, &b, where, sizeof where));
  fa_tensor_set(&b.t[FA_T_O], (int64_t[]){0, 0, 0}, 1); /* an output may change */
  CHECK(fa_tensors_inputs_equal(&a, &b, where, sizeof where));
  char old[2];
  memcpy(old, b.t[FA_T_K].data + 2 * (4 + 22 + 3), 2);
  fa_tensor_set(&b.t[FA_T_K], (int64_t[]){1, 2, 3}, 1);
  CHECK(!fa_tensors_inputs_equal(&a, &b, where, sizeof where));
  CHECK_MSG(says("input k was modified: 2 bytes") && says("k[1,2,3]"), "%s", where);
  memcpy(b.t[FA_T_K].data + 2 * (4 + 22 + 3), old, 2);
  b.t[FA_T_K].data[2 * 9] = 1; /* in a gap */
  CHECK(!fa_tensors_inputs_equal(&a, &b, where, sizeof where));
  CHECK_MSG(says("in a gap, byte 20"), "%s", where);
  fa_tensors_free(&b);
  REQUIRE(fa_tensors_add(&a, FA_T_K_NEW, FA_F16, 4, n_new, NULL, 0, NULL) == FA_OK);
  REQUIRE(fa_tensors_clone(&b, &a, NULL) == FA_OK);
  fa_tensor_set(&b.t[FA_T_K], (int64_t[]){1, 2, 3}, 1); /* an append may change the cache */
  CHECK(fa_tensors_inputs_equal(&a, &b, where, sizeof where));
  fa_tensor_set(&b.t[FA_T_K_NEW], (int64_t[]){0, 0, 0, 0}, 1);
  CHECK(!fa_tensors_inputs_equal(&a, &b, where, sizeof where) && says("k_new[0,0,0,0]"));
  fa_tensors_free(&b);
  fa_tensors_free(&a);
}

static void test_sizes(void) {
  fa_tensors set = {0};
  fa_error err;
  const int64_t big = (int64_t)1 << 40, max = INT64_MAX, empty[3] = {4, 0, 8}, row[1] = {1}, two[2] = {2, 2};
  const int64_t huge[4] = {big, big, big, big}, wide[2] = {2, max}, with_zero[3] = {max, max, 0};
  CHECK(fa_tensors_add(&set, FA_T_Q, FA_F16, 4, huge, NULL, 0, &err) == FA_ERR_INPUT &&
        strncmp(err.text, "q: ", 3) == 0);
  CHECK(fa_tensors_add(&set, FA_T_Q, FA_F16, 2, wide, NULL, 0, &err) == FA_ERR_INPUT);
  CHECK(fa_tensors_add(&set, FA_T_Q, FA_F16, 2, two, (int64_t[]){max, 1}, 0, &err) == FA_ERR_INPUT);
  CHECK(fa_tensors_add(&set, FA_T_Q, FA_F16, 2, two, (int64_t[]){-1, 1}, 0, &err) == FA_ERR_INPUT);
  CHECK(fa_tensors_add(&set, FA_T_Q, FA_F16, 1, (int64_t[]){-1}, NULL, 0, &err) == FA_ERR_INPUT);
  CHECK(fa_tensors_add(&set, FA_T_Q, FA_F16, 1, row, NULL, -1, &err) == FA_ERR_INPUT);
  CHECK(fa_tensors_add(&set, FA_T_Q, FA_F16, 1, row, NULL, max, &err) == FA_ERR_INPUT);
  CHECK(fa_tensors_add(&set, FA_T_Q, FA_F16, 3, with_zero, NULL, 0, &err) == FA_ERR_INPUT);
  CHECK(set.t[FA_T_Q].data == NULL && set.buffer[FA_T_Q].base == NULL);
  REQUIRE(fa_tensors_add(&set, FA_T_K, FA_F16, 3, empty, NULL, 7, &err) == FA_OK);
  CHECK(set.t[FA_T_K].data != NULL && fa_tensor_count(&set.t[FA_T_K]) == 0); /* present but empty */
  CHECK(set.t[FA_T_K].stride[0] == 8 && set.t[FA_T_K].stride[1] == 8 && set.t[FA_T_K].stride[2] == 1);
  REQUIRE(fa_tensors_add(&set, FA_T_DK, FA_F16, 3, empty, NULL, 0, &err) == FA_OK);
  CHECK(fa_tensors_gaps_intact(&set, FA_T_DK, FA_POISON_A, where, sizeof where));
  CHECK(fa_tensors_guards_intact(&set, where, sizeof where));
  const int64_t expand[2] = {1000, 8};
  REQUIRE(fa_tensors_add(&set, FA_T_BIAS, FA_F32, 2, expand, (int64_t[]){0, 1}, 0, &err) == FA_OK);
  CHECK(set.buffer[FA_T_BIAS].bytes == 32);
  fa_buffer b;
  CHECK(fa_buffer_alloc(&b, (size_t)1 << 60, &err) == FA_ERR_MEMORY && b.base == NULL);
  fa_tensors_free(&set);
  CHECK(set.t[FA_T_K].data == NULL);
}

static void test_names(void) {
  for (int i = 0; i < FA_T_COUNT; ++i) {
    const char *name = fa_tensor_id_name((fa_tensor_id)i);
    REQUIRE(name && *name);
    for (int k = 0; k < i; ++k) CHECK(strcmp(name, fa_tensor_id_name((fa_tensor_id)k)) != 0);
  }
  CHECK(!fa_tensor_id_is_output(FA_T_FULL_KV_INDICES) && fa_tensor_id_is_output(FA_T_O));
}

int main(void) {
  test_access();
  test_patterns();
  test_guards();
  test_gaps();
  test_views();
  test_clone_into();
  test_inputs_equal();
  test_sizes();
  test_names();
  return check_done();
}
