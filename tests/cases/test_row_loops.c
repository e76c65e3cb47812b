/* Compares the row loops of every instruction set that this processor has with one element at a time. */
#include "cases/base/dtype.h"
#include "cases/base/rng.h"
#include "cases/base/row_loops.h"
#include "tests/support/check.h"

#include <string.h>

enum { LONGEST = 200 };

static int available(const fa_row_loops **out) {
  int n = 0;
  out[n++] = &fa_row_loops_base;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2")) out[n++] = &fa_row_loops_avx2;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
    out[n++] = &fa_row_loops_avx512;
#endif
  return n;
}

/* How many of the row's numbers differ from those of indices first, first + step, ... */
static int differing_normals(const fa_row_loops *w, uint64_t first, uint64_t step, int64_t n,
                             uint64_t seen_first) {
  double row[LONGEST];
  int differing = 0;
  w->normals(99, first, step, n, row);
  for (int64_t i = 0; i < n; ++i) {
    const double one = fa_rng_key_normal(99, seen_first + (uint64_t)i * step);
    differing += memcmp(&one, &row[i], sizeof one) != 0;
  }
  return differing;
}

static void test_normals(const fa_row_loops *w) {
  for (int64_t n = 0; n <= LONGEST; ++n)
    CHECK(differing_normals(w, (uint64_t)n << 34, 4, n, (uint64_t)n << 34) == 0);
  CHECK(differing_normals(w, UINT64_MAX - 7, 1, 16, UINT64_MAX - 7) == 0); /* wraps */
  CHECK(differing_normals(w, 0, 4, 16, 1) == 16);
}

/* A double with an exponent near those of the 16-bit types, often a tie or close to one. */
static double awkward(uint64_t n) {
  uint64_t u = fa_rng_u64(7, 7, n);
  double x;
  if (n % 3) u = (u & ~(0x7ffull << 52)) | (uint64_t)(1023 - 160 + (u >> 52) % 320) << 52;
  if (n % 4 == 1) u &= ~0ull << (40 + n % 13);
  if (n % 4 == 2) u = (u & ~0ull << (40 + n % 13)) + 1;
  memcpy(&x, &u, sizeof x);
  return x;
}

static void test_narrow(const fa_row_loops *w) {
  double in[LONGEST];
  char out[2 * LONGEST + 1];
  for (uint64_t round = 0; round < 4000; ++round) {
    const int64_t n = (int64_t)(round % LONGEST) + 1;
    for (int64_t i = 0; i < n; ++i) in[i] = awkward(round * LONGEST + (uint64_t)i);
    for (int bf16 = 0; bf16 < 2; ++bf16) {
      int differing = 0, shifted = 0;
      w->narrow(in, n, bf16, out + 1);
      for (int64_t i = 0; i < n; ++i) {
        uint16_t got;
        memcpy(&got, out + 1 + 2 * i, sizeof got);
        differing += got != (bf16 ? fa_f64_to_bf16(in[i]) : fa_f64_to_f16(in[i]));
        shifted += got != (bf16 ? fa_f64_to_f16(in[i]) : fa_f64_to_bf16(in[i]));
      }
      CHECK_MSG(differing == 0, "%d of %lld", differing, (long long)n);
      CHECK(n < 8 || shifted > 0); /* the other type's would be noticed */
    }
  }
}

int main(void) {
  const fa_row_loops *all[3];
  const int n = available(all);
  for (int i = 0; i < n; ++i) {
    test_normals(all[i]);
    test_narrow(all[i]);
  }
  CHECK(fa_row_loops_best() == all[n - 1]);
  return check_done();
}
