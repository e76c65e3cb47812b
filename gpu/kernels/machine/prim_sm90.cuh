/* What compute capability 9.0 adds to prim.cuh: matrix products of a warpgroup out of shared memory, bulk
 * copies of tiles, and barriers in shared memory that both complete on. Two bodies again: inline PTX for
 * sm_90a, and the host executor, which lets every asynchronous thing happen at an arbitrary moment between
 * its issue and its wait.
 *
 * A warpgroup is 4 consecutive warps, the first of a number divisible by 4. An operation "of the warpgroup"
 * is executed by all its 128 threads, one "of the warp" by all 32.
 *
 * Barriers in shared memory: 8 bytes, aligned. A phase completes when `count` arrivals and all announced
 * bytes have come; parity is that of the phase waited for, and that of the one before the first counts as
 * complete.
 *   mbarrier_init(bar, count)             one thread; then mbarrier_init_fence() and sync_block()
 *   mbarrier_arrive(bar)
 *   mbarrier_arrive_expect(bar, bytes)    announces bytes to come in this phase, and arrives
 *   mbarrier_wait(bar, parity)            blocks until that phase is complete
 *   named_sync<ID, THREADS>(), named_arrive<ID, THREADS>(), and with the ID at run time: bar.sync; ID 1..15
 *
 * Bulk copies of a box of a tensor map (tensor_map.h), rows packed in shared memory and swizzled as the map
 * says; what lies outside the tensor comes as zeros, counts as bytes all the same, and is not stored. One
 * thread calls:
 *   tma_load(shared, map, bar, c0, c1, c2, c3)  coordinates of the first element; completes on bar
 *   tma_store(map, shared, c0, c1, c2, c3), tma_store_commit()
 *   tma_store_wait_read<N>()              all but the last N groups of the thread have read shared memory
 *   fence_async()                         the thread's own ordinary accesses to shared memory come before
 *                                         what copies and products read after the next barrier
 *
 * Products: d[64 x N] (+)= a[64 x 16] b[16 x N], f32 accumulators in the layout of mma.sync's d for each
 * warp's 16 rows, d[n][4] being columns 8n..8n+7; N = 32, 64, 80, 96, 112, 128, 160, 176, 192, 256.
 *   matrix_descriptor(shared, leading, stride, swizzle)   of an operand in shared memory
 *   wgmma_ss<TRANS_A, TRANS_B>(d, a, b, accumulate, T())  TRANS: rows of the operand's tile are its depth
 *   wgmma_rs<TRANS_B>(d, a, b, accumulate, T())           a[4]: registers as mma.sync's a of the warp's rows
 *   wgmma_fence()      before the first product of a batch, when its registers were written by other code
 *   wgmma_commit()     ends a group
 *   wgmma_wait<N>(d)   all groups but the last N are complete, this warp's share of them; d may be read then
 * Registers of a product in flight must not be touched.
 *
 * Clusters: blocks that run together (grid x: neighbours), of one rank each from 0 on. What they share of
 * each other they may touch between two cluster_sync of all.
 *   cluster_rank()
 *   cluster_sync()                              all threads of all blocks of the cluster
 *   cluster_address(shared, rank)               of the same place in another block's shared memory, for:
 *   mbarrier_arrive_at(bar)
 *   copy_shared_to_cluster(to, from, bytes, bar)           one thread; a bulk copy out of the own shared memory, in
 *                                               sixteens, that completes on bar; `to` and bar: same block
 *   tma_load_both(...)                          as tma_load, but into both blocks of a cluster of two: at the
 *                                               same place of each, completing on each one's barrier at bar
 *
 *   registers_up<N>(), registers_down<N>()      of the warpgroup: to N registers a thread
 *   FA_COUNTERS(name, n)                        n numbers in device memory, 0 in the beginning, for
 *   counter_fetch_add(p)                              what *p is, which then is one more; atomic
 *   counter_store(p, x)
 *   semaphore_release(p, x), semaphore_wait(p, x)    *p = x, and until it is: what the one thread did and has
 *                                               waited for comes before what the other does next. Of a block
 *                                               with lower indices, z first, as those begin in this order
 *   uniform(x)                                  x, the same in all lanes, which the compiler is told
 *   any_lane(x)                                 of the warp
 *   greater(a, b)                               the larger; of a number and NaN the number */
#ifndef FA_GPU_KERNELS_MACHINE_PRIM_SM90_CUH
#define FA_GPU_KERNELS_MACHINE_PRIM_SM90_CUH

#include "gpu/kernels/machine/prim.cuh"
#include "gpu/kernels/params/tensor_map.h"

namespace fa {

/* leading, stride: bytes, multiples of 16; swizzle: fa_tensor_swizzle, 0 for none. Tiles begin on 8 times the
 * swizzle's width. */
FA_DEVICE uint64_t matrix_descriptor(uint32_t shared, uint32_t leading, uint32_t stride, int swizzle) {
  return static_cast<uint64_t>((shared & 0x3ffff) >> 4) | static_cast<uint64_t>(leading >> 4) << 16 |
         static_cast<uint64_t>(stride >> 4) << 32 | static_cast<uint64_t>(swizzle) << 62;
}
/* The same operand `bytes` further on. */
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
