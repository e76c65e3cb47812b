/* Buffers that are mostly address space: which bytes have memory, what they hold after more was touched, views in them, and gaps and
 * inputs far behind the first element. Also buffers larger than the machine's memory, which the linker makes small here. */
#include "cases/tensors/guard.h"
#include "tests/edges/taken.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, FAR = 100 << 20 };

static long physical_pages; /* 0: as many as there are */
long __real_sysconf(int name);
long __wrap_sysconf(int name);
long __wrap_sysconf(int name) {
  return name == _SC_PHYS_PAGES && physical_pages ? physical_pages : __real_sysconf(name);
}

static bool is_span(const fa_buffer *b, int i, size_t first_page, size_t end_page) {
  const fa_span s = fa_buffer_span(b, i);
  return s.begin == first_page * PAGE && s.end == end_page * PAGE;
}

/* Every byte of these pages. */
static bool holds(const fa_buffer *b, size_t first_page, size_t end_page, uint16_t pattern) {
  const size_t n = (end_page - first_page) * PAGE;
  return fa_pattern_first_difference(fa_buffer_payload(b) + first_page * PAGE, n, FA_PATTERN_WORD(pattern)) ==
         n;
}

/* ---- when a buffer is reserved ---- */

static void check_sparse(void) {
  enum { N = FA_VIRTUAL_BYTES / (4 * PAGE) };
  static fa_span none[N];
  const size_t bytes = 2 * FA_VIRTUAL_BYTES;
  const fa_span half = {0, bytes / 2 - 4 * PAGE}, less = {0, bytes / 2 - 4 * PAGE - 1};
  CHECK(fa_spans_are_sparse(&less, 1, bytes) && !fa_spans_are_sparse(&half, 1, bytes));
  CHECK(!fa_spans_are_sparse(none, N, bytes) &&
        fa_spans_are_sparse(none, N - 1, bytes)); /* a span takes pages around it */
}

static void check_too_large(void) {
  fa_buffer b;
  fa_error err = {""};
  physical_pages = 100 << 8; /* 100 MiB */
  b = (fa_buffer){.base = (char *)&b, .bytes = 7};
  CHECK(fa_buffer_alloc(&b, 100 << 20, &err) == FA_ERR_MEMORY &&
        strstr(err.text, "out of memory: 104857600 bytes"));
  CHECK(!b.base && b.bytes == 0); /* so that it can be freed all the same */
  CHECK(fa_buffer_alloc(&b, 99 << 20, &err) == FA_OK);
  fa_buffer_free(&b);
  physical_pages = 0;
}

/* ---- which bytes have memory ---- */

static void check_reserve(void) {
  const fa_span touched[] = {{11 * PAGE + 7, 20 * PAGE - 1},
                             {10 * PAGE + 5, 12 * PAGE},
                             {13 * PAGE, 14 * PAGE},
                             {30 * PAGE, 31 * PAGE}};
  fa_buffer b;
  REQUIRE(fa_buffer_reserve(&b, 100 * PAGE, touched, 4, NULL) == FA_OK);
  CHECK(fa_buffer_n_spans(&b) == 2 && is_span(&b, 0, 9, 21) && is_span(&b, 1, 29, 32));
  fa_buffer_fill(&b, FA_PATTERN_POISON_A);
  CHECK(holds(&b, 9, 21, FA_PATTERN_POISON_A) && holds(&b, 29, 32, FA_PATTERN_POISON_A));
  fa_buffer_free(&b);
}

/* The next block of so many bytes has garbage behind them. */
static void leave_garbage(size_t bytes) {
  volatile char *block = malloc(bytes + 8);
  REQUIRE(block);
  for (size_t i = 0; i < bytes + 8; ++i) block[i] = 0x7e;
  free((char *)block);
}

/* What was there stays, to the last byte of its last page; what is new holds the pattern. */
static void check_touch(void) {
  const fa_span first = {10 * PAGE, 11 * PAGE}, more[] = {{11 * PAGE, 13 * PAGE}, {50 * PAGE, 51 * PAGE}},
                within = {10 * PAGE, 10 * PAGE + 1};
  fa_buffer b;
  REQUIRE(fa_buffer_reserve(&b, 100 * PAGE, &first, 1, NULL) == FA_OK);
  fa_buffer_fill(&b, FA_PATTERN_POISON_A);
  leave_garbage(2 * sizeof(size_t) + 3 * sizeof(fa_span)); /* of the list of islands */
  REQUIRE(fa_buffer_touch(&b, more, 2, FA_PATTERN_POISON_B, NULL) == FA_OK);
  CHECK(fa_buffer_n_spans(&b) == 2 && is_span(&b, 0, 9, 14) && is_span(&b, 1, 49, 52));
  CHECK(holds(&b, 9, 12, FA_PATTERN_POISON_A) && holds(&b, 12, 14, FA_PATTERN_POISON_B) &&
        holds(&b, 49, 52, FA_PATTERN_POISON_B));
  REQUIRE(fa_buffer_touch(&b, &within, 1, FA_PATTERN_GUARD, NULL) == FA_OK);
  CHECK(fa_buffer_n_spans(&b) == 2 && is_span(&b, 0, 9, 14) && holds(&b, 9, 12, FA_PATTERN_POISON_A));
  fa_buffer_free(&b);
  REQUIRE(fa_buffer_alloc(&b, 100 * PAGE, NULL) == FA_OK);
  CHECK(fa_buffer_touch(&b, more, 2, FA_PATTERN_POISON_B, NULL) == FA_OK && !fa_buffer_is_virtual(&b));
  fa_buffer_free(&b);
}

/* A buffer like one for which there is no address space keeps nothing. */
static void check_alloc_like(void) {
  const fa_span touched = {0, PAGE};
  fa_buffer b, copy;
  size_t before = 0;
  REQUIRE(fa_buffer_reserve(&b, 100 * PAGE, &touched, 1, NULL) == FA_OK);
  fa_buffer large = b;
  large.bytes = (size_t)1 << 62;
  for (int k = 0; k < 200; ++k) {
    if (k == 20) before = bytes_taken();
    CHECK(fa_buffer_alloc_like(&copy, &large, NULL) == FA_ERR_MEMORY);
  }
  CHECK(bytes_taken() < before + 4000);
  fa_buffer_free(&b);
}

/* ---- tensors ---- */

/* Two groups of three rows: the groups far from each other, rows about 100,000 bytes, which is an island each. */
static void check_islands(void) {
  const int64_t shape[] = {2, 3, 4}, stride[] = {FAR, 25000, 1};
  fa_tensors set = {0};
  REQUIRE(fa_tensors_add(&set, FA_T_Q, FA_F32, 3, shape, stride, 0, NULL) == FA_OK);
  CHECK(fa_buffer_n_spans(&set.buffer[FA_T_Q]) == 6);
  fa_tensors_free(&set);
}

/* As many islands as there may be, and one more in a machine that has no memory for all of the buffer. */
static void check_most_islands(void) {
  const int64_t shape[] = {FA_MAX_ISLANDS, 2}, more[] = {FA_MAX_ISLANDS + 1, 2}, stride[] = {70000, 1};
  fa_tensors set = {0};
  fa_error err = {""};
  physical_pages = 100 << 8;
  CHECK(fa_tensors_add(&set, FA_T_Q, FA_F16, 2, shape, stride, 0, &err) == FA_OK);
  CHECK(fa_buffer_n_spans(&set.buffer[FA_T_Q]) == FA_MAX_ISLANDS);
  fa_tensors_free(&set);
  CHECK(fa_tensors_add(&set, FA_T_Q, FA_F16, 2, more, stride, 0, &err) == FA_ERR_UNSUPPORTED);
  CHECK_MSG(strstr(err.text, "in more than 4096 places"), "%s", err.text);
  fa_tensors_free(&set);
  physical_pages = 0;
}

/* A view in the middle of a buffer that has memory at its ends alone. */
static void check_view(void) {
  const int64_t shape[] = {2, 4}, stride[] = {FAR, 1}, four = 4, one = 1;
  fa_tensors set = {0};
  REQUIRE(fa_tensors_add(&set, FA_T_Q, FA_F32, 2, shape, stride, 0, NULL) == FA_OK);
  REQUIRE(fa_tensors_add_view(&set, FA_T_K, FA_T_Q, 1, &four, &one, FAR / 2, NULL) == FA_OK);
  CHECK(fa_buffer_n_spans(&set.buffer[FA_T_Q]) == 3);
  for (int64_t i = 0; i < 4; ++i) CHECK(fa_tensor_has_pattern(&set.t[FA_T_K], &i, FA_PATTERN_INPUT_GAP));
  fa_tensors_free(&set);
}

/* In a buffer that has memory everywhere, elements may be in any number of places. */
static void check_scattered_view(void) {
  const size_t bytes = (size_t)600 << 20;
  const int64_t shape[] = {FA_MAX_ISLANDS + 1, 2}, stride[] = {70000, 1};
  char *memory =
      mmap(NULL, bytes + 2 * FA_GUARD_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  fa_tensors set = {.buffer[FA_T_Q] = {.base = memory, .bytes = bytes, .borrowed = true}};
  set.t[FA_T_Q] =
      (fa_tensor){.dtype = FA_F16, .rank = 1, .shape = {1}, .stride = {1}, .data = memory + FA_GUARD_BYTES};
  set.owner[FA_T_Q] = FA_T_Q;
  CHECK(fa_tensors_add_view(&set, FA_T_K, FA_T_Q, 2, shape, stride, 0, NULL) == FA_OK);
  munmap(memory, bytes + 2 * FA_GUARD_BYTES);
}

/* ---- gaps and inputs ---- */

/* One number a row, with more behind it. */
static void check_single_elements(void) {
  const int64_t shape[] = {3, 1}, stride[] = {4, 1};
  char where[200] = "";
  fa_tensors set = {0};
  REQUIRE(fa_tensors_add(&set, FA_T_LSE, FA_F32, 2, shape, stride, 0, NULL) == FA_OK);
  for (int64_t i = 0; i < 3; ++i) fa_tensor_set(&set.t[FA_T_LSE], (int64_t[]){i, 0}, 1);
  CHECK_MSG(fa_tensors_gaps_intact(&set, FA_T_LSE, FA_POISON_A, where, sizeof where), "%s", where);
  fa_tensors_free(&set);
}

/* Three groups far from each other, in rows of their own or in one another's: what lies between two is a gap, and elements are none. */
static void check_far_gap(const int64_t *shape, const int64_t *stride) {
  char where[200] = "";
  fa_tensors set = {0};
  REQUIRE(fa_tensors_add(&set, FA_T_O, FA_F32, 2, shape, stride, 3, NULL) == FA_OK);
  for (int64_t i = 0; i < shape[0]; ++i)
    for (int64_t j = 0; j < shape[1]; ++j) fa_tensor_set(&set.t[FA_T_O], (int64_t[]){i, j}, 1);
  CHECK_MSG(fa_tensors_gaps_intact(&set, FA_T_O, FA_POISON_A, where, sizeof where), "%s", where);
  memset(set.t[FA_T_O].data + 4 * (FAR - 2), 0, 4);
  CHECK(!fa_tensors_gaps_intact(&set, FA_T_O, FA_POISON_A, where, sizeof where));
  CHECK_MSG(strstr(where, "1 element written") &&
                strstr(where, "the first 104857598 elements after element 0"),
            "%s", where);
  fa_tensors_free(&set);
}

static void check_far_gaps(void) {
  check_far_gap((int64_t[]){3, 4}, (int64_t[]){FAR, 1});
  check_far_gap((int64_t[]){4, 3}, (int64_t[]){1, FAR});
}

/* Bytes of an input before its first element are no element's. */
static void check_input_before(void) {
  const int64_t shape[] = {2, 4};
  char where[200] = "";
  fa_tensors set = {0}, copy = {0};
  REQUIRE(fa_tensors_add(&set, FA_T_Q, FA_F32, 2, shape, NULL, 8, NULL) == FA_OK);
  REQUIRE(fa_tensors_clone(&copy, &set, NULL) == FA_OK);
  copy.t[FA_T_Q].data[-16] ^= 1;
  CHECK(!fa_tensors_inputs_equal(&set, &copy, where, sizeof where));
  CHECK_MSG(strcmp(where, "input q was modified: 1 byte, the first in a gap, byte 16 of the buffer") == 0,
            "%s", where);
  copy.t[FA_T_Q].data[-15] ^= 1;
  CHECK(!fa_tensors_inputs_equal(&set, &copy, where, sizeof where));
  CHECK_MSG(strcmp(where, "input q was modified: 2 bytes, the first in a gap, byte 16 of the buffer") == 0,
            "%s", where);
  copy.t[FA_T_Q].data[-15] ^= 1;
  copy.t[FA_T_Q].data[-16] ^= 1, copy.t[FA_T_Q].data[20] ^= 1;
  CHECK(!fa_tensors_inputs_equal(&set, &copy, where, sizeof where));
  CHECK_MSG(strcmp(where, "input q was modified: 1 byte, the first in q[1,1]") == 0, "%s", where);
  fa_tensors_free(&set);
  fa_tensors_free(&copy);
}

/* Of several tensors in one buffer, the one that the byte is an element of. */
static void check_input_of_view(void) {
  const int64_t shape[] = {2, 4}, stride[] = {8, 1};
  char where[200] = "";
  fa_tensors set = {0}, copy = {0};
  REQUIRE(fa_tensors_add_padded(&set, FA_T_Q, FA_F32, 2, shape, stride, 0, 4, NULL) == FA_OK);
  REQUIRE(fa_tensors_add_view(&set, FA_T_K, FA_T_Q, 2, shape, stride, 4, NULL) == FA_OK);
  REQUIRE(fa_tensors_clone(&copy, &set, NULL) == FA_OK);
  copy.t[FA_T_K].data[4 * 9] ^= 1;
  CHECK(!fa_tensors_inputs_equal(&set, &copy, where, sizeof where));
  CHECK_MSG(strcmp(where, "input q was modified: 1 byte, the first in k[1,1]") == 0, "%s", where);
  fa_tensors_free(&set);
  fa_tensors_free(&copy);
}

/* What has no infinity holds zeros in its place. */
static void check_infinity(void) {
  int32_t zero = 0;
  const fa_tensor t = {.dtype = FA_I32, .rank = 1, .shape = {1}, .stride = {1}, .data = (char *)&zero};
  CHECK(fa_tensor_is_poison(&t, &(int64_t){0}, FA_POISON_INF));
}

int main(void) {
  REQUIRE(sysconf(_SC_PAGESIZE) == PAGE);
  check_sparse();
  check_too_large();
  check_reserve();
  check_touch();
  check_alloc_like();
  check_islands();
  check_most_islands();
  check_view();
  check_scattered_view();
  check_single_elements();
  check_far_gaps();
  check_input_before();
  check_input_of_view();
  check_infinity();
  return check_done();
}
