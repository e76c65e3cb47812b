/* Conversions of 8 and 4 bits as the kernels make them: every pattern to elements, and numbers around every step to bytes,
 * against cases/base/dtype.h. */
extern "C" {
#include "cases/base/dtype.h"
#include "tests/support/check.h"
}
#include "gpu/kernels/parts/narrow.cuh"
#include "gpu/kernels/parts/nibbles.cuh"

#include <math.h>
#include <string.h>

using namespace fa;

static bool same(float x, double y) {
  return isnan(x) ? isnan(y) : x == y && signbit(x) == signbit(y);
}

template <class E> static void check_widened(fa_dtype dtype) {
  for (uint32_t i = 0; i < 256; ++i) {
    const uint8_t byte = static_cast<uint8_t>(i);
    const double value = fa_load(dtype, &byte);
    const uint32_t halves = widen2(i << 8 | (i ^ 1), E(), f16()), others = widen2(0xffff0000u | i << 8 | i, E(), bf16());
    CHECK_MSG(same(high_half(halves, f16()), value), "%s %#x as f16", fa_dtype_name(dtype), i);
    CHECK_MSG(same(low_half(others, bf16()), value) && same(high_half(others, bf16()), value), "%s %#x as bf16",
              fa_dtype_name(dtype), i);
  }
}

/* Every number of 4 bits in every place of a word, times every scale; the others are as different as they can be. */
template <class T> static void check_unpacked(T t, fa_dtype dtype) {
  for (uint32_t i = 0; i < 256 * 16 * 8; ++i) {
    const uint8_t scale = static_cast<uint8_t>(i & 0xff), number = static_cast<uint8_t>(i >> 8 & 0xf);
    const uint32_t place = i >> 12, others = (number ^ 0xfu) * 0x11111111u & ~(0xfu << 4 * place);
    const vec4 got = unpacked(others | static_cast<uint32_t>(number) << 4 * place, block_scale(scale), t);
    const uint32_t word = place < 2 ? got.x : place < 4 ? got.y : place < 6 ? got.z : got.w;
    const double want = static_cast<double>(fa_e2m1_to_f32(number)) * fa_load(FA_E4M3, &scale);
    CHECK_MSG(same(place % 2 ? high_half(word, t) : low_half(word, t), want), "e2m1 %#x in place %u, times %#x, as %s", number,
              place, scale, fa_dtype_name(dtype));
  }
}

/* To nearest, saturating; int8 by itself. */
static uint8_t wanted(float x, e4m3) {
  return fa_f64_to_e4m3(x, FA_OVERFLOW_SATURATES);
}
static uint8_t wanted(float x, e5m2) {
  return fa_f64_to_e5m2(x, FA_OVERFLOW_SATURATES);
}
static uint8_t wanted(float x, i8) {
  return isnan(x) ? 0 : static_cast<uint8_t>(static_cast<int8_t>(fmin(fmax(rint(x), -128), 127)));
}

template <class E> static void check_narrowed_at(float x) {
  const uint8_t got = narrowed(x, E()), want = wanted(x, E());
  CHECK_MSG(got == want, "%a: %#x, not %#x", x, got, want);
}

/* Every float's upper 17 bits, with lower ones that are nothing, one, and as many as there are: below a step, at it and
 * beyond it. */
template <class E> static void check_narrowed() {
  static const uint32_t lower[] = {0, 1, 0x3fff, 0x4000, 0x7ffe, 0x7fff};
  for (uint32_t upper = 0; upper < 1u << 17; ++upper)
    for (uint32_t low : lower) check_narrowed_at<E>(as_float(upper << 15 | low));
  check_narrowed_at<E>(INFINITY);
  check_narrowed_at<E>(-INFINITY);
  check_narrowed_at<E>(NAN);
}

int main(void) {
  check_widened<e4m3>(FA_E4M3);
  check_widened<e5m2>(FA_E5M2);
  check_widened<i8>(FA_I8);
  check_unpacked(f16(), FA_F16);
  check_unpacked(bf16(), FA_BF16);
  check_narrowed<e4m3>();
  check_narrowed<e5m2>();
  check_narrowed<i8>();
  return check_done();
}
