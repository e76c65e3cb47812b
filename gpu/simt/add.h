/* Additions to memory as red.global.add.f32 and bulk additions make them: atomic, each of one number, and subnormal inputs and
 * results become zeros of the same sign, whatever the compiler's flags. */
#ifndef FA_GPU_SIMT_ADD_H
#define FA_GPU_SIMT_ADD_H

#include <stdint.h>
#include <string.h>

static inline float fa_flush_subnormal(float x) {
  return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0.0f, x) : x;
}

static inline void fa_add_flushed(float *to, float x) {
  uint32_t *bits = (uint32_t *)(void *)to, old = __atomic_load_n(bits, __ATOMIC_RELAXED), sum;
  do {
    float y;
    memcpy(&y, &old, 4);
    y = fa_flush_subnormal(fa_flush_subnormal(y) + fa_flush_subnormal(x));
    memcpy(&sum, &y, 4);
  } while (!__atomic_compare_exchange_n(bits, &old, sum, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

#endif
