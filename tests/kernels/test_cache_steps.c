/* The steps before attention over a cache, each by itself on the host executor, with parameters that no case file has:
 * new keys that are quantised without descales, a copy of more than 2^31 slots, and fewer threads than there is to copy. */
#include "cases/base/dtype.h"
#include "gpu/kernels/params/cache.h"
#include "gpu/kernels/registry/select.h"
#include "gpu/simt/launch.h"
#include "tests/support/check.h"

#include <string.h>
#include <sys/mman.h>

static bool run(const fa_kernel_entry *k, const void *params, fa_simt_dim grid, int n_threads,
                const fa_simt_range *ranges, int n_ranges) {
  const fa_simt_launch what = {.kernel = k->entry,
                               .params = params,
                               .name = k->name,
                               .grid = grid,
                               .block = {(unsigned)n_threads, 1, 1},
                               .ranges = ranges,
                               .n_ranges = n_ranges,
                               .n_threads = 1};
  fa_simt_report report;
  fa_error err = {""};
  const fa_status status = fa_simt_run(&what, &report, &err);
  CHECK_MSG(status == FA_OK && report.state == FA_SUBJECT_OK, "%s: %s%s", k->name, err.text, report.text);
  return status == FA_OK && report.state == FA_SUBJECT_OK;
}

/* ---- new keys and values of a cache of 8 bits ---- */

enum { BATCH = 2, ROWS = 3, HEADS = 2, COLUMNS = 8, SLOTS = 5, NEW = BATCH * ROWS * HEADS * COLUMNS };

/* Whole numbers, so that int8 has them as they are, and half of them where the descale is 2. */
static int number(int i) {
  return i % 2 ? -2 * (i % 60) : 2 * (i % 60);
}

/* Appends to slots 1 .. 3 of each sequence; k, v: descales, or NULL. */
static void check_append(const float *k, const float *v) {
  uint16_t from[NEW];
  int8_t to[2][BATCH * SLOTS * HEADS * COLUMNS];
  const int32_t before[BATCH] = {1, 1};
  for (int i = 0; i < NEW; ++i) from[i] = fa_f32_to_f16((float)number(i));
  memset(to, 0x55, sizeof to);
  const int64_t row = HEADS * COLUMNS;
  fa_cache_append_params p = {.first_part = FA_CACHE_K,
                              .head_dim = COLUMNS,
                              .cache_seqlens = before,
                              .quantises = 1,
                              .descale = {.k = k, .v = v}};
  fa_simt_range ranges[5] = {{.name = "new", .begin = (char *)from, .bytes = sizeof from},
                             {.name = "cache", .begin = (char *)to, .bytes = sizeof to, .writable = true},
                             {.name = "lengths", .begin = (char *)before, .bytes = sizeof before}};
  int n = 3;
  if (k) ranges[n++] = (fa_simt_range){.name = "k_descale", .begin = (const char *)k, .bytes = 4};
  if (v) ranges[n++] = (fa_simt_range){.name = "v_descale", .begin = (const char *)v, .bytes = 4};
  for (int part = FA_CACHE_K; part <= FA_CACHE_V; ++part) {
    p.from[part] = from;
    p.to[part] = (uint16_t *)(void *)to[part - FA_CACHE_K];
    p.from_stride[part] = (fa_kernel_strides){ROWS * row, row, COLUMNS};
    p.to_stride[part] = (fa_kernel_strides){SLOTS * row, row, COLUMNS};
    p.rows[part] = ROWS;
    p.heads[part] = HEADS;
  }
  if (!run(fa_cache_append_eight_find(FA_I8, FA_F16), &p, (fa_simt_dim){1, 2, BATCH}, FA_CACHE_APPEND_THREADS,
           ranges, n))
    return;
  const int by[2] = {k ? (int)*k : 1, v ? (int)*v : 1};
  int wrong[2] = {0, 0};
  for (int part = 0; part < 2; ++part)
    for (int b = 0; b < BATCH; ++b)
      for (int i = 0; i < ROWS * row; ++i)
        wrong[part] += to[part][(b * SLOTS + 1) * row + i] * by[part] != number(b * ROWS * (int)row + i);
  CHECK_MSG(wrong[0] == 0 && wrong[1] == 0, "%d of K, %d of V", wrong[0], wrong[1]);
}

static void test_append(void) {
  static const float two[1] = {2};
  check_append(NULL, NULL);
  check_append(two, NULL);
  check_append(NULL, two);
  check_append(two, two);
}

/* ---- a cache as ordinary keys ---- */

enum { FAR = 1 << 29, FAR_BATCH = 5, FAR_KEYS = 3 };

/* One column of one head in memory that takes space only where it is touched; 128 threads a sequence, for its 3 keys and the 256
 * zeros past them. */
static void test_far_copy(void) {
  uint16_t from[FAR_BATCH * FAR_KEYS];
  int32_t before[FAR_BATCH], lengths[FAR_BATCH];
  for (int i = 0; i < FAR_BATCH * FAR_KEYS; ++i) from[i] = (uint16_t)(i + 1);
  for (int b = 0; b < FAR_BATCH; ++b) before[b] = FAR_KEYS;
  const size_t bytes = (size_t)FAR * FAR_BATCH * 2;
  uint16_t *to =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(to != MAP_FAILED);
  for (int64_t b = 0; b < FAR_BATCH; ++b)
    memset(to + b * FAR, 0x55, (FAR_KEYS + FA_CACHE_GATHER_PAST + 1) * 2);
  const fa_cache_gather_params p = {.from = {from},
                                    .to = {to},
                                    .from_stride = {{FAR_KEYS, 1, 1}},
                                    .columns = {1},
                                    .heads = 1,
                                    .slots = FAR,
                                    .cache_seqlens = before,
                                    .lengths = lengths};
  const fa_simt_range ranges[] = {
      {.name = "cache", .begin = (char *)from, .bytes = sizeof from},
      {.name = "copy", .begin = (char *)to, .bytes = bytes, .writable = true},
      {.name = "cache_seqlens", .begin = (char *)before, .bytes = sizeof before},
      {.name = "lengths", .begin = (char *)lengths, .bytes = sizeof lengths, .writable = true}};
  int wrong = 0;
  if (run(fa_cache_gather_find(), &p, (fa_simt_dim){1, 1, FAR_BATCH}, FA_CACHE_GATHER_THREADS, ranges, 4))
    for (int64_t b = 0; b < FAR_BATCH; ++b)
      for (int i = 0; i <= FAR_KEYS + FA_CACHE_GATHER_PAST; ++i) {
        const int want = i < FAR_KEYS                          ? (int)b * FAR_KEYS + i + 1
                         : i < FAR_KEYS + FA_CACHE_GATHER_PAST ? 0
                                                               : 0x5555;
        wrong += to[b * FAR + i] != want;
      }
  CHECK_MSG(wrong == 0, "%d wrong", wrong);
  munmap(to, bytes);
}

int main(void) {
  test_append();
  test_far_copy();
  return check_done();
}
