/* The host SIMT executor: runs a kernel's grid on the CPU, one fiber per CUDA thread.
 *
 * The kernel is the same source that nvcc compiles; collective and asynchronous operations of the hardware
 * reach the executor through gpu/kernels/machine/prim.cuh, whose host body calls gpu/simt/device.h. In
 * addition to executing it, the executor checks:
 *   - every global access against the launch's ranges, every shared access against the block's size;
 *   - reads of unwritten memory: shared memory starts as NaN, and a read of a word that the block has not
 *     written is reported; so is one in a global range that asks for it;
 *   - cp.async: the destination is NaN until the copy's own wait, and the source is read then;
 *   - races: two threads access the same shared word, one of them writes, and no barrier is between, in
 *     whatever order they happened to run;
 *   - scratch memory written by a kernel, accessed by one that may overlap it and has not waited for it;
 *   - in launches whose additions must be in a fixed order: additions that no semaphore orders (order.h);
 *   - divergence and deadlock: a warp collective or barrier that threads reach differently, or not at all.
 * The first violation in the lowest block ends the launch; the report names the source line. */
#ifndef FA_GPU_SIMT_LAUNCH_H
#define FA_GPU_SIMT_LAUNCH_H

#include "cases/base/status.h"
#include "cases/vocabulary/work.h"
#include "gpu/outcome.h"
#include "gpu/simt/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fa_simt_written {
  FA_UNWRITTEN,     /* only zeroed by the caller */
  FA_WRITTEN,       /* by a launch that has ended */
  FA_WRITTEN_NOW,   /* by the running launch */
  FA_WRITTEN_BEFORE /* by a launch that lets the next one start before it has ended */
} fa_simt_written;

/* Global memory that the kernel may touch: [begin, begin + bytes). */
typedef struct fa_simt_range {
  const char *name;
  const char *begin;
  size_t bytes;
  bool writable;
  /* NULL, or one byte for each 4 bytes of the range (rounded up), for scratch memory, which must be written
   * before it is read. fa_simt_written; the caller keeps it from launch to launch. */
  uint8_t *written;
} fa_simt_range;

typedef void (*fa_simt_kernel)(const void *params);

typedef struct fa_simt_launch {
  fa_simt_kernel kernel;
  const void *params;
  const char *name;
  fa_simt_dim grid, block; /* every extent >= 1; at most 1024 threads in a block, a multiple of 32 */
  size_t shared_bytes;     /* dynamic shared memory of a block */
  unsigned cluster;        /* blocks, neighbours in x, that run together and access each other's shared
                              memory; 0: no clusters */
  const fa_simt_range *ranges;
  int n_ranges;
  uint64_t
      schedule_seed;   /* order of fibers, and when asynchronous copies complete; 0 = the plain order, copies
                          complete last */
  const uint8_t *tape; /* bytes that decide the same in place of a seed; each block reads them cyclically */
  size_t tape_bytes;   /* 0 = none */
  int n_threads;       /* host threads that share the blocks, >= 1; the result does not depend on it */
  /* It may start before the preceding launch has ended (programmatic dependent launch), so a thread that
   * accesses what that one wrote must have waited for it. The executor starts it afterwards all the same. */
  bool overlaps;
  /* Blocks add floats to the same memory in a fixed order, as in a deterministic call, and keep it by semaphores. */
  bool adds_in_order;
} fa_simt_launch;

typedef struct fa_simt_report {
  fa_subject_state state; /* OK, OOB, RACE, DEADLOCK, or CRASH (misaligned access) */
  char text[512];         /* what happened, in which thread and block, and the source line */
  const char *file;       /* of the violation; NULL when OK */
  int line;
  fa_work work; /* of the whole grid; of what was run until then if there was a violation */
} fa_simt_report;

/* FA_ERR_MEMORY, or FA_ERR_INPUT for a launch that no device would accept; what a kernel does wrong is in
 * *out. */
fa_status fa_simt_run(const fa_simt_launch *launch, fa_simt_report *out, fa_error *err);

#ifdef __cplusplus
}
#endif

#endif
