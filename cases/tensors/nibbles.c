#include "cases/tensors/nibbles.h"

bool fa_tensor_is_nibbles(const fa_problem *p, fa_tensor_id id) {
  return p->quantized.present && p->quantized.dtype == FA_E2M1 && (id == FA_T_K || id == FA_T_V);
}

fa_tensor_id fa_tensor_scales_of(fa_tensor_id id) {
  return id == FA_T_K ? FA_T_K_SCALES : FA_T_V_SCALES;
}

/* Column d of a row is in byte d / 2, moved up by so many bits. */
static int shift_of(int64_t d) {
  return d % 2 ? 4 : 0;
}

void fa_nibbles_load(const char *row, const char *scales, int64_t n, double *value) {
  for (int64_t d = 0; d < n; ++d) {
    const uint8_t byte = (uint8_t)row[d / 2];
    value[d] = (double)fa_e2m1_to_f32((uint8_t)(byte >> shift_of(d))) *
               fa_load(FA_E4M3, scales + d / FA_SCALED_BLOCK);
  }
}

void fa_nibbles_store(const double *value, const double *scale, int64_t n, char *row, char *scales) {
  for (int64_t d = 0; d < n; ++d) {
    const unsigned bits = fa_f64_to_e2m1(value[d] / scale[d / FA_SCALED_BLOCK]);
    const unsigned other = d % 2 ? (uint8_t)row[d / 2] & 15u : 0;
    row[d / 2] = (char)(uint8_t)(other | bits << shift_of(d));
  }
  fa_store_row(FA_E4M3, scales, 1, n / FA_SCALED_BLOCK, scale);
}
