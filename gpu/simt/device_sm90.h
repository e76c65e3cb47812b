/* The C side of gpu/kernels/machine/prim_sm90_host.cuh; prim_sm90.cuh documents names and rules. As in
 * device.h, all functions act for the CUDA thread whose fiber is running.
 *
 * What the executor adds:
 *   bulk copies   complete at an arbitrary moment before their barrier's phase does. Until then the
 *               destination is NaN, and any other access to it is a violation.
 *   MMAs          Their registers are NaN until their wait; writing their operands in shared memory before is
 *                 a violation.
 *   races         Of two accesses to a word, one of them a write, one must come before the other by barriers
 *                 of any kind.
 *   arrivals      An arrival publishes what its warp did before its last sync_warp or wgmma_wait; one of a
 *               first lane, also what that lane did itself; one of all lanes, what they did before they
 *               arrived. A wait by one lane counts for its whole warp. */
#ifndef FA_GPU_SIMT_DEVICE_SM90_H
#define FA_GPU_SIMT_DEVICE_SM90_H

#include "gpu/kernels/params/tensor_map.h"
#include "gpu/simt/device.h"

#ifdef __cplusplus
extern "C" {
#endif

void fa_simt_mbarrier_init(uint32_t bar, uint32_t count, fa_simt_place at);
/* bytes: transaction bytes, expected before the arrival. */
void fa_simt_mbarrier_arrive(uint32_t bar, uint32_t bytes, fa_simt_place at);
void fa_simt_mbarrier_wait(uint32_t bar, int parity, fa_simt_place at);
/* A barrier of n_threads; wait: bar.sync, else bar.arrive. */
void fa_simt_named_barrier(int id, int n_threads, bool wait, fa_simt_place at);

void fa_simt_fence_async(void);
void fa_simt_tma_load(uint32_t shared, const fa_tensor_map *map, uint32_t bar, const int c[4],
                      fa_simt_place at);
/* From the block's shared memory to that of another block of its cluster, where bar is too. */
void fa_simt_bulk_copy(uint32_t to, uint32_t from, uint32_t bytes, uint32_t bar, fa_simt_place at);
/* Of the shared memory of any block of the cluster. */
const void *fa_simt_cluster_read(uint32_t offset, size_t bytes, fa_simt_place at);
void fa_simt_tma_store(const fa_tensor_map *map, uint32_t shared, const int c[4], fa_simt_place at);
/* to[i] += x[i], at any time between here and the wait. */
void fa_simt_bulk_add(float *to, uint32_t shared, uint32_t bytes, fa_simt_place at);
void fa_simt_tma_store_commit(void);
void fa_simt_tma_store_wait_read(int n_pending_groups);
void fa_simt_tma_store_wait(void);

/* What an MMA multiplies: elements of 16 bits, 16 deep; of 8, 32 deep, or of 32, 8 deep, both not transposed. */
typedef enum fa_simt_element { FA_SIMT_F16, FA_SIMT_BF16, FA_SIMT_E4M3, FA_SIMT_TF32 } fa_simt_element;

/* Collectives of the warp, each for its share of the warpgroup's MMA. d: [n_tiles][4]. a: NULL for an operand
 * in shared memory, else 4 registers, which must not change before the wait. */
typedef struct fa_simt_mma {
  float *d;
  int n_tiles; /* columns / 8 */
  const uint32_t *a;
  uint64_t a_descriptor, b_descriptor;
  bool trans_a, trans_b, accumulate;
  fa_simt_element element;
} fa_simt_mma;
void fa_simt_wgmma(const fa_simt_mma *p, fa_simt_place at);
void fa_simt_wgmma_fence(fa_simt_place at);
void fa_simt_wgmma_commit(fa_simt_place at);
void fa_simt_wgmma_wait(int n_pending_groups, fa_simt_place at);

/* True in all lanes if `value` is true in one. */
bool fa_simt_any(bool value, fa_simt_place at);

#ifdef __cplusplus
}
#endif

#endif
