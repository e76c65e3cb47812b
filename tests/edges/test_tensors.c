/* Tensors by hand: copies between strides, gaps that were written and which, what is wrong with the first bytes of a file, and memory
 * that is given back. */
#include "cases/tensors/guard.h"
#include "cases/tensors/safetensors.h"
#include "cases/vocabulary/problem.h"
#include "tests/edges/taken.h"
#include "tests/support/check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- copies ---- */

static void check_copy(const int64_t *to_stride, const int64_t *from_stride, fa_dtype type) {
  static char memory[2][2000];
  const fa_tensor to = {.dtype = type,
                        .rank = 3,
                        .shape = {2, 3, 4},
                        .stride = {to_stride[0], to_stride[1], to_stride[2]},
                        .data = memory[0]};
  const fa_tensor from = {.dtype = type,
                          .rank = 3,
                          .shape = {2, 3, 4},
                          .stride = {from_stride[0], from_stride[1], from_stride[2]},
                          .data = memory[1]};
  int64_t at[FA_MAX_RANK];
  memset(memory, 0x55, sizeof memory);
  for (int64_t e = 0; e < 24; ++e) {
    fa_tensor_unravel(&from, e, at);
    fa_tensor_set(&from, at, (double)(e % 16 + 1));
  }
  fa_tensor_copy(&to, &from);
  int n_same = 0;
  for (int64_t e = 0; e < 24; ++e) {
    fa_tensor_unravel(&to, e, at);
    CHECK_MSG(fa_tensor_get(&to, at) == (double)(e % 16 + 1), "element %d: %g", (int)e,
              fa_tensor_get(&to, at));
  }
  for (size_t i = 0; i < sizeof memory[0]; ++i) n_same += memory[0][i] == 0x55;
  CHECK(n_same >= (int)sizeof memory[0] - 24 * (int)fa_dtype_size(type)); /* and nothing else is written */
}

static void check_copies(void) {
  static const int64_t strides[][3] = {{12, 4, 1}, {30, 9, 2}, {4, 8, 1}, {1, 2, 6}};
  static const fa_dtype types[] = {FA_F16, FA_F32, FA_F64, FA_E4M3};
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < 4; ++b)
      for (int t = 0; t < 4; ++t) check_copy(strides[a], strides[b], types[t]);
  double x[2] = {5, 6};
  const fa_tensor to = {.dtype = FA_F64, .data = (char *)x},
                  from = {.dtype = FA_F64, .data = (char *)(x + 1)};
  fa_tensor_copy(&to, &from); /* a single number */
  CHECK(x[0] == 6 && x[1] == 6);
}

/* An axis that is repeated: read again and again, or written again and again. */
static void check_repeated(void) {
  float x[5] = {1, 2, 3, 4, 5}, y[5] = {0};
  const fa_tensor four = {.dtype = FA_F32, .rank = 1, .shape = {4}, .stride = {1}, .data = (char *)x};
  const fa_tensor again = {.dtype = FA_F32, .rank = 1, .shape = {4}, .data = (char *)y};
  fa_tensor_copy(&again, &four);
  CHECK(y[0] == 4 && y[1] == 0 && y[2] == 0 && y[3] == 0 && y[4] == 0);
  fa_tensor_copy(&four, &again);
  CHECK(x[0] == 4 && x[1] == 4 && x[2] == 4 && x[3] == 4 && x[4] == 5);
}

static void check_dense(void) {
  const fa_tensor rows = {.dtype = FA_F16, .rank = 3, .shape = {2, 1, 4}, .stride = {4, 99, 1}};
  fa_tensor gaps = rows, turned = rows, again = rows;
  gaps.stride[0] = 5;
  turned.stride[0] = 1, turned.stride[2] = 2;
  again.stride[0] = 0;
  CHECK(fa_tensor_is_dense(&rows) && fa_tensor_is_dense(&turned));
  CHECK(!fa_tensor_is_dense(&gaps) && !fa_tensor_is_dense(&again));
}

static void check_text(void) {
  const fa_tensor t = {.dtype = FA_BF16, .rank = 3, .shape = {2, 30, 400}};
  char text[40];
  fa_tensor_shape_text(&t, text, sizeof text);
  CHECK_MSG(strcmp(text, "bf16 [2,30,400]") == 0, "%s", text);
  memset(text, 'x', sizeof text);
  fa_tensor_shape_text(&t, text, 15);
  CHECK_MSG(strcmp(text, "bf16 [2,30,400") == 0 && text[15] == 'x', "%s", text);
}

/* ---- gaps ---- */

/* Rows of 4 elements with 3 after each, in a buffer with more before and behind. */
static void check_gap(fa_dtype type, fa_poison poison, uint32_t pattern) {
  const int64_t shape[] = {2, 3, 4}, stride[] = {26, 7, 1};
  const size_t size = fa_dtype_size(type);
  fa_tensors set = {0};
  fa_error err = {""};
  char where[200] = "", want[200];
  CHECK_MSG(fa_tensors_add_padded(&set, FA_T_O, type, 3, shape, stride, 5, 6, &err) == FA_OK, "%s", err.text);
  CHECK(fa_tensors_gaps_intact(&set, FA_T_LSE, poison, where, sizeof where)); /* absent */
  fa_buffer_fill_word(&set.buffer[FA_T_O], pattern);
  int64_t at[FA_MAX_RANK];
  for (int64_t e = 0; e < 24; ++e) {
    fa_tensor_unravel(&set.t[FA_T_O], e, at);
    fa_tensor_set(&set.t[FA_T_O], at, 1);
  }
  CHECK_MSG(fa_tensors_gaps_intact(&set, FA_T_O, poison, where, sizeof where), "%s", where);
  char *payload = fa_buffer_payload(&set.buffer[FA_T_O]);
  const int64_t n = (int64_t)(set.buffer[FA_T_O].bytes / size);
  int n_gaps = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t e = i - 5;
    const bool used = e >= 0 && e / 26 < 2 && e % 26 / 7 < 3 && e % 26 % 7 < 4;
    char before[8];
    memcpy(before, payload + i * (int64_t)size, size);
    payload[(i + 1) * (int64_t)size - 1] ^= 0x11;
    const bool intact = fa_tensors_gaps_intact(&set, FA_T_O, poison, where, sizeof where);
    CHECK_MSG(intact == used, "element %d", (int)e);
    snprintf(want, sizeof want,
             "gaps of o: 1 element written that the tensor's strides skip, the first %" PRId64
             " elements after element 0",
             e);
    if (!intact) CHECK_MSG(strcmp(where, want) == 0, "%s, not %s", where, want);
    n_gaps += !intact;
    memcpy(payload + i * (int64_t)size, before, size);
  }
  CHECK(n_gaps == n - 24 && n_gaps > 20);
  payload[0] ^= 0x11, payload[(n - 1) * (int64_t)size] ^= 0x11;
  CHECK(!fa_tensors_gaps_intact(&set, FA_T_O, poison, where, sizeof where) &&
        strstr(where, "gaps of o: 2 elements written"));
  fa_tensors_free(&set);
}

static void check_gaps(void) {
  check_gap(FA_F16, FA_POISON_A, FA_PATTERN_WORD(FA_PATTERN_POISON_A));
  check_gap(FA_F32, FA_POISON_B, FA_PATTERN_WORD(FA_PATTERN_POISON_B));
  check_gap(FA_F16, FA_POISON_INF, 0x7c007c00);
  check_gap(FA_BF16, FA_POISON_INF, 0x7f807f80);
  check_gap(FA_F32, FA_POISON_INF, 0x7f800000);
  check_gap(FA_E4M3, FA_POISON_INF, 0x7e7e7e7e);
  check_gap(FA_E5M2, FA_POISON_INF, 0x7c7c7c7c);
  check_gap(FA_F32, FA_POISON_ZERO, 0);
}

/* Memory may hold another pattern all over. */
static void check_other_pattern(void) {
  char bytes[12];
  fa_pattern_fill(bytes, sizeof bytes, 0x01020304);
  CHECK(fa_pattern_first_difference(bytes, sizeof bytes, 0x01020304) == sizeof bytes);
  CHECK(fa_pattern_first_difference(bytes, sizeof bytes, 0x01020305) == 0);
  CHECK(fa_pattern_first_difference(bytes, sizeof bytes, 0x11020304) == 3);
}

/* Elements before the first and behind the last are as many as there are. */
static void check_outside(void) {
  const int64_t four = 4, one = 1;
  fa_tensors set = {0};
  CHECK(fa_tensors_add_padded(&set, FA_T_O, FA_F32, 1, &four, &one, -1, 0, NULL) == FA_ERR_INPUT);
  CHECK(fa_tensors_add_padded(&set, FA_T_O, FA_F32, 1, &four, &one, 0, -1, NULL) == FA_ERR_INPUT);
  CHECK(fa_tensors_add_padded(&set, FA_T_O, FA_F32, 1, &four, &one, 0, 0, NULL) == FA_OK);
  fa_tensors_free(&set);
}

/* ---- files ---- */

static fa_status parse(const void *bytes, size_t n, fa_error *err) {
  fa_safetensors f;
  const fa_status status = fa_safetensors_parse(bytes, n, "x", &f, err);
  if (status == FA_OK) fa_safetensors_close(&f);
  return status;
}

static void refuse(const void *bytes, size_t n, const char *says) {
  fa_error err = {""};
  CHECK(parse(bytes, n, &err) == FA_ERR_INPUT);
  CHECK_MSG(strstr(err.text, says), "%s, not %s", err.text, says);
}

#define ONE "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}"

static void check_header(void) {
  _Alignas(8) char file[200] = {sizeof ONE - 1};
  fa_error err = {""};
  memcpy(file + 8, ONE, sizeof ONE - 1);
  const size_t n = 8 + sizeof ONE - 1;
  CHECK_MSG(parse(file, n + 8, &err) == FA_OK, "%s", err.text);
  for (size_t k = 0; k < 8; ++k)
    refuse(file, k, "bytes; a safetensors file starts with 8 bytes of header length");
  refuse(file, n + 7, "");
  refuse(file, n + 13, "x: 5 bytes after the last tensor's data belong to no tensor");
  file[7] = 1;
  refuse(file, n + 8, "header of 72057594037927990 bytes, but only 62 bytes follow");
  file[7] = 0, file[0] = 0;
  refuse(file, n + 8, "the header must start with {");
}

/* A tensor without elements begins where the one that is named first does. */
static void check_empty_behind(void) {
  static const char text[] = "{\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                             "\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}";
  _Alignas(8) char file[200] = {sizeof text - 1};
  fa_error err = {""};
  memcpy(file + 8, text, sizeof text - 1);
  CHECK_MSG(parse(file, 8 + sizeof text - 1 + 4, &err) == FA_OK, "%s", err.text);
}

/* So many values, each an array in the one before, are refused before anybody makes a tree of them. */
static void check_nested(void) {
  enum { N = 4000100 };
  char *file = malloc(N);
  const int64_t length = N - 8;
  REQUIRE(file);
  memcpy(file, &length, 8);
  memset(file + 8, '[', N - 8);
  memcpy(file + 8, "{\"a\":", 5);
  refuse(file, N, "header of more than 4000000 JSON values");
  free(file);
}

/* A regular file of which the system makes no memory. */
static void check_unmapped(void) {
  static const char path[] = "/sys/kernel/mm/transparent_hugepage/enabled";
  fa_safetensors f;
  fa_error err = {""};
  if (access(path, R_OK) != 0) return;
  CHECK(fa_safetensors_open(path, &f, &err) == FA_ERR_IO);
  CHECK_MSG(strstr(err.text, path) && strstr(err.text, "No such device"), "%s", err.text);
}

static void check_no_file(void) {
  fa_safetensors f;
  fa_error err = {""};
  CHECK(fa_safetensors_open("/tmp/fa-tensors-that-nobody-made", &f, &err) == FA_ERR_IO);
  CHECK_MSG(strstr(err.text, "No such file"), "%s", err.text);
}

/* A file of less than 8 bytes, and one of 8. */
static void check_short_files(void) {
  char path[] = "/tmp/fa-tensors-XXXXXX";
  const int fd = mkstemp(path);
  REQUIRE(fd >= 0);
  for (int n = 0; n < 9; ++n) {
    fa_safetensors f;
    fa_error err = {""};
    REQUIRE(ftruncate(fd, n) == 0);
    CHECK(fa_safetensors_open(path, &f, &err) == FA_ERR_INPUT);
    CHECK_MSG(!strstr(err.text, "starts with 8 bytes of header length") == (n >= 8), "%d: %s", n, err.text);
  }
  close(fd);
  unlink(path);
}

/* ---- what is given back ---- */

static void check_leaks(void) {
  static char names[3000][20];
  static const char *name[3000];
  static const fa_tensor *tensor[3000];
  static float x[2];
  const fa_tensor t = {.dtype = FA_F32, .rank = 1, .shape = {2}, .stride = {1}, .data = (char *)x};
  char path[] = "/tmp/fa-tensors-XXXXXX";
  fa_error err = {""};
  close(mkstemp(path));
  for (int i = 0; i < 3000; ++i) {
    snprintf(names[i], sizeof names[i], "group/tensor %d", i);
    name[i] = names[i], tensor[i] = &t;
  }
  size_t before = 0;
  for (int k = 0; k < 12; ++k) {
    CHECK_MSG(fa_safetensors_write(path, name, tensor, 3000, NULL, NULL, 0, &err) == FA_OK, "%s", err.text);
    if (k == 2) before = bytes_taken();
  }
  CHECK_MSG(bytes_taken() < before + 100000, "%zu bytes are kept", bytes_taken() - before);
  unlink(path);
}

/* A set in one block begins each buffer behind the last one's guards, however few bytes are over; and as much as a tensor may span
 * may lie behind its elements. */
static void check_block(void) {
  static const int64_t one = 1;
  fa_tensors set = {0};
  REQUIRE(fa_tensors_add_padded(&set, FA_T_Q, FA_E4M3, 1, &one, &one, 0, 0, NULL) == FA_OK);
  CHECK(fa_tensors_block_bytes(&set) == 2 * FA_GUARD_BYTES + FA_BLOCK_ALIGNMENT);
  CHECK(fa_tensors_add_padded(&set, FA_T_K, FA_E4M3, 1, &one, &one, 0, FA_MAX_SPAN, NULL) == FA_OK);
  CHECK(set.buffer[FA_T_K].bytes == (size_t)FA_MAX_SPAN + 1 && fa_tensors_block_bytes(&set) == 0);
  CHECK(fa_tensors_add_padded(&set, FA_T_V, FA_E4M3, 1, &one, &one, 0, FA_MAX_SPAN + 1, NULL) ==
        FA_ERR_INPUT);
  fa_tensors_free(&set);
}

int main(void) {
  check_copies();
  check_block();
  check_repeated();
  check_dense();
  check_text();
  check_gaps();
  check_other_pattern();
  check_outside();
  check_header();
  check_empty_behind();
  check_nested();
  check_unmapped();
  check_no_file();
  check_short_files();
  check_leaks();
  return check_done();
}
