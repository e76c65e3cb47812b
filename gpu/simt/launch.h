/* The host SIMT executor: runs a kernel's grid on the CPU, one fiber per CUDA thread.
 *
 * The kernel is the same source that nvcc compiles; what the hardware does collectively or asynchronously
 * reaches it through gpu/kernels/machine/prim.cuh, whose host body is gpu/simt/device.h. What the executor adds to
 * plain execution:
 *   - every global access is checked against the launch's ranges, every shared one against its size;
 *   - shared memory starts as NaN, and to read a word of it that the block has not written is reported; the
 *     same for global ranges that say so;
 *   - a cp.async destination is NaN until the copy's own wait, and its source is read then;
 *   - two threads that touch the same shared word, one of them writing, with no barrier between: a race,
 *     whatever order they happened to run in;
 *   - what a kernel leaves in scratch memory, touched by one that may overlap it and has not waited for it;
 *   - a warp collective or barrier that threads reach differently, or not at all: divergence or deadlock.
 * The first violation of the lowest block ends the launch and names the source line. */
#ifndef FA_GPU_SIMT_LAUNCH_H
#define FA_GPU_SIMT_LAUNCH_H

#include "cases/base/status.h"
#include "gpu/simt/device.h"
#include "gpu/simt/outcome.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fa_simt_written {
  FA_UNWRITTEN,     /* the caller's zeros */
  FA_WRITTEN,       /* by a launch that has ended */
  FA_WRITTEN_NOW,   /* by the launch that runs */
  FA_WRITTEN_BEFORE /* by a launch that lets those after it begin before it has ended */
} fa_simt_written;

/* Global memory that the kernel may touch: [begin, begin + bytes). */
typedef struct fa_simt_range {
  const char *name;
  const char *begin;
  size_t bytes;
  bool writable;
  /* NULL, or one byte for each 4 bytes of the range (rounded up): scratch memory, of which a read comes after
   * a write. Kept by the caller from launch to launch, fa_simt_written. */
  uint8_t *written;
} fa_simt_range;

typedef void (*fa_simt_kernel)(const void *params);

typedef struct fa_simt_launch {
  fa_simt_kernel kernel;
  const void *params;
  const char *name;
  fa_simt_dim grid, block; /* every extent >= 1; at most 1024 threads in a block, a multiple of 32 */
  size_t shared_bytes;     /* dynamic shared memory of a block */
  unsigned cluster;        /* blocks side by side in x that run together and reach each other's shared memory;
                              0: no clusters */
  const fa_simt_range *ranges;
  int n_ranges;
  uint64_t
      schedule_seed;   /* order of fibers, and when asynchronous copies land; 0 = the plain order, latest */
  const uint8_t *tape; /* instead of a seed, bytes that decide the same; read round and round by each block */
  size_t tape_bytes;   /* 0 = none */
  int n_threads;       /* host threads that share the blocks, >= 1; the result does not depend on it */
  /* It may begin before the launch before it has ended (programmatic dependent launch), so that a thread
   * which touches what that one wrote has waited for it. Here it does begin behind it. */
  bool overlaps;
} fa_simt_launch;

typedef struct fa_simt_report {
  fa_subject_state state; /* OK, OOB, RACE, DEADLOCK, or CRASH (misaligned access) */
  char text[512];         /* what, which thread and block, and the source line */
  const char *file;       /* of the violation; NULL when OK */
  int line;
} fa_simt_report;

/* FA_ERR_MEMORY, or FA_ERR_INPUT for a launch no device would take; a kernel that misbehaves is in *out. */
fa_status fa_simt_run(const fa_simt_launch *launch, fa_simt_report *out, fa_error *err);

#ifdef __cplusplus
}
#endif

#endif
