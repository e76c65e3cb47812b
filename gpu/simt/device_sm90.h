/* The C side of gpu/kernels/machine/prim_sm90.cuh's host body; names and rules are there. As in device.h, all of
 * these act for the CUDA thread whose fiber is running.
 *
 * What the executor adds: a bulk copy lands at an arbitrary moment before its barrier's phase completes, and
 * until then its destination is NaN and belongs to it; a product's registers are NaN until its wait, and its
 * operands in shared memory belong to it; and of two accesses to a word, one of them a write, one must come
 * before the other by barriers of any kind, or it is a race. An arrival passes on what its warp did before
 * its last sync_warp or wgmma_wait; one of a first lane, what that did itself too; one of all lanes, what
 * they did before they arrived. A wait by one lane counts for its whole warp. */
#ifndef FA_GPU_SIMT_DEVICE_SM90_H
#define FA_GPU_SIMT_DEVICE_SM90_H

#include "gpu/kernels/params/tensor_map.h"
#include "gpu/simt/device.h"

#ifdef __cplusplus
extern "C" {
#endif

void fa_simt_mbarrier_init(uint32_t bar, uint32_t count, fa_simt_place at);
/* bytes: announced first. */
void fa_simt_mbarrier_arrive(uint32_t bar, uint32_t bytes, fa_simt_place at);
void fa_simt_mbarrier_wait(uint32_t bar, int parity, fa_simt_place at);
/* Of n_threads; wait: bar.sync, or else bar.arrive. */
void fa_simt_named_barrier(int id, int n_threads, bool wait, fa_simt_place at);

void fa_simt_fence_async(void);
void fa_simt_tma_load(uint32_t shared, const fa_tensor_map *map, uint32_t bar, const int c[4],
                      fa_simt_place at);
/* From the block's shared memory to that of another of its cluster, as bar's. */
void fa_simt_bulk_copy(uint32_t to, uint32_t from, uint32_t bytes, uint32_t bar, fa_simt_place at);
void fa_simt_tma_store(const fa_tensor_map *map, uint32_t shared, const int c[4], fa_simt_place at);
void fa_simt_tma_store_commit(void);
void fa_simt_tma_store_wait_read(int n_pending_groups);

/* Collectives of the warp, each its share of the warpgroup's. d: [n_tiles][4]. a: NULL for one in shared
 * memory, else 4 registers, not to change before the wait. */
typedef struct fa_simt_mma {
  float *d;
  int n_tiles; /* columns / 8 */
  const uint32_t *a;
  uint64_t a_descriptor, b_descriptor;
  bool trans_a, trans_b, accumulate, bf16;
} fa_simt_mma;
void fa_simt_wgmma(const fa_simt_mma *p, fa_simt_place at);
void fa_simt_wgmma_fence(fa_simt_place at);
void fa_simt_wgmma_commit(fa_simt_place at);
void fa_simt_wgmma_wait(int n_pending_groups, fa_simt_place at);

/* True in all lanes if it is in one. */
bool fa_simt_any(bool value, fa_simt_place at);

#ifdef __cplusplus
}
#endif

#endif
