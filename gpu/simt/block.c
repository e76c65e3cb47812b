/* Runs the threads of one block: scheduling, __syncthreads, and the reports that end a block. */
#include "gpu/simt/block.h"

#include "gpu/simt/async.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__thread const fa_simt_ids *fa_simt_self;
__thread fa_simt_block *fa_simt_current;

/* A byte of the tape is used like a random word; 0 decides as the plain order does. */
static uint64_t next_of_tape(fa_simt_block *b, const fa_simt_launch *l) {
  const uint8_t v = l->tape[b->tape_at];
  b->tape_at = b->tape_at + 1 == l->tape_bytes ? 0 : b->tape_at + 1;
  return v ? (v + 1u) * 0x9e3779b97f4a7c15ull : 1u << 16;
}

uint64_t fa_simt_random(fa_simt_block *b) { /* xorshift64* */
  if (b->launch->tape_bytes) return next_of_tape(b, b->launch);
  b->rng ^= b->rng >> 12;
  b->rng ^= b->rng << 25;
  b->rng ^= b->rng >> 27;
  return b->rng * 0x2545f4914f6cdd1dull;
}

static int lowest(uint32_t mask) {
  return __builtin_ctz(mask);
}

/* Plain order: the lowest ready lane, in the same warp as long as one is ready. With a seed: sometimes
 * another warp, and any ready lane of it. */
__attribute__((noinline)) static fa_simt_thread *pick(fa_simt_block *b) {
  int w = b->current_warp;
  uint64_t r = 0;
  if (b->rng) {
    r = fa_simt_random(b) >> 16;
    if ((r & b->stay) == 0) w = (int)((r >> 11) % (uint64_t)b->n_warps);
  }
  for (int tried = 0; tried < b->n_warps; ++tried, w = w + 1 == b->n_warps ? 0 : w + 1) {
    uint32_t ready = b->warps[w].ready;
    if (!ready) continue;
    if (b->rng) {
      const int turn = (int)(r >> 6) & 31;
      const uint32_t above = ready & (0xffffffffu << turn);
      if (above) ready = above;
    }
    const int lane = lowest(ready);
    b->warps[w].ready &= ~(1u << lane);
    b->current_warp = w;
    return &b->threads[w * FA_WARP + lane];
  }
  return NULL;
}

static void resume(fa_simt_block *b, fa_simt_thread *t) {
  b->running = t;
  fa_simt_self = &t->ids;
}

typedef struct waiting {
  const char *what; /* NULL: not waiting */
  fa_simt_place at;
} waiting;

static waiting waiting_of(const fa_simt_block *b, int thread) {
  const fa_simt_warp *w = &b->warps[thread / FA_WARP];
  const uint32_t lane = 1u << thread % FA_WARP;
  if (w->at_barrier & lane) return (waiting){"__syncthreads", b->barrier_at};
  if (w->waiting & lane) return (waiting){fa_simt_collective_name(w->kind), w->at};
  if (b->async && b->async->wait[thread].what)
    return (waiting){b->async->wait[thread].what, b->async->wait[thread].at};
  return (waiting){NULL, {NULL, 0}};
}

static void list_waiting(const fa_simt_block *b, char *out, size_t size) {
  size_t used = 0;
  out[0] = 0;
  for (int i = 0, shown = 0; i < b->n_threads && shown < 4; ++i) {
    const waiting mine = waiting_of(b, i);
    if (!mine.what) continue;
    int same = 0, first = 1;
    for (int j = 0; j < b->n_threads; ++j) {
      const waiting other = waiting_of(b, j);
      if (other.what != mine.what || other.at.line != mine.at.line || other.at.file != mine.at.file) continue;
      if (j < i) first = 0;
      ++same;
    }
    if (!first) continue;
    const int n = snprintf(out + used, size - used, "%s%d thread(s), first %d, in %s at %s:%d",
                           shown ? "; " : "", same, i, mine.what, mine.at.file, mine.at.line);
    used += n > 0 && (size_t)n < size - used ? (size_t)n : 0;
    ++shown;
  }
}

static void report(fa_simt_block *b, fa_subject_state state, fa_simt_place at, const char *text) {
  fa_simt_report *r = &b->report;
  r->state = state;
  r->file = at.file;
  r->line = at.line;
  const fa_simt_ids *id = fa_simt_self;
  snprintf(r->text, sizeof r->text, "%s:%d: %s [%s, block (%u,%u,%u), thread %d]", at.file, at.line, text,
           b->launch->name, id->block.x, id->block.y, id->block.z, b->running->index);
}

/* Leaves the running fiber for good. */
static _Noreturn void stop(fa_simt_block *b, fa_fiber *from) {
  fa_fiber_switch(from, &b->main);
  __builtin_unreachable();
}

/* If a thread has read a word that no thread wrote, reports that, at the thread that read. */
static bool report_unwritten(fa_simt_block *b) {
  if (!b->unwritten.by) return false;
  char text[64];
  snprintf(text, sizeof text, "read of shared offset %u that nobody has written", b->unwritten.offset);
  resume(b, b->unwritten.by);
  report(b, FA_SUBJECT_RACE, b->unwritten.at, text);
  return true;
}

static _Noreturn void deadlock(fa_simt_block *b, fa_simt_thread *me) {
  char text[400], list[360];
  waiting w = waiting_of(b, me->index);
  for (int i = 0; i < b->n_threads && !w.what; ++i)
    w = waiting_of(b, i); /* this one has ended: take another
                                                                             one's */
  list_waiting(b, list, sizeof list);
  snprintf(text, sizeof text, "deadlock: nobody can go on: %s", list);
  if (!report_unwritten(b)) report(b, FA_SUBJECT_DEADLOCK, w.at, text);
  stop(b, &me->fiber);
}

void fa_simt_yield(fa_simt_block *b) {
  fa_simt_thread *me = b->running;
  if (b->async) fa_simt_async_progress(b, false);
  fa_simt_thread *next = pick(b);
  while (__builtin_expect(!next, 0)) {
    if (!fa_simt_async_progress(b, true)) deadlock(b, me);
    next = pick(b);
  }
  if (next == me) return;
  resume(b, next);
  fa_fiber_switch(&me->fiber, &next->fiber);
}

void fa_simt_violation(fa_subject_state state, fa_simt_place at, const char *format, ...) {
  fa_simt_block *b = fa_simt_current;
  char text[320];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  fa_fiber *from = &b->running->fiber;
  if (state == FA_SUBJECT_RACE || !report_unwritten(b)) report(b, state, at, text);
  stop(b, from);
}

/* Threads that have exited are not waited for, as on sm_70 and later. */
static void release_barrier(fa_simt_block *b) {
  fa_fiber *from = &b->running->fiber;
  if (report_unwritten(b)) stop(b, from);
  b->n_at_barrier = 0;
  b->barrier_tick = ++b->tick;
  if (b->any_waited) fa_simt_share_wait(b);
  for (int w = 0; w < b->n_warps; ++w) {
    b->warps[w].ready |= b->warps[w].at_barrier;
    b->warps[w].at_barrier = 0;
  }
}

void fa_simt_sync_block(fa_simt_place at) {
  if (fa_simt_current->n_ranks > 1)
    fa_simt_violation(FA_SUBJECT_CRASH, at, "__syncthreads in a cluster is beyond the executor");
  fa_simt_sync_cluster(at);
}

void fa_simt_sync_cluster(fa_simt_place at) {
  fa_simt_block *b = fa_simt_current;
  fa_simt_thread *me = b->running;
  ++b->work.barriers;
  if (b->n_at_barrier == 0)
    b->barrier_at = at;
  else if (!fa_simt_same_place(b->barrier_at, at))
    fa_simt_violation(FA_SUBJECT_DEADLOCK, at,
                      "barrier divergence: other threads wait in the __syncthreads at %s:%d",
                      b->barrier_at.file, b->barrier_at.line);
  b->warps[me->warp].at_barrier |= 1u << me->lane;
  if (++b->n_at_barrier == b->n_live) release_barrier(b);
  fa_simt_yield(b);
}

/* The function that a fiber runs. */
static void thread_main(void) {
  fa_fiber_entered();
  fa_simt_block *b = fa_simt_current;
  b->launch->kernel(b->launch->params);
  fa_simt_thread *me = b->running;
  --b->n_live;
  --b->n_live_of[me->ids.rank];
  fa_simt_async_thread_end(b, b->n_live == 0);
  if (b->n_at_barrier > 0 && b->n_at_barrier == b->n_live) release_barrier(b);
  if (b->n_live == 0) {
    report_unwritten(b);
    stop(b, &me->fiber);
  }
  fa_simt_yield(b);
  __builtin_unreachable();
}

fa_simt_dim fa_simt_block_at(const fa_simt_block *b, int64_t index, int thread) {
  const fa_simt_dim g = b->launch->grid;
  const int64_t across = g.x / (unsigned)b->n_ranks; /* clusters */
  const unsigned rank = (unsigned)(thread / (b->n_threads / b->n_ranks));
  return (fa_simt_dim){(unsigned)(index % across) * (unsigned)b->n_ranks + rank,
                       (unsigned)(index / across % g.y), (unsigned)(index / (across * g.y))};
}

static void set_ids(fa_simt_block *b, fa_simt_thread *t, int64_t block_index) {
  const fa_simt_dim d = b->launch->block;
  const unsigned per_block = d.x * d.y * d.z, i = (unsigned)t->index % per_block;
  t->ids.rank = (unsigned)t->index / per_block;
  t->ids.shared_base = t->ids.rank * FA_RANK_BYTES;
  t->ids.grid_dim = b->launch->grid;
  t->ids.block_dim = d;
  t->ids.thread = (fa_simt_dim){i % d.x, i / d.x % d.y, i / (d.x * d.y)};
  t->ids.block = fa_simt_block_at(b, block_index, t->index);
}

/* The random state of one block: different for every seed and every block (splitmix64). Not 0, which means
 * the plain schedule. */
static uint64_t block_seed(uint64_t seed, int64_t index) {
  uint64_t x = seed + ((uint64_t)index + 1) * 0x9e3779b97f4a7c15ull;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  x ^= x >> 31;
  return x ? x : 1;
}

void fa_simt_block_run(fa_simt_block *b, int64_t index) {
  const uint64_t seed = b->launch->schedule_seed;
  b->index = index;
  b->rng = seed ? block_seed(seed, index) : b->launch->tape_bytes > 0;
  b->stay = b->launch->tape_bytes ? 7 : 63; /* the stacks of another warp are in the L2 cache at best */
  b->tape_at = b->launch->tape_bytes ? (size_t)index % b->launch->tape_bytes : 0;
  b->n_live = b->n_threads;
  for (int r = 0; r < b->n_ranks; ++r) b->n_live_of[r] = b->n_threads / b->n_ranks;
  b->n_at_barrier = 0;
  b->any_waited = false;
  b->current_warp = 0;
  b->report = (fa_simt_report){.state = FA_SUBJECT_OK};
  b->first_tick = b->barrier_tick = ++b->tick;
  b->unwritten.by = NULL;
  b->waits = NULL;
  fa_simt_shared_reset(b);
  fa_simt_async_reset(b);
  for (int w = 0; w < b->n_warps; ++w) {
    b->warps[w].ready = 0xffffffffu;
    b->warps[w].waiting = b->warps[w].at_barrier = 0;
  }
  for (int i = 0; i < b->n_threads; ++i) {
    fa_simt_thread *t = &b->threads[i];
    set_ids(b, t, index);
    t->waited = false;
    t->copies.n = t->copies.n_grouped = t->copies.n_groups = 0;
    fa_fiber_prepare(&t->fiber, &b->stacks, i, thread_main);
  }
  fa_simt_current = b;
  fa_simt_thread *first = pick(b);
  resume(b, first);
  fa_fiber_switch(&b->main, &first->fiber);
  fa_simt_current = NULL;
  fa_simt_self = NULL;
}

/* Zeroed memory, aligned to a cache line. */
static void *lines(int64_t n, size_t each) {
  void *p = NULL;
  if (posix_memalign(&p, 64, (size_t)n * each) != 0) return NULL;
  return memset(p, 0, (size_t)n * each);
}

fa_status fa_simt_block_init(fa_simt_block *b, const fa_simt_launch *launch, fa_error *err) {
  memset(b, 0, sizeof *b);
  b->launch = launch;
  b->n_ranks = launch->cluster ? (int)launch->cluster : 1;
  b->n_threads = (int)(launch->block.x * launch->block.y * launch->block.z) * b->n_ranks;
  b->memory_bytes = (size_t)(b->n_ranks - 1) * FA_RANK_BYTES + launch->shared_bytes;
  b->address_mask = b->n_ranks > 1 ? FA_RANK_BYTES - 1 : ~0u;
  b->n_warps = b->n_threads / FA_WARP;
  const size_t n_words = b->memory_bytes / 4 + 1;
  b->threads = lines(b->n_threads, sizeof *b->threads);
  b->warps = lines(b->n_warps, sizeof *b->warps);
  b->place = calloc(FA_MAX_PLACES, sizeof *b->place);
  b->shadow = lines((int64_t)n_words, sizeof *b->shadow);
  if (!b->threads || !b->warps || !b->shadow || !b->place ||
      posix_memalign((void **)&b->shared, 128, n_words * 4)) {
    b->shared = NULL;
    fa_simt_block_free(b);
    return fa_fail(err, FA_ERR_MEMORY, "executor for %d threads, %zu bytes shared", b->n_threads,
                   launch->shared_bytes);
  }
  for (int i = 0; i < b->n_threads; ++i) {
    b->threads[i].index = i;
    b->threads[i].warp = i / FA_WARP;
    b->threads[i].lane = i % FA_WARP;
  }
  const fa_status status = fa_fiber_stacks_map(&b->stacks, b->n_threads, err);
  if (status != FA_OK) fa_simt_block_free(b);
  return status;
}

void fa_simt_block_free(fa_simt_block *b) {
  for (int i = 0; b->threads && i < b->n_threads; ++i) {
    fa_fiber_free(&b->threads[i].fiber);
    free(b->threads[i].copies.v);
    free(b->threads[i].copies.group_end);
  }
  fa_simt_async_free(b);
  fa_fiber_free(&b->main);
  fa_fiber_stacks_unmap(&b->stacks);
  free(b->threads);
  free(b->warps);
  free(b->shadow);
  free(b->place);
  free(b->shared);
  memset(b, 0, sizeof *b);
}
