#include "cases/arithmetic/formats.h"

#include <math.h>

static const char *const formats[FA_N_FORMATS] = {
    [FA_FORMAT_IO] = "io",     [FA_FORMAT_F32] = "f32",   [FA_FORMAT_3XTF32] = "3xtf32",
    [FA_FORMAT_TF32] = "tf32", [FA_FORMAT_F16] = "f16",   [FA_FORMAT_BF16] = "bf16",
    [FA_FORMAT_E4M3] = "e4m3", [FA_FORMAT_E5M2] = "e5m2", [FA_FORMAT_INT8] = "int8"};
static const char *const products[FA_N_PRODUCTS] = {
    [FA_PRODUCT_QK] = "qk", [FA_PRODUCT_PV] = "pv", [FA_PRODUCT_DP] = "dp",
    [FA_PRODUCT_DV] = "dv", [FA_PRODUCT_DQ] = "dq", [FA_PRODUCT_DK] = "dk"};
static const char *const roundings[FA_N_ROUNDINGS] = {
    [FA_ROUND_NEAREST] = "nearest", [FA_ROUND_TRUNCATE] = "truncate"};
static const char *const accumulators[FA_N_ACCUMULATORS] = {[FA_ACCUMULATOR_F32] = "f32",
                                                            [FA_ACCUMULATOR_MMA] = "mma",
                                                            [FA_ACCUMULATOR_NARROW] = "narrow",
                                                            [FA_ACCUMULATOR_F16] = "f16",
                                                            [FA_ACCUMULATOR_BF16] = "bf16"};
static const char *const deltas[FA_N_DELTAS] = {
    [FA_DELTA_STORED_O] = "stored_o", [FA_DELTA_EXACT_O] = "exact_o", [FA_DELTA_SUM_P_DP] = "sum_p_dp"};

static const char *name_in(const char *const *names, int n, int i) {
  return i >= 0 && i < n ? names[i] : NULL;
}
const char *fa_format_name(int i) {
  return name_in(formats, FA_N_FORMATS, i);
}
const char *fa_product_name(int i) {
  return name_in(products, FA_N_PRODUCTS, i);
}
const char *fa_rounding_name(int i) {
  return name_in(roundings, FA_N_ROUNDINGS, i);
}
const char *fa_accumulator_name(int i) {
  return name_in(accumulators, FA_N_ACCUMULATORS, i);
}
const char *fa_delta_source_name(int i) {
  return name_in(deltas, FA_N_DELTAS, i);
}

/* floor: half the smallest subnormal; 2^-125 where a kernel may flush what is below f32's normal range. bits: of the
 * fraction, with the hidden one. */
static const struct shape {
  int bits, lowest; /* exponent of the smallest normal number */
  fa_format_error error;
} shapes[FA_N_FORMATS] = {
    [FA_FORMAT_F32] = {24, -126, {0, 0x1p-125, 0x1.fffffep127}},
    [FA_FORMAT_3XTF32] = {22, -126, {0x1p-22, 0x1p-125, 0x1.fffffep127}},
    [FA_FORMAT_TF32] = {11, -126, {0x1p-11, 0x1p-125, 0x1.ffcp127}},
    [FA_FORMAT_F16] = {11, -14, {0x1p-11, 0x1p-25, 65504}},
    [FA_FORMAT_BF16] = {8, -126, {0x1p-8, 0x1p-125, 0x1.fep127}},
    [FA_FORMAT_E4M3] = {4, -6, {0x1p-4, 0x1p-10, 448}},
    [FA_FORMAT_E5M2] = {3, -14, {0x1p-3, 0x1p-17, 57344}},
    [FA_FORMAT_INT8] = {0, 0, {0x1p-8, 1.0 / 254, INFINITY}},
};

static fa_format of_dtype(fa_format f, fa_dtype dtype) {
  if (f != FA_FORMAT_IO) return f;
  if (fa_dtype_is_float8(dtype)) return dtype == FA_E4M3 ? FA_FORMAT_E4M3 : FA_FORMAT_E5M2;
  return dtype == FA_F16 ? FA_FORMAT_F16 : dtype == FA_BF16 ? FA_FORMAT_BF16 : FA_FORMAT_F32;
}

fa_format_error fa_format_error_of(fa_format f, fa_dtype dtype, fa_rounding rounding) {
  fa_format_error e = shapes[of_dtype(f, dtype)].error;
  if (rounding == FA_ROUND_TRUNCATE) {
    e.u *= 2;
    if (e.floor > 0x1p-125) e.floor *= 2;
  }
  return e;
}

fa_format_error fa_format_error_of_elements(fa_format f, fa_dtype dtype, fa_rounding rounding) {
  const struct shape *own = &shapes[of_dtype(FA_FORMAT_IO, dtype)], *to = &shapes[of_dtype(f, dtype)];
  if (f != FA_FORMAT_INT8 && own->bits <= to->bits && own->lowest >= to->lowest)
    return (fa_format_error){0, 0, INFINITY};
  return fa_format_error_of(f, dtype, rounding);
}
