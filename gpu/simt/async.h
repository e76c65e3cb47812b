/* Inside the executor: what completes on its own, and what came before what when there is more than one kind
 * of barrier. A block has this from its first use of a primitive of device_sm90.h on.
 *
 * Order: agents are the warps, their first lanes once more, and the barriers in shared memory for what bulk
 * copies have written. For each
 * warp and agent, `seen` is a tick: what the agent did at an earlier one comes before what the warp does now.
 * Barriers carry such clocks from those who arrive to those who wait. */
#ifndef FA_GPU_SIMT_ASYNC_H
#define FA_GPU_SIMT_ASYNC_H

#include "gpu/simt/block.h"
#include "gpu/simt/device_sm90.h"

enum {
  FA_MAX_WARPS = FA_MAX_BLOCK_THREADS / FA_WARP,
  FA_MAX_MBARRIERS = 64,
  FA_LEADERS = FA_MAX_WARPS + FA_MAX_MBARRIERS, /* first lanes, each on its own */
  FA_AGENTS = FA_LEADERS + FA_MAX_WARPS,
  FA_NAMED_BARRIERS = 16,
  FA_GRANULE = 16, /* bytes */
  FA_MAX_PRODUCTS = 128,
  FA_MAX_SUMS = 8,
  FA_MAX_REGISTERS = 64
};

typedef struct fa_clock {
  uint32_t tick[FA_AGENTS];
} fa_clock;

typedef struct fa_mbarrier {
  uint32_t offset;
  int count, pending; /* arrivals of a phase; still to come in this one */
  int64_t bytes;      /* announced and not yet come */
  uint32_t phase;
  fa_simt_place unseen; /* of a load that has landed and that nobody has waited for; file NULL: none */
  uint32_t waiting[FA_MAX_WARPS];
  uint32_t lanes[FA_MAX_WARPS]; /* that have arrived */
  fa_clock clock, complete;     /* of this phase; of those before */
} fa_mbarrier;

typedef struct fa_named_barrier {
  int n_threads, n_arrived;
  fa_simt_place at;
  uint32_t waiting[FA_MAX_WARPS];
  uint32_t lanes[FA_MAX_WARPS]; /* that have arrived */
  fa_clock clock;
} fa_named_barrier;

/* A bulk load on its way. */
typedef struct fa_bulk_load {
  const fa_tensor_map *map; /* NULL: `bytes` out of shared memory itself */
  uint32_t shared, from, bytes;
  int bar, c[4];
  fa_simt_place at;
} fa_bulk_load;

/* A bulk store's hold on shared memory. */
typedef struct fa_bulk_store {
  int thread;
  bool committed;
  uint32_t shared, bytes;
} fa_bulk_store;

/* An accumulator of products in flight: its value so far, column by column of the warp's 16 rows, and where
 * it goes. */
typedef struct fa_sum {
  float *d[FA_WARP];
  int n_tiles, n_products; /* pending; 0: free */
  float value[32 * 8][16];
} fa_sum;

typedef struct fa_product {
  fa_simt_mma p;
  const uint32_t *a[FA_WARP];
  uint32_t a_value[FA_WARP][4];
  int sum;
  bool committed; /* ends a group */
  fa_simt_place at;
} fa_product;

/* Registers that products of a warp have used, and what stood there at its last fence. */
typedef struct fa_registers {
  const uint32_t *lane[FA_WARP];
  int n_words;
  bool fenced; /* since it is known */
  uint64_t sum[FA_WARP];
  uint32_t out; /* the number of the wait that they came out at as accumulators; 0: none */
} fa_registers;

typedef struct fa_warp_mmas {
  fa_simt_mma laid_down[FA_WARP];
  fa_product v[FA_MAX_PRODUCTS]; /* in issue order */
  int n;
  fa_sum sum[FA_MAX_SUMS];
  fa_registers known[FA_MAX_REGISTERS]; /* the first n_known and, when all are, round and round */
  int n_known, n_seen;
  uint32_t n_waits, n_fenced; /* waits so far; n_waits + 1 at the last fence, 0: there was none */
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
  uint32_t fence_tick[FA_MAX_BLOCK_THREADS];
  fa_thread_wait wait[FA_MAX_BLOCK_THREADS];
  uint16_t *n_reading; /* of each granule: copies and products that read it now */
  uint32_t *read_tick; /* [warp][granule]: of the last asynchronous read */
  uint8_t *read_lane;  /* [warp][granule]: who waited for it; FA_WARP: all lanes */
  uint32_t *word_tick; /* [warp][word]: of the last ordinary one */
  size_t n_granules;
  fa_warp_mmas *products; /* [n_warps] */
} fa_simt_async;

/* The running block's; made at the first call. */
fa_simt_async *fa_simt_async_get(fa_simt_block *b);
void fa_simt_async_reset(fa_simt_block *b);
void fa_simt_async_free(fa_simt_block *b);

/* True if what the agent did at that tick comes before what the warp does now, by clocks alone. */
static inline bool fa_simt_async_ordered(const fa_simt_block *b, int agent, uint32_t tick, int warp) {
  return tick < b->async->seen[warp].tick[agent];
}
/* Bulk loads may land; true if one did. Always one if `must`. */
bool fa_simt_async_progress(fa_simt_block *b, bool must);
/* A thread ends, or the block does: what would still touch shared memory is a violation. */
void fa_simt_async_thread_end(fa_simt_block *b, bool last);

/* registers.c: a fence; registers of n_words that a product is about to read, write or both; accumulators
 * that have come out at a wait. */
void fa_simt_registers_fence(fa_warp_mmas *w);
void fa_simt_registers_in(fa_warp_mmas *w, const uint32_t *const lane[FA_WARP], int n_words, bool is_read,
                          bool is_written, fa_simt_place at);
void fa_simt_registers_out(fa_warp_mmas *w, const uint32_t *const lane[FA_WARP], int n_words);

/* Shared memory ends with its block: of a cluster, others must not touch it any more. */
void fa_simt_check_alive(const fa_simt_block *b, uint32_t offset, const char *what, fa_simt_place at);

/* bulk.c */
void fa_simt_bulk_arrive(fa_simt_block *b, int i);

/* async.c: bytes have come, for bulk.c. */
void fa_simt_mbarrier_bytes(fa_simt_block *b, int bar, int64_t bytes);
int fa_simt_mbarrier_find(fa_simt_block *b, uint32_t offset, fa_simt_place at);

/* memory.c: accesses of copies and products to the granules [offset, offset + bytes) of shared memory.
 * begin_read checks, and holds them until end_read, for which this lane has waited, or FA_WARP: all of the
 * warp's; write checks, and says that agent (a bulk load's) will write them; landed, that it has. */
void fa_simt_shared_begin_read(fa_simt_block *b, uint32_t offset, uint32_t bytes, const char *what,
                               fa_simt_place at);
void fa_simt_shared_end_read(fa_simt_block *b, uint32_t offset, uint32_t bytes, int lane);
/* The same of what no warp waits for: the order of later writes follows from who heard of it. */
void fa_simt_shared_drop_read(fa_simt_block *b, uint32_t offset, uint32_t bytes);
void fa_simt_shared_begin_write(fa_simt_block *b, uint32_t offset, uint32_t bytes, fa_simt_place at);
/* Reports a write of this word that does not come before what the running thread does now. */
void fa_simt_shared_check_written(fa_simt_block *b, uint32_t offset, fa_simt_place at);
void fa_simt_shared_arrived(fa_simt_block *b, uint32_t offset, uint32_t bytes, int bar, uint32_t tick);

#endif
