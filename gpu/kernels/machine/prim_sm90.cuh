/* What compute capability 9.0 adds to prim.cuh: warpgroup MMAs (wgmma) with operands in shared memory, bulk
 * copies of tiles (TMA), and the mbarriers in shared memory on which both are synchronised. Again there are
 * two bodies: inline PTX for sm_90a, and the host executor, which completes every asynchronous operation at
 * an arbitrary moment between its issue and its wait.
 *
 * A warpgroup is 4 consecutive warps, the first of which has a number divisible by 4. All 128 threads execute
 * an operation "of the warpgroup", all 32 an operation "of the warp".
 *
 * Barriers in shared memory: 8 bytes, aligned. A phase completes when `count` threads have arrived and all
 * expected transaction bytes have been written. A wait names the parity of the phase that it waits for; the
 * phase before the first counts as complete.
 *   mbarrier_init(bar, count)             one thread; then mbarrier_init_fence() and sync_block()
 *   mbarrier_arrive(bar)
 *   mbarrier_arrive_expect(bar, bytes)    adds to the transaction bytes expected in this phase, and arrives
 *   mbarrier_wait(bar, parity)            blocks until that phase is complete
 *   named_sync<THREADS>(id), named_arrive<THREADS>(id)
 *                                         bar.sync and bar.arrive; id 1..15
 *   named_sync_of_roles<THREADS>(id)      the same where warps come to it at instructions of their own: barrier.sync,
 *                                         of which synccheck does not expect a single one for the block
 *
 * Bulk copies of a box of a tensor map (tensor_map.h). Rows are packed in shared memory and swizzled as the
 * map says. Elements outside the tensor are loaded as zeros, which count as transaction bytes all the same,
 * and are not stored. One thread issues the copy:
 *   tma_load(shared, map, bar, c0, c1, c2, c3)  coordinates of the first element; completes on bar
 *   tma_store(map, shared, c0, c1, c2, c3), tma_store_commit()
 *   bulk_add(to, shared, bytes)           likewise to[i] += what is in shared memory, each addition of floats atomic;
 *                                         addresses and bytes are multiples of 16. No tensor map
 *   tma_store_wait_read<N>()              all but the thread's last N groups have read shared memory
 *   tma_store_wait()                      all of the thread's groups are complete: what they wrote can be seen by whoever
 *                                         the thread tells
 *   fence_async()                         orders the thread's own ordinary accesses to shared memory before
 *                                         the reads of copies and MMAs issued after the next barrier
 *
 * Warpgroup MMAs: d[64 x N] (+)= a[64 x 16] b[16 x N] with f32 accumulators. Each warp's 16 rows have the
 * layout of mma.sync's d; d[n][4] holds columns 8n..8n+7. N = 16, 32, 64, 80, 96, 112, 128, 160, 176, 192, 256.
 *   matrix_descriptor(shared, leading, stride, swizzle)   of an operand in shared memory
 *   wgmma_ss<TRANS_A, TRANS_B>(d, a, b, accumulate, T())  TRANS: the rows of the operand's tile run along k
 *   wgmma_rs<TRANS_B>(d, a, b, accumulate, T())           a[4]: registers as mma.sync's a of the warp's rows
 * Of e4m3 elements an MMA is 32 deep, and TRANS 0: the depth is contiguous in both operands. a's registers have four
 * neighbours each: a[0] of row l / 4 and depth 4 (l % 4), a[1] 8 rows on, a[2] and a[3] 16 deeper.
 * Of f32 elements an MMA is 8 deep, multiplies their upper 19 bits (tf32), and has TRANS 0 likewise: N = 32, 64, 128; a[4] as
 * mma_tf32 has it.
 *   wgmma_fence()      before the first MMA of a batch if other code wrote its registers
 *   wgmma_commit()     ends a group
 *   wgmma_wait<N>(d)   this warp's share of all groups but the last N is complete; d may be read from here on
 *   wgmma_wait_operands<N>()   the same where more is still added to d: what those groups multiplied may be overwritten
 * The registers of an MMA in flight must not be touched.
 *   stmatrix_x4(shared, r)                      the reverse of ldmatrix_x4 (prim.cuh): each lane gives the
 *                                               address of a row
 *   stmatrix_x4_trans(shared, r)                and of ldmatrix_x4_trans
 *   or_if_at_least(to, bits, x, limit)          to |= bits where x >= limit, by two instructions
 *   word_as_double(x)                           bits of a double that has x for its lower word: 2^84 + 2^32 x
 *   multiply_double<F>(x)                       the same of the upper word of x's product with F, by the pipe of doubles
 *   multiply_wide(a, b)                         the 64 bits of a product, by one instruction whatever the factors are
 *
 * Clusters: blocks that run together (neighbours in grid x), with ranks from 0 on. A block may access another
 * block's shared memory only between two cluster_sync of all blocks.
 *   cluster_rank()
 *   cluster_sync()                              all threads of all blocks of the cluster
 *   cluster_end()                               the same where nothing is sent any more: blocks may end behind it,
 *                                               for others have read what they wanted
 *   cluster_address(shared, rank)               the same offset in another block's shared memory, for:
 *   load_cluster4(address), load_cluster16(address)
 *   mbarrier_arrive_at(bar)
 *   copy_shared_to_cluster(to, from, bytes, bar)
 *                                               one thread; a bulk copy from the block's own shared memory, a
 *                                               multiple of 16 bytes; completes on bar; `to` and bar are in the
 *                                               same block
 *   tma_load_both(...)                          tma_load multicast to both blocks of a cluster of two: at the
 *                                               same offset in each, completing on each block's own bar
 *
 * Other
 *   registers_up<N>(), registers_down<N>()      of the warpgroup: set the limit to N registers a thread
 *   FA_COUNTERS(name, n)                        defines n counters in device memory, initially 0, for:
 *   counter_fetch_add(p)                        returns *p and adds 1, atomically
 *   counter_store(p, x)
 *   semaphore_release(p, x)                     *p = x, after everything that the thread did and waited for
 *   semaphore_wait(p, x)                        waits until *p is x; what the thread does next comes after
 *                                               it. A block may wait only for blocks with lower indices (z
 *                                               major), because blocks start in that order
 *   uniform(x)                                  x, which is the same in all lanes, as the compiler learns
 *                                               here
 *   in_uniform_register(x)                      likewise, and held in a register of the warp, as is what is
 *                                               computed from it: descriptors of MMAs. The compiler puts what
 *                                               it knows to be uniform into registers of threads, if other
 *                                               threads' addresses are made of it too
 *   from_lane(x, lane)                          x of that lane, the same one for all
 *   elected()                                   true in one lane of the warp, which all lanes call at once: the compiler
 *                                               learns that nobody else is there, and issues copies without a loop over
 *                                               whoever might be
 *   any_lane(x)                                 whether x is true in any lane of the warp
 *   greater(a, b)                               the larger of the two; if one is NaN, the other */
#ifndef FA_GPU_KERNELS_MACHINE_PRIM_SM90_CUH
#define FA_GPU_KERNELS_MACHINE_PRIM_SM90_CUH

#include "gpu/kernels/machine/prim.cuh"
#include "gpu/kernels/params/tensor_map.h"

namespace fa {

/* leading, stride: bytes, multiples of 16; swizzle: fa_tensor_swizzle, 0 for none. Tiles begin at a multiple
 * of 8 times the swizzle's width. */
FA_DEVICE uint64_t matrix_descriptor(uint32_t shared, uint32_t leading, uint32_t stride, int swizzle) {
  return static_cast<uint64_t>((shared & 0x3ffff) >> 4) | static_cast<uint64_t>(leading >> 4) << 16 |
         static_cast<uint64_t>(stride >> 4) << 32 | static_cast<uint64_t>(swizzle) << 62;
}
/* The same operand, starting `bytes` later. */
FA_DEVICE uint64_t descriptor_at(uint64_t descriptor, uint32_t bytes) {
  return descriptor + (bytes >> 4);
}

} // namespace fa

#ifdef __CUDACC__
#include "gpu/kernels/machine/prim_sm90_ptx.cuh"
#else
#include "gpu/kernels/machine/prim_sm90_host.cuh"
#endif

#endif
