/* Element types and their conversions.
 *
 * Everything is done with integers on the bit patterns, so that the result does not depend on the
 * compiler's _Float16 support, on fast-math flags, or on the host's conversion instructions.
 * Round to nearest, ties to even, subnormals kept, overflow to infinity; NaN stays NaN: narrowing makes it
 * quiet and keeps the sign and the payload's top bits, widening f16/bf16 to f32 keeps every bit. */
#ifndef FA_CASES_BASE_DTYPE_H
#define FA_CASES_BASE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* FA_BOOL: a byte, 0 or 1; any byte that is not 0 loads as 1. FA_E4M3: 4 bits of exponent, 3 of fraction, no infinity,
 * 0x7f and 0xff NaN, up to 448 (OCP's, torch.float8_e4m3fn). FA_E5M2: an IEEE format, up to 57344. FA_E2M1: 2 bits of exponent,
 * 1 of fraction, neither infinity nor NaN, up to 6; the low four bits of a byte, whatever the others are. In memory there
 * are two to a byte, and a tensor of them is one of bytes (cases/tensors/nibbles.h). */
typedef enum fa_dtype {
  FA_F16,
  FA_BF16,
  FA_F32,
  FA_I32,
  FA_U8,
  FA_F64,
  FA_I64,
  FA_BOOL,
  FA_E4M3,
  FA_E5M2,
  FA_I8,
  FA_E2M1,
  FA_N_DTYPES
} fa_dtype;

size_t fa_dtype_size(fa_dtype t); /* bytes of one element */
const char *fa_dtype_name(
    fa_dtype t); /* "f16", "bf16", "f32", "i32", "u8", "f64", "i64", "bool", "e4m3", "e5m2", "i8", "e2m1" */
bool fa_dtype_from_name(const char *name, fa_dtype *out);
bool fa_dtype_is_float(fa_dtype t);
bool fa_dtype_is_float8(fa_dtype t); /* e4m3 and e5m2 */

float fa_f16_to_f32(uint16_t bits); /* exact */
float fa_bf16_to_f32(uint16_t bits);
uint16_t fa_f32_to_f16(float x); /* rounds */
uint16_t fa_f32_to_bf16(float x);
uint16_t fa_f64_to_f16(double x); /* one rounding, not two */
uint16_t fa_f64_to_bf16(double x);
float fa_f64_to_f32(double x); /* one rounding, by the hardware's own conversion */

/* What a conversion to 8 bits makes of a number beyond the largest, infinity included: the largest, as
 * cvt.rn.satfinite does on devices; or NaN (e4m3) and infinity (e5m2), as PyTorch does. NaN stays NaN: 0x7f. */
typedef enum fa_overflow { FA_OVERFLOW_SATURATES, FA_OVERFLOW_IS_LOST } fa_overflow;
float fa_e4m3_to_f32(uint8_t bits); /* exact */
float fa_e5m2_to_f32(uint8_t bits);
uint8_t fa_f64_to_e4m3(double x, fa_overflow beyond); /* one rounding */
uint8_t fa_f64_to_e5m2(double x, fa_overflow beyond);

float fa_e2m1_to_f32(uint8_t bits); /* exact, of the low four */
/* One rounding, beyond the largest the largest; NaN becomes 6, as of cvt.rn.satfinite. */
uint8_t fa_f64_to_e2m1(double x);

/* Loads the element at p as a double (exact, but for an i64 beyond 2^53, which is rounded), and stores one: rounds to t; integers truncate
 * and saturate, NaN becomes 0; floats of 8 and 4 bits saturate. */
double fa_load(fa_dtype t, const void *p);
void fa_store(fa_dtype t, void *p, double x);
/* n elements, stride elements apart (may be 0 for loads). p need not be aligned. */
void fa_load_row(fa_dtype t, const void *p, int64_t stride, int64_t n, double *out);
void fa_store_row(fa_dtype t, void *p, int64_t stride, int64_t n, const double *in);

/* Half the spacing of t's numbers at |x|: the largest error of rounding x to t. For floats; 0 for f64
 * and integers. At 0 and among the subnormals it is half the smallest subnormal; beyond the largest finite
 * value it is that of x's binade. NaN for NaN. */
double fa_half_ulp(fa_dtype t, double x);
double fa_dtype_max(fa_dtype t);           /* largest finite value */
double fa_dtype_min_subnormal(fa_dtype t); /* smallest positive value */
double fa_dtype_unit_roundoff(fa_dtype t); /* 2^-11, 2^-8, 2^-24, 2^-53, 2^-4, 2^-3, 2^-2; integers 0 */

#ifdef __cplusplus
}
#endif

#endif
