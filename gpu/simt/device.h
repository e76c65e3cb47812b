/* The functions that a kernel calls when it runs on the host: the C side of
 * gpu/kernels/machine/prim_host.cuh.
 *
 * Shared memory is addressed by a 32-bit number as on the device; here it is the byte offset into the block's
 * dynamic shared memory. Every call that can fail takes the source line it was made from. All functions act
 * for the CUDA thread whose fiber is running. */
#ifndef FA_GPU_SIMT_DEVICE_H
#define FA_GPU_SIMT_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fa_simt_dim {
  unsigned x, y, z;
} fa_simt_dim;

typedef struct fa_simt_place {
  const char *file;
  int line;
} fa_simt_place;

typedef struct fa_simt_ids {
  fa_simt_dim thread, block, block_dim, grid_dim;
  unsigned rank;        /* of the block in its cluster; 0 without clusters */
  uint32_t shared_base; /* of the block's shared memory */
} fa_simt_ids;

/* The running fiber's. __thread, not C11/C++11 thread_local: C and C++ must agree, and C++ would wrap it. */
extern __thread const fa_simt_ids *fa_simt_self;

/* Barriers. */
void fa_simt_sync_block(fa_simt_place at);
void fa_simt_sync_cluster(fa_simt_place at); /* all threads of a cluster; without clusters the block */
void fa_simt_sync_warp(fa_simt_place at);    /* all 32 lanes */

/* Warp collectives: all 32 lanes call them, from the same source line. */
uint32_t fa_simt_shfl_xor(uint32_t value, int lane_mask, fa_simt_place at);
/* Four 8x8 matrices of 16-bit elements; lanes 8m..8m+7 give the addresses of the 16-byte rows of matrix m.
 * Lane l receives in r[m] elements 2(l%4), 2(l%4)+1 of row l/4, or with transpose those rows of column
 * l/4. */
void fa_simt_ldmatrix_x4(uint32_t r[4], uint32_t shared, bool transpose, fa_simt_place at);
/* The reverse: lane l gives r[m], elements 2(l%4), 2(l%4)+1 of row l/4 of matrix m, and receives the row l%8 of matrix
 * l/8, which it then stores. */
void fa_simt_stmatrix_row(uint32_t row[4], const uint32_t r[4], bool transpose, fa_simt_place at);
/* d[16x8] += a[16x16] b[16x8] in the fragment layouts of mma.sync.m16n8k16, with the arithmetic of mma.h. */
void fa_simt_mma_m16n8k16(float d[4], const uint32_t a[4], const uint32_t b[2], bool bf16, fa_simt_place at);

/* d[16x8] += a[16x8] b[8x8] in the fragment layouts of mma.sync.m16n8k8 for tf32. */
void fa_simt_mma_tf32(float d[4], const uint32_t a[4], const uint32_t b[2], fa_simt_place at);

/* cp.async of 4 or 16 bytes; not in range: writes zeros and reads nothing. */
void fa_simt_cp_async(uint32_t shared, const void *global, uint32_t bytes, bool in_range, fa_simt_place at);
void fa_simt_cp_async_commit(void);
void fa_simt_cp_async_wait(int n_pending_groups); /* cp.async.wait_group n */

/* Checks an access of the given size (aligned to it) and returns its address. */
void *fa_simt_global(const void *p, size_t bytes, bool write, fa_simt_place at);
/* The same for floats that are added to, 16 bytes or fewer. asynchronous: the addition is complete when the thread has
 * waited for it. */
void *fa_simt_global_add(const void *p, size_t bytes, bool asynchronous, fa_simt_place at);
/* Reports an address that nobody has written, as a read would; it is no access, and no work. */
void fa_simt_expect_written(const void *p, size_t bytes, fa_simt_place at);
/* Programmatic dependent launch (fa_simt_launch.overlaps). The wait counts for the thread, and for threads
 * that meet it at a later __syncthreads. */
void fa_simt_next_kernel_may_start(void);
void fa_simt_wait_for_kernels_before(void);
void *fa_simt_shared(uint32_t offset, size_t bytes, bool write, fa_simt_place at);

/* Semaphores; the caller has checked the access. */
void fa_simt_release_global(unsigned *p, unsigned value);
/* Waits until *p is value. A block may wait only for blocks before it. */
void fa_simt_wait_global(const unsigned *p, unsigned value, fa_simt_place at);

/* ex2.approx.ftz.f32 within its documented error: correctly rounded to about 1 ulp, subnormals flushed. */
float fa_simt_exp2(float x);

#ifdef __cplusplus
}
#endif

#endif
