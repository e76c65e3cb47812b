/* Included by one source per instruction set, with FA_ROW_LOOPS_NAME set. */
#include "cases/base/dtype_narrow.h"
#include "cases/base/rng_normal.h"
#include "cases/base/row_loops.h"

static void row_normals(uint64_t key, uint64_t first, uint64_t step, int64_t n, double *out) {
  for (int64_t i = 0; i < n; ++i) out[i] = fa_rng_draw_normal(key, first + (uint64_t)i * step);
}

enum { AT_ONCE = 64 };

/* Goes through aligned arrays: out may be at any byte, and compilers vectorise loops of constant width. */
static void row_narrow(const double *in, int64_t n, bool bf16, void *out) {
  uint64_t wide[AT_ONCE];
  uint16_t bits[AT_ONCE];
  for (int64_t at = 0; at < n; at += AT_ONCE) {
    const int64_t m = n - at < AT_ONCE ? n - at : AT_ONCE;
    const double *x = in + at;
    if (bf16)
      for (int64_t i = 0; i < m; ++i) wide[i] = fa_narrow_f64(x[i], 8, 7);
    else
      for (int64_t i = 0; i < m; ++i) wide[i] = fa_narrow_f64(x[i], 5, 10);
    for (int64_t i = 0; i < m; ++i) bits[i] = (uint16_t)wide[i];
    memcpy((char *)out + at * (int64_t)sizeof *bits, bits, (size_t)m * sizeof *bits);
  }
}

const fa_row_loops FA_ROW_LOOPS_NAME = {row_normals, row_narrow};
