/* Inside the executor: the state of one block being run by one host thread. */
#ifndef FA_GPU_SIMT_BLOCK_H
#define FA_GPU_SIMT_BLOCK_H

#include "gpu/simt/fiber.h"
#include "gpu/simt/launch.h"
#include "gpu/simt/mma.h"

#include <string.h>

#define FA_WARP 32
#define FA_MAX_BLOCK_THREADS 1024
#define FA_MAX_THREADS 4096 /* of a cluster */
#define FA_MAX_RANKS 16
#define FA_RANK_BYTES (1u << 18) /* a matrix descriptor has as many address bits */
/* Poison for 16-bit halves: a NaN as f16, as bf16 and, doubled, as f32. */
#define FA_POISON_UNINITIALISED 0x7fa5u
#define FA_POISON_IN_FLIGHT 0x7fb6u

typedef enum fa_collective {
  FA_COLLECTIVE_SYNC_WARP,
  FA_COLLECTIVE_SHFL,
  FA_COLLECTIVE_LDMATRIX,
  FA_COLLECTIVE_STMATRIX,
  FA_COLLECTIVE_MMA,
  FA_COLLECTIVE_MMA_TF32,
  FA_COLLECTIVE_VOTE,
  FA_COLLECTIVE_WGMMA,
  FA_COLLECTIVE_WGMMA_COMMIT,
  FA_COLLECTIVE_WGMMA_WAIT,
  FA_COLLECTIVE_WGMMA_FENCE
} fa_collective;

/* One asynchronous copy. */
typedef struct fa_copy {
  uint32_t shared, bytes;
  bool in_range; /* else zeros */
  bool complete; /* the data arrived before its wait, as the seed decided */
  const char *global;
  fa_simt_place at;
} fa_copy;

/* A thread's copies in issue order; the first n_grouped belong to committed groups. */
typedef struct fa_copy_queue {
  fa_copy *v;
  int n, capacity, n_grouped;
  int *group_end; /* group g has v[group_end[g-1] .. group_end[g]) */
  int n_groups, group_capacity;
} fa_copy_queue;

/* What a fiber switch touches fits in one cache line. */
typedef struct fa_simt_thread {
  fa_fiber fiber;
  int index, warp, lane;
  bool waited; /* for the preceding kernels */
  fa_simt_ids ids;
  fa_copy_queue copies;
} fa_simt_thread;

/* Lanes store the operands of a collective here, while their cache lines are hot, and load the results from
 * here. Only the lane itself reads its result, and nothing overwrites it before all lanes have arrived again;
 * what other lanes read of it is copied when the collective is executed. */
typedef struct fa_simt_warp {
  uint32_t ready;      /* lanes that could run now (not the running lane) */
  uint32_t waiting;    /* lanes that have reached the pending collective */
  uint32_t at_barrier; /* lanes in __syncthreads */
  uint32_t sync_tick;  /* of its last __syncwarp */
  fa_collective kind;
  bool choice; /* ldmatrix: transposed; stmatrix: false; mma: bf16 */
  fa_simt_place at;
  uint32_t shfl_value[FA_WARP], shfl_from[FA_WARP], shfl_result[FA_WARP];
  union {
    uint16_t row[FA_WARP][8];       /* of ldmatrix: those of matrix m from 8 m on */
    uint32_t row_words[4][FA_WARP]; /* of stmatrix: lane l's word of matrix m */
  };
  uint32_t loaded[4][FA_WARP]; /* lane l's word of matrix m: at l, transposed at 8 (l % 4) + l / 4 */
  fa_mma_tile tile;
} fa_simt_warp;

/* What is known of 4 bytes of shared memory: 16 bytes, so that the shadow of a 16-byte access is one cache
 * line. Ticks count the barriers of a block and of its warps together and never repeat within an executor, so
 * that one number says what an access came after. Places are indices into fa_simt_block.place. */
typedef struct fa_shadow {
  uint32_t write_tick, read_tick;
  int16_t writer, reader;
  uint16_t write_place;
  uint16_t read_place : 15;
  uint16_t in_flight : 1; /* destination of a copy that has not been waited for */
} fa_shadow;

#define FA_MAX_PLACES (1 << 13)

/* The first read of a shared word that the block had not written. It is held back until the next barrier or
 * other violation: if a write comes first, it was a race, and that report names both lines. */
typedef struct fa_unwritten {
  fa_simt_thread *by; /* NULL: none yet */
  uint32_t offset;
  fa_simt_place at;
} fa_unwritten;

struct fa_simt_async; /* async.h */
struct fa_simt_grid;  /* run.c */
struct fa_simt_order; /* order.h */
struct fa_order_wait; /* order.c */

typedef struct fa_simt_block {
  const fa_simt_launch *launch;
  struct fa_simt_grid *grid; /* the grid whose block `index` it runs */
  int64_t index;
  fa_fiber_stacks stacks;
  fa_fiber main;
  fa_simt_thread *threads;
  fa_simt_warp *warps;
  int n_ranks;           /* blocks that run together as a cluster: what follows covers all of them */
  size_t memory_bytes;   /* of shared memory; a block's own begins at FA_RANK_BYTES times its rank */
  uint32_t address_mask; /* for the part of an address within a block's own shared memory */
  int n_threads, n_warps, n_live, n_at_barrier;
  bool any_waited;             /* a thread has waited for the preceding kernels */
  int n_live_of[FA_MAX_RANKS]; /* of each block of the cluster */
  fa_simt_place barrier_at;
  int current_warp;
  fa_simt_thread *running;
  char *shared;
  fa_shadow *shadow;
  uint32_t tick;         /* barriers passed so far, of the block and of its warps */
  uint32_t barrier_tick; /* of the last __syncthreads */
  uint32_t first_tick;   /* of the start: a word last written before it is uninitialised */
  fa_simt_place *place;  /* [FA_MAX_PLACES], hashed; file NULL: free */
  fa_unwritten unwritten;
  uint64_t rng;                /* 0: the plain schedule */
  uint64_t stay;               /* a mask for a random number: the warp goes on unless all these bits are 0 */
  size_t tape_at;              /* the next byte of the launch's tape */
  struct fa_simt_async *async; /* NULL until a function of device_sm90.h is called */
  struct fa_simt_order *order; /* of all blocks of the launch; NULL: additions are made in any order */
  const struct fa_order_wait *waits; /* with `order`: the block's waits for semaphores, the last one first */
  int last_range;              /* the range of the previous global access */
  fa_work work;                /* of all blocks that this host thread has run */
  fa_simt_report report;
} fa_simt_block;

/* At a barrier of the whole block: if one thread has waited for the preceding kernels, all have. */
void fa_simt_share_wait(fa_simt_block *b);

/* The block whose fibers this host thread is running. */
extern __thread fa_simt_block *fa_simt_current;

fa_status fa_simt_block_init(fa_simt_block *b, const fa_simt_launch *launch, fa_error *err);
void fa_simt_block_free(fa_simt_block *b);
/* Runs one block to its end or first violation, which b->report describes. */
void fa_simt_block_run(fa_simt_block *b, int64_t index);

/* Records the violation and leaves the running fiber for good. */
void fa_simt_violation(fa_subject_state state, fa_simt_place at, const char *format, ...)
    __attribute__((format(printf, 3, 4), noreturn));
/* The running thread cannot go on: switches to the next ready one, or reports a deadlock. */
void fa_simt_yield(fa_simt_block *b);
const char *fa_simt_collective_name(fa_collective kind);
/* warp.c: the running lane arrives at the warp's pending collective. True: it is the last one and executes
 * it; false: it must yield. */
bool fa_simt_collective_arrive(fa_collective kind, fa_simt_place at);
static inline bool fa_simt_same_place(fa_simt_place a, fa_simt_place b) {
  return a.line == b.line && (a.file == b.file || strcmp(a.file, b.file) == 0);
}
uint64_t fa_simt_random(fa_simt_block *b);

/* Where in the grid a block is that runs as number `index`, alone or with its cluster; thread: one of its own. */
fa_simt_dim fa_simt_block_at(const fa_simt_block *b, int64_t index, int thread);

/* global.c: the range of an access; NULL: there is none. */
const fa_simt_range *fa_simt_range_of(fa_simt_block *b, const void *p, size_t bytes);
void fa_simt_check_aligned(const void *p, size_t bytes, fa_simt_place at);

/* memory.c */
void fa_simt_shared_reset(fa_simt_block *b);
/* True if what a thread did at that tick comes before what the running thread does now. */
bool fa_simt_ordered(const fa_simt_block *b, int thread, uint32_t tick);
/* Checks a read of 16 bytes, called `what` in a report, and returns its address. */
const void *fa_simt_shared_read16(fa_simt_block *b, uint32_t offset, const char *what, fa_simt_place at);

#endif
