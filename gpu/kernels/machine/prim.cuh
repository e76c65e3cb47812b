/* The thin layer under every kernel: all that the hardware does collectively, asynchronously, or in its own
 * arithmetic. Two bodies with the same names and signatures: inline PTX, and calls into the host executor.
 * Kernels use nothing else of the machine but threadIdx, blockIdx and ordinary arithmetic.
 *
 *   FA_UNROLL, FA_UNROLL_2, FA_UNROLL_BY(constant), FA_NO_UNROLL    before a loop
 *   FA_CALLED                                    instead of FA_DEVICE: not inlined, for what is long, seldom
 * done, and in many places
 *   sync_block(), sync_warp()                    barriers
 *   shfl_xor(x, lane_mask)                       x of lane (lane ^ lane_mask)
 *   shared_base()                                address of the dynamic shared memory
 *   load_shared16, load_shared4, store_shared16, store_shared4 generic shared accesses, by 32-bit shared
 * address load_global<T>, store_global                 T of 2, 4, 8 or 16 bytes, aligned to its size
 *   cp_async16(shared, global, in_range)         16 bytes; zeros, and no read, when out of range
 *   cp_async_commit(), cp_async_wait<N>()        groups
 *   ldmatrix_x4, ldmatrix_x4_trans               four 8x8 matrices of 16-bit elements
 *   mma(d, a, b, T())                            d[16x8] += a[16x16] b[16x8], f32 accumulation
 *   exp2_approx, tanh_approx, natural_log        special functions
 *   multiply(a, b)                               rounded on its own, never fused with an addition
 *   opaque(x)                                    x, but the compiler must work out again what depends on it:
 * keeps values from being held in registers over a loop pack2(lo, hi, T())                           two f32
 * rounded to nearest into one register
 *   low_half(x, T()), high_half(x, T())          the two elements of a register as f32
 *   as_float(bits)
 *   bytes_at_most(word, pair, limit)             0xffff in each half for which byte 2 pair (low half) or
 * 2 pair + 1 (high) of word is at most the limit, limit being given in both halves; at most 255
 *   atomic_add4(p, v)                            p[0..3] += v[0..3], each addition atomic; p 16-byte aligned
 *   atomic_add(p, x)                             the same of one float
 *   atomic_add(p, n)                             the same of one uint64_t, which wraps; p 8-byte aligned
 *   float_bits(x)                                the other way of as_float
 *   mma_tf32(d, a, b0, b1)                       d[16x8] += a[16x8] b[8x8]; of every f32 operand the upper 19
 * bits count, f32 accumulation
 *   next_kernel_may_start()                      the next kernel of the stream, if launched to overlap, may
 * begin once every block has said this or ended
 *   wait_for_kernels_before()                    until they are done, and what they wrote can be seen by
 *   load_written<T>(p)                           as load_global, of what they wrote; T of 4 or 16 bytes
 */
#ifndef FA_GPU_KERNELS_MACHINE_PRIM_CUH
#define FA_GPU_KERNELS_MACHINE_PRIM_CUH

#include <stdint.h>

namespace fa {

/* Element types, as tags: the data themselves are raw patterns. */
struct f16 {};
struct bf16 {};
struct f32 {};

struct alignas(16) vec4 { /* 8 elements */
  uint32_t x, y, z, w;
};

} // namespace fa

#ifdef __CUDACC__
#include "gpu/kernels/machine/prim_ptx.cuh"
#else
#include "gpu/kernels/machine/prim_host.cuh"
#endif

#endif
