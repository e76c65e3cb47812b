/* The host body of prim.cuh: the same names, carried out by the host executor (gpu/simt/device.h). Each
 * function has last parameters that no caller passes: the file and line of the call, for the executor's
 * reports. */
#ifndef FA_GPU_KERNELS_MACHINE_PRIM_HOST_CUH
#define FA_GPU_KERNELS_MACHINE_PRIM_HOST_CUH

extern "C" {
#include "cases/base/dtype.h"
}
#include "gpu/simt/add.h"
#include "gpu/simt/device.h"

#include <math.h>

#define FA_DEVICE inline
#define FA_CALLED inline
#define FA_UNROLL
#define FA_UNROLL_2
#define FA_UNROLL_BY(n)
#define FA_NO_UNROLL
#define threadIdx (fa_simt_self->thread)
#define blockIdx (fa_simt_self->block)
#define blockDim (fa_simt_self->block_dim)
#define gridDim (fa_simt_self->grid_dim)

namespace fa {

/* FA_FROM: the last parameters, by default the caller's file and line. FA_AT: the same as the executor's
 * type. */
#define FA_FROM const char *file = __builtin_FILE(), int line = __builtin_LINE()
#define FA_AT (fa_simt_place{file, line})

FA_DEVICE uint32_t shared_base() {
  return fa_simt_self->shared_base;
}

FA_DEVICE int opaque(int x) {
  return x;
}

FA_DEVICE void sync_block(FA_FROM) {
  fa_simt_sync_block(FA_AT);
}
FA_DEVICE void sync_warp(FA_FROM) {
  fa_simt_sync_warp(FA_AT);
}

FA_DEVICE float shfl_xor(float x, int lane_mask, FA_FROM) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  bits = fa_simt_shfl_xor(bits, lane_mask, FA_AT);
  __builtin_memcpy(&x, &bits, 4);
  return x;
}
FA_DEVICE float of_lane(float x, int lane, FA_FROM) {
  return shfl_xor(x, static_cast<int>(threadIdx.x % 32) ^ lane, file, line);
}

FA_DEVICE vec4 load_shared16(uint32_t shared, FA_FROM) {
  vec4 v;
  __builtin_memcpy(&v, fa_simt_shared(shared, 16, false, FA_AT), 16);
  return v;
}
FA_DEVICE vec2 load_shared8(uint32_t shared, FA_FROM) {
  vec2 v;
  __builtin_memcpy(&v, fa_simt_shared(shared, 8, false, FA_AT), 8);
  return v;
}
FA_DEVICE uint32_t load_shared4(uint32_t shared, FA_FROM) {
  uint32_t v;
  __builtin_memcpy(&v, fa_simt_shared(shared, 4, false, FA_AT), 4);
  return v;
}
FA_DEVICE void store_shared16(uint32_t shared, vec4 v, FA_FROM) {
  __builtin_memcpy(fa_simt_shared(shared, 16, true, FA_AT), &v, 16);
}
FA_DEVICE void store_shared4(uint32_t shared, uint32_t v, FA_FROM) {
  __builtin_memcpy(fa_simt_shared(shared, 4, true, FA_AT), &v, 4);
}

template <class T> FA_DEVICE T load_global(const T *p, FA_FROM) {
  T v;
  __builtin_memcpy(&v, fa_simt_global(p, sizeof v, false, FA_AT), sizeof v);
  return v;
}
template <class T> FA_DEVICE void store_global(T *p, T v, FA_FROM) {
  __builtin_memcpy(fa_simt_global(p, sizeof v, true, FA_AT), &v, sizeof v);
}

/* The executor runs one kernel at a time, so everything that a kernel waits for is already done. */
FA_DEVICE void next_kernel_may_start() {
  fa_simt_next_kernel_may_start();
}
FA_DEVICE void wait_for_kernels_before() {
  fa_simt_wait_for_kernels_before();
}
template <class T> FA_DEVICE T load_written(const T *p, FA_FROM) {
  return load_global(p, file, line);
}

FA_DEVICE void cp_async16(uint32_t shared, const void *global, bool in_range, FA_FROM) {
  fa_simt_cp_async(shared, global, 16, in_range, FA_AT);
}
FA_DEVICE void cp_async16_of_line(uint32_t shared, const void *global, bool in_range, FA_FROM) {
  fa_simt_cp_async(shared, global, 16, in_range, FA_AT);
}
FA_DEVICE void cp_async4(uint32_t shared, const void *global, bool in_range, FA_FROM) {
  fa_simt_cp_async(shared, global, 4, in_range, FA_AT);
}
FA_DEVICE void cp_async_commit() {
  fa_simt_cp_async_commit();
}
template <int N> FA_DEVICE void cp_async_wait() {
  fa_simt_cp_async_wait(N);
}

FA_DEVICE void ldmatrix_x4(uint32_t (&r)[4], uint32_t shared, FA_FROM) {
  fa_simt_ldmatrix_x4(r, shared, false, FA_AT);
}
FA_DEVICE void ldmatrix_x4_trans(uint32_t (&r)[4], uint32_t shared, FA_FROM) {
  fa_simt_ldmatrix_x4(r, shared, true, FA_AT);
}

FA_DEVICE void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t *b, f16, FA_FROM) {
  fa_simt_mma_m16n8k16(d, a, b, false, FA_AT);
}
FA_DEVICE void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t *b, bf16, FA_FROM) {
  fa_simt_mma_m16n8k16(d, a, b, true, FA_AT);
}

FA_DEVICE float multiply(float a, float b) {
  return a * b;
}
FA_DEVICE float divide(float a, float b) {
  return a / b;
}
FA_DEVICE float exp2_approx(float x) {
  return fa_simt_exp2(x);
}
FA_DEVICE float tanh_approx(float x) {
  return tanhf(x);
}
FA_DEVICE float natural_log(float x) {
  return logf(x);
}
FA_DEVICE float infinity() {
  return INFINITY;
}

FA_DEVICE uint32_t pack2(float lo, float hi, f16) {
  return fa_f32_to_f16(lo) | static_cast<uint32_t>(fa_f32_to_f16(hi)) << 16;
}
FA_DEVICE uint32_t pack2(float lo, float hi, bf16) {
  return fa_f32_to_bf16(lo) | static_cast<uint32_t>(fa_f32_to_bf16(hi)) << 16;
}

FA_DEVICE uint32_t pack4(float a, float b, float c, float d, e4m3) {
  const float x[4] = {a, b, c, d};
  uint32_t word = 0;
  for (int i = 0; i < 4; ++i)
    word |= static_cast<uint32_t>(fa_f64_to_e4m3(x[i], FA_OVERFLOW_SATURATES)) << 8 * i;
  return word;
}
FA_DEVICE float value_of_byte(uint32_t x, e4m3) {
  return fa_e4m3_to_f32(static_cast<uint8_t>(x));
}
FA_DEVICE float value_of_byte(uint32_t x, e5m2) {
  return fa_e5m2_to_f32(static_cast<uint8_t>(x));
}
FA_DEVICE float value_of_byte(uint32_t x, i8) {
  return static_cast<int8_t>(x);
}
template <class E, class T> FA_DEVICE uint32_t widen2(uint32_t bytes, E from, T to) {
  return pack2(value_of_byte(bytes & 0xff, from), value_of_byte(bytes >> 8 & 0xff, from), to);
}
FA_DEVICE uint32_t pick_bytes(uint32_t a, uint32_t b, uint32_t which) {
  const uint64_t both = static_cast<uint64_t>(b) << 32 | a;
  uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word |= static_cast<uint32_t>(both >> 8 * (which >> 4 * i & 7) & 0xff) << 8 * i;
  return word;
}
FA_DEVICE uint32_t spread_tops(uint32_t x, int lo, int hi) {
  return (x >> (8 * lo + 7) & 1 ? 0x0000ffffu : 0) | (x >> (8 * hi + 7) & 1 ? 0xffff0000u : 0);
}

FA_DEVICE float as_float(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, 4);
  return x;
}
FA_DEVICE float low_half(uint32_t x, f16) {
  return fa_f16_to_f32(static_cast<uint16_t>(x));
}
FA_DEVICE float high_half(uint32_t x, f16) {
  return fa_f16_to_f32(static_cast<uint16_t>(x >> 16));
}
FA_DEVICE float low_half(uint32_t x, bf16) {
  return as_float(x << 16);
}
FA_DEVICE float high_half(uint32_t x, bf16) {
  return as_float(x & 0xffff0000u);
}

FA_DEVICE uint32_t multiply2(uint32_t x, uint32_t y, f16 t) {
  return pack2(low_half(x, t) * low_half(y, t), high_half(x, t) * high_half(y, t), t);
}

FA_DEVICE void atomic_add4(float *p, const float (&v)[4], FA_FROM) {
  float *to = static_cast<float *>(fa_simt_global_add(p, 16, false, FA_AT));
  for (int i = 0; i < 4; ++i) fa_add_flushed(to + i, v[i]);
}
FA_DEVICE void atomic_add2(float *p, const float (&v)[2], FA_FROM) {
  float *to = static_cast<float *>(fa_simt_global_add(p, 8, false, FA_AT));
  for (int i = 0; i < 2; ++i) fa_add_flushed(to + i, v[i]);
}
FA_DEVICE void atomic_add(float *p, float x, FA_FROM) {
  fa_add_flushed(static_cast<float *>(fa_simt_global_add(p, 4, false, FA_AT)), x);
}

FA_DEVICE void atomic_add(uint64_t *p, uint64_t n, FA_FROM) {
  fa_simt_global(p, 8, false, FA_AT);
  __atomic_fetch_add(static_cast<uint64_t *>(fa_simt_global(p, 8, true, FA_AT)), n, __ATOMIC_RELAXED);
}

FA_DEVICE void atomic_max(float *p, float x, FA_FROM) {
  uint32_t bits, old;
  fa_simt_global(p, 4, false, FA_AT);
  uint32_t *to = static_cast<uint32_t *>(fa_simt_global(p, 4, true, FA_AT));
  __builtin_memcpy(&bits, &x, 4);
  old = __atomic_load_n(to, __ATOMIC_RELAXED);
  while (old < bits &&
         !__atomic_compare_exchange_n(to, &old, bits, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}

FA_DEVICE uint32_t bytes_at_most(uint32_t word, int pair, uint32_t limit) {
  const uint32_t low = word >> 16 * pair & 0xff, high = word >> (16 * pair + 8) & 0xff;
  return (low <= (limit & 0xffff) ? 0x0000ffffu : 0) | (high <= limit >> 16 ? 0xffff0000u : 0);
}

FA_DEVICE uint32_t float_bits(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  return bits;
}
FA_DEVICE void mma_tf32(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, FA_FROM) {
  const uint32_t b[2] = {b0, b1};
  fa_simt_mma_tf32(d, a, b, FA_AT);
}

} // namespace fa

#endif
