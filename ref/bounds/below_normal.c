#include "ref/bounds/backward.h"

void fa_bound_below_normal(const fa_ref_call *c, int64_t rows, int64_t j0, int64_t n, fa_bound_scratch *b) {
  const float floor = fa_bound_floor_in_units(c, 1 / b->unit_ds);
  for (int64_t k = 0; k < rows; ++k)
    for (int64_t j = 0; j < n; ++j) {
      const int64_t at = k * n + j;
      fa_below_normal_add(&b->row_noise[k], b->g[at], b->g2[at], floor);
      fa_below_normal_add(&b->dk_noise[j0 + j], b->g[at], b->g2[at], floor);
    }
}
