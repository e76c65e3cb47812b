/* The thin layer under every kernel: everything that the hardware does collectively, asynchronously or in its
 * own arithmetic. There are two bodies with the same names and signatures: inline PTX (prim_ptx.cuh) and
 * calls into the host executor (prim_host.cuh). Beyond this layer kernels use only threadIdx, blockIdx and
 * ordinary arithmetic.
 *
 * Code generation
 *   FA_UNROLL, FA_UNROLL_2, FA_UNROLL_BY(constant), FA_NO_UNROLL    before a loop
 *   FA_CALLED                   in place of FA_DEVICE: not inlined; for long, rarely executed code with many
 *                               call sites
 *   opaque(x)                   x, but the compiler must recompute whatever depends on it, instead of keeping
 *                               it in registers across a loop
 *
 * Threads
 *   sync_block(), sync_warp()   barriers
 *   shfl_xor(x, lane_mask)      x of lane (lane ^ lane_mask)
 *   of_lane(x, lane)            x of that lane, another one for each that asks
 *
 * Memory
 *   shared_base()               address of the dynamic shared memory
 *   load_shared16, load_shared8, load_shared4, store_shared16, store_shared4
 *                               16, 8 or 4 bytes at a 32-bit shared address
 *   load_global<T>, store_global
 *                               T of 2, 4, 8 or 16 bytes, aligned to its size
 *   cp_async16(shared, global, in_range)
 *                               copies 16 bytes; writes zeros and reads nothing when out of range
 *   cp_async16_of_line(shared, global, in_range)
 *                               the same; what else is in the line of 128 bytes will be read soon, so it comes to L2 too
 *   cp_async4(shared, global, in_range)
 *                               the same of 4 bytes
 *   cp_async_commit(), cp_async_wait<N>()
 *                               groups of those copies
 *   atomic_add4(p, v)           p[0..3] += v[0..3], each addition atomic; p 16-byte aligned
 *   atomic_add2(p, v)           the same for two; p 8-byte aligned
 *   atomic_add(p, x)            the same for one float
 *   atomic_add(p, n)            the same for one uint64_t, which wraps; p 8-byte aligned
 *   atomic_max(p, x)            *p = max(*p, x), atomic; both are 0 or more, or NaN, which is more than any number
 *
 * Matrix operations of a warp
 *   ldmatrix_x4, ldmatrix_x4_trans
 *                               four 8x8 matrices of 16-bit elements
 *   mma(d, a, b, T())           d[16x8] += a[16x16] b[16x8], f32 accumulation
 *   mma_tf32(d, a, b0, b1)      d[16x8] += a[16x8] b[8x8], f32 accumulation; only the upper 19 bits of each
 *                               f32 operand count
 *
 * Arithmetic
 *   exp2_approx, tanh_approx, natural_log
 *                               special functions
 *   multiply(a, b)              rounded on its own, never fused with an addition
 *   divide(a, b)                rounded to nearest, whatever the compiler's options
 *   pack2(lo, hi, T())          two f32 rounded to nearest into one register
 *   pack4(a, b, c, d, e4m3())   four of them, of which a is in the lowest byte; beyond 448: 448
 *   widen2(bytes, E(), T())     the two lowest bytes of a register, e4m3, e5m2 or i8, as two elements; exact
 *   multiply2(x, y, f16())      the products of two pairs of f16, rounded to nearest
 *   pick_bytes(a, b, which)     four of the eight bytes of a and b, a's lowest is number 0: `which` has the number of
 *                               each in 4 bits, the lowest byte's lowest
 *   spread_tops(x, lo, hi)      a mask: the lower half is 0xffff if the top bit of byte lo of x is set, else 0, the
 *                               upper half likewise by byte hi; lo and hi must be constants
 *   low_half(x, T()), high_half(x, T())
 *                               the two elements of a register as f32
 *   as_float(bits), float_bits(x)
 *                               reinterpret the bits
 *   bytes_at_most(word, pair, limit)
 *                               0xffff in the low half if byte 2 pair of word is at most the limit, and in the
 *                               high half if byte 2 pair + 1 is. limit, at most 255, is given in both halves
 *
 * Overlap of kernels in a stream (programmatic dependent launch)
 *   next_kernel_may_start()     the next kernel of the stream, if it was launched to overlap, may start once
 *                               every block has called this or exited
 *   wait_for_kernels_before()   waits until the preceding kernels are done and their writes are visible to
 *                               load_written
 *   load_written<T>(p)          as load_global, for what those kernels wrote; T of 4 or 16 bytes */
#ifndef FA_GPU_KERNELS_MACHINE_PRIM_CUH
#define FA_GPU_KERNELS_MACHINE_PRIM_CUH

#include <stdint.h>

namespace fa {

/* Element types as tags: the data themselves are raw bit patterns. */
struct f16 {};
struct bf16 {};
struct f32 {};
struct e4m3 {};
struct e5m2 {};
struct i8 {};
struct e2m1 {}; /* two to a byte */

struct alignas(16) vec4 { /* 8 elements */
  uint32_t x, y, z, w;
};
struct alignas(8) vec2 {
  uint32_t x, y;
};

} // namespace fa

#ifdef __CUDACC__
#include "gpu/kernels/machine/prim_ptx.cuh"
#else
#include "gpu/kernels/machine/prim_host.cuh"
#endif

#endif
