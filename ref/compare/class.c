/* NaN and infinity from the bits alone: no comparison and no isnan, which compiler flags can optimise
 * away. */
#include "ref/compare/internal.h"
#include "ref/engine/call.h"

#include <string.h>

static fa_class class_of(uint64_t bits, int exponent_bits, int fraction_bits) {
  const uint64_t infinity = (((uint64_t)1 << exponent_bits) - 1) << fraction_bits;
  const uint64_t sign = (uint64_t)1 << (exponent_bits + fraction_bits), magnitude = bits & (sign - 1);
  if (magnitude < infinity) return FA_CLASS_FINITE;
  if (magnitude > infinity) return FA_CLASS_NAN;
  return bits & sign ? FA_CLASS_NEG_INF : FA_CLASS_POS_INF;
}

fa_class fa_class_of_bits(fa_dtype t, uint64_t bits) {
  switch (t) {
  case FA_F16:
    return class_of(bits, 5, 10);
  case FA_BF16:
    return class_of(bits, 8, 7);
  case FA_F32:
    return class_of(bits, 8, 23);
  case FA_F64:
    return class_of(bits, 11, 52);
  case FA_E4M3: /* no infinity */
    return (bits & 0x7fu) == 0x7fu ? FA_CLASS_NAN : FA_CLASS_FINITE;
  case FA_E5M2:
    return class_of(bits, 5, 2);
  default:
    return FA_CLASS_FINITE;
  }
}

double fa_overflow_threshold(const fa_want *w, fa_dtype t) {
  if (w->saturates || !fa_dtype_is_float(t)) return INFINITY;
  const double max = fa_dtype_max(t);
  return max + fa_half_ulp(t, max);
}

void fa_compare_load_row(fa_tensor_id id, const fa_tensor *t, const char *at, int64_t n, uint64_t *bits,
                         double *value) {
  const int64_t step = t->stride[t->rank - 1] * (int64_t)fa_dtype_size(t->dtype);
  switch (fa_dtype_size(t->dtype)) {
  case 1:
    for (int64_t c = 0; c < n; ++c) bits[c] = *(const uint8_t *)(at + c * step);
    break;
  case 2:
    for (int64_t c = 0; c < n; ++c) {
      uint16_t u;
      memcpy(&u, at + c * step, sizeof u);
      bits[c] = u;
    }
    break;
  case 4:
    for (int64_t c = 0; c < n; ++c) {
      uint32_t u;
      memcpy(&u, at + c * step, sizeof u);
      bits[c] = u;
    }
    break;
  default:
    for (int64_t c = 0; c < n; ++c) memcpy(&bits[c], at + c * step, 8);
  }
  if (id == FA_T_P_DEBUG) { /* the sign bit means "dropped"; the value is not comparable */
    const int sign = 8 * (int)fa_dtype_size(t->dtype) - 1;
    for (int64_t c = 0; c < n; ++c) value[c] = bits[c] >> sign & 1 ? 0 : 1;
  } else if (t->dtype == FA_F16 || t->dtype == FA_BF16) {
    fa_ref_load_row(t, at, t->stride[t->rank - 1], n, value);
  } else if (t->dtype == FA_F32) {
    for (int64_t c = 0; c < n; ++c) value[c] = fa_f32_from_bits((uint32_t)bits[c]);
  } else {
    for (int64_t c = 0; c < n; ++c) value[c] = fa_load(t->dtype, at + c * step);
  }
}
