/* Inside the executor: asynchronous operations, and the order of events when there is more than one kind of
 * barrier. A block gets this state when it first uses a primitive of device_sm90.h.
 *
 * Order is kept with vector clocks. The agents are the warps, each warp's first lane on its own, and the
 * mbarriers (for what bulk loads write). For each warp and agent, `seen` is a tick: what the agent did at an
 * earlier tick comes before what the warp does now. Barriers carry such clocks from the threads that arrive
 * to those that wait. */
#ifndef FA_GPU_SIMT_ASYNC_H
#define FA_GPU_SIMT_ASYNC_H

#include "gpu/simt/block.h"
#include "gpu/simt/device_sm90.h"

enum {
  FA_MAX_WARPS = FA_MAX_THREADS / FA_WARP,
  FA_MAX_MBARRIERS = 64,
  FA_LEADERS = FA_MAX_WARPS + FA_MAX_MBARRIERS, /* first lanes, each on its own */
  FA_AGENTS = FA_LEADERS + FA_MAX_WARPS,
  FA_NAMED_BARRIERS = 16,
  FA_GRANULE = 16, /* bytes */
  FA_MAX_PENDING_MMAS = 128,
  FA_MAX_SUMS = 8,
  FA_MAX_REGISTERS = 64
};

typedef struct fa_clock {
  uint32_t tick[FA_AGENTS];
} fa_clock;

typedef struct fa_mbarrier {
  uint32_t offset;
  int count, pending; /* arrivals per phase; arrivals still missing in this phase */
  int64_t bytes;      /* transaction bytes expected and not yet written */
  uint32_t phase;
  bool waited;          /* somebody has gone on by the last completed phase */
  fa_simt_place unseen; /* a load that has completed and that no thread has waited for; file NULL: none */
  uint32_t waiting[FA_MAX_WARPS];
  uint32_t lanes[FA_MAX_WARPS]; /* lanes that have arrived */
  fa_clock clock, complete;     /* of this phase; of the completed ones */
} fa_mbarrier;

typedef struct fa_named_barrier {
  int n_threads, n_arrived;
  fa_simt_place at;
  uint32_t waiting[FA_MAX_WARPS];
  uint32_t lanes[FA_MAX_WARPS]; /* lanes that have arrived */
  fa_clock clock;
} fa_named_barrier;

/* A bulk load in flight. */
typedef struct fa_bulk_load {
  const fa_tensor_map *map; /* NULL: a copy of `bytes` from shared memory itself */
  uint32_t shared, from, bytes;
  int bar, c[4];
  fa_simt_place at;
} fa_bulk_load;

/* Shared memory that a bulk store or addition still reads. */
typedef struct fa_bulk_store {
  int thread;
  bool committed;
  uint32_t shared, bytes;
  float *to; /* of an addition; NULL: a store */
} fa_bulk_store;

/* An addition that has read shared memory, and has not been made or, where additions have an order, been waited for. */
typedef struct fa_bulk_sum {
  int thread;
  float *to, *x; /* x: NULL once it has been made */
  uint32_t n;
} fa_bulk_sum;

/* The accumulator of MMAs in flight: its value so far, column by column of the warp's 16 rows, and the
 * registers it belongs to. */
typedef struct fa_sum {
  float *d[FA_WARP];
  int n_tiles, n_mmas; /* pending; 0: free */
  float value[32 * 8][16];
} fa_sum;

typedef struct fa_pending_mma {
  fa_simt_mma p;
  const uint32_t *a[FA_WARP];
  uint32_t a_value[FA_WARP][4];
  int sum;
  bool committed; /* ends a group */
  fa_simt_place at;
} fa_pending_mma;

/* Registers that MMAs of a warp have used, and their contents at its last fence. */
typedef struct fa_registers {
  const uint32_t *lane[FA_WARP];
  int n_words;
  bool fenced; /* whether a fence has come since they were first seen */
  uint64_t sum[FA_WARP];
  uint32_t out; /* the wait at which they last became readable as accumulators; 0: none */
} fa_registers;

typedef struct fa_warp_mmas {
  fa_simt_mma operands[FA_WARP];
  fa_pending_mma v[FA_MAX_PENDING_MMAS]; /* in issue order */
  int n;
  fa_sum sum[FA_MAX_SUMS];
  fa_registers known[FA_MAX_REGISTERS]; /* the first n_known; when all are in use, the oldest is replaced */
  int n_known, n_seen;
  uint32_t n_waits, n_fenced; /* waits so far; n_waits + 1 at the last fence, 0: no fence yet */
} fa_warp_mmas;

typedef struct fa_thread_wait {
  const char *what; /* NULL: none */
  fa_simt_place at;
} fa_thread_wait;

typedef struct fa_simt_async {
  fa_clock seen[FA_MAX_WARPS];
  fa_mbarrier bar[FA_MAX_MBARRIERS];
  int n_bars;
  fa_named_barrier named[FA_NAMED_BARRIERS * FA_MAX_RANKS];
  fa_bulk_load *load;
  int n_loads, load_capacity;
  fa_bulk_store *store;
  int n_stores, store_capacity;
  fa_bulk_sum *sum;
  int n_sums, sum_capacity;
  uint32_t fence_tick[FA_MAX_THREADS];
  fa_thread_wait wait[FA_MAX_THREADS];
  uint16_t *n_reading; /* of each granule: copies and MMAs that read it now */
  uint32_t *read_tick; /* [warp][granule]: of the last asynchronous read */
  uint8_t *read_lane;  /* [warp][granule]: the lane that waited for it; FA_WARP: all lanes */
  uint32_t *word_tick; /* [warp][word]: of the last ordinary read */
  size_t n_granules;
  fa_warp_mmas *mmas; /* [n_warps] */
} fa_simt_async;

/* The state of the running block, created at the first call. */
fa_simt_async *fa_simt_async_get(fa_simt_block *b);
void fa_simt_async_reset(fa_simt_block *b);
void fa_simt_async_free(fa_simt_block *b);

/* True if, by clocks alone, what the agent did at that tick comes before what the warp does now. */
static inline bool fa_simt_async_ordered(const fa_simt_block *b, int agent, uint32_t tick, int warp) {
  return tick < b->async->seen[warp].tick[agent];
}
/* Lets bulk loads complete; returns whether one did. With `must` at least one does. */
bool fa_simt_async_progress(fa_simt_block *b, bool must);
/* A thread exits, or the last of the block: asynchronous operations that would still touch shared memory are
 * violations. */
void fa_simt_async_thread_end(fa_simt_block *b, bool last);

/* registers.c:
 *   fence   wgmma_fence
 *   in      registers of n_words that an MMA is about to read, write or both
 *   out     accumulators that are readable after a wait */
void fa_simt_registers_fence(fa_warp_mmas *w);
void fa_simt_registers_in(fa_warp_mmas *w, const uint32_t *const lane[FA_WARP], int n_words, bool is_read,
                          bool is_written, fa_simt_place at);
void fa_simt_registers_out(fa_warp_mmas *w, const uint32_t *const lane[FA_WARP], int n_words);

/* Shared memory dies with its block: in a cluster, other blocks must not touch it any more. */
void fa_simt_check_alive(const fa_simt_block *b, uint32_t offset, const char *what, fa_simt_place at);

/* bulk.c: bulk load i completes. */
void fa_simt_bulk_arrive(fa_simt_block *b, int i);
/* Makes the additions of the running thread that have read shared memory. waited_for: they are complete by the rules too,
 * not by chance, which matters where additions have an order. */
void fa_simt_bulk_make_sums(fa_simt_block *b, bool waited_for);

/* async.c: bytes have been written, called by bulk.c. */
void fa_simt_mbarrier_bytes(fa_simt_block *b, int bar, int64_t bytes, fa_simt_place at);
int fa_simt_mbarrier_find(fa_simt_block *b, uint32_t offset, fa_simt_place at);

/* memory.c: accesses of bulk copies and MMAs to the granules [offset, offset + bytes) of shared memory.
 *   begin_read    checks, and marks the granules as being read until end_read
 *   end_read      this lane has waited for the read; lane FA_WARP: the whole warp has
 *   drop_read     the read ends, and no warp waits for it: the order of later writes follows from clocks
 *   begin_write   checks, and marks the granules as the destination of a bulk load
 *   arrived       the bulk load has written them */
void fa_simt_shared_begin_read(fa_simt_block *b, uint32_t offset, uint32_t bytes, const char *what,
                               fa_simt_place at);
void fa_simt_shared_end_read(fa_simt_block *b, uint32_t offset, uint32_t bytes, int lane);
void fa_simt_shared_drop_read(fa_simt_block *b, uint32_t offset, uint32_t bytes);
void fa_simt_shared_begin_write(fa_simt_block *b, uint32_t offset, uint32_t bytes, fa_simt_place at);
/* Reports a write of this word that is not ordered before what the running thread does now. */
void fa_simt_shared_check_written(fa_simt_block *b, uint32_t offset, fa_simt_place at);
void fa_simt_shared_arrived(fa_simt_block *b, uint32_t offset, uint32_t bytes, int bar, uint32_t tick);

#endif
