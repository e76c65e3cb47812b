/* mbarriers and named barriers, which carry clocks from arriving to waiting threads; and the progress of bulk
 * loads. */
#include "gpu/simt/async.h"

#include <stdlib.h>
#include <string.h>

fa_simt_async *fa_simt_async_get(fa_simt_block *b) {
  if (b->async) return b->async;
  fa_simt_async *a = calloc(1, sizeof *a);
  FA_ASSERT(a);
  a->n_granules = b->memory_bytes / FA_GRANULE + 1;
  a->n_reading = calloc(a->n_granules, sizeof *a->n_reading);
  a->read_tick = calloc(a->n_granules * (size_t)b->n_warps, sizeof *a->read_tick);
  a->read_lane = calloc(a->n_granules * (size_t)b->n_warps, sizeof *a->read_lane);
  a->word_tick = calloc(a->n_granules * (FA_GRANULE / 4) * (size_t)b->n_warps, sizeof *a->word_tick);
  a->mmas = calloc((size_t)b->n_warps, sizeof *a->mmas);
  FA_ASSERT(a->n_reading && a->read_tick && a->read_lane && a->word_tick && a->mmas);
  b->async = a;
  return a;
}

void fa_simt_async_reset(fa_simt_block *b) {
  fa_simt_async *a = b->async;
  if (!a) return;
  memset(a->seen, 0, (size_t)b->n_warps * sizeof *a->seen);
  memset(a->named, 0, (size_t)b->n_ranks * FA_NAMED_BARRIERS * sizeof *a->named);
  memset(a->fence_tick, 0, sizeof a->fence_tick);
  memset(a->wait, 0, sizeof a->wait);
  memset(a->n_reading, 0, a->n_granules * sizeof *a->n_reading);
  a->n_bars = a->n_loads = a->n_stores = 0;
  while (a->n_sums > 0) free(a->sum[--a->n_sums].x);
  for (int w = 0; w < b->n_warps; ++w) {
    a->mmas[w].n = a->mmas[w].n_known = a->mmas[w].n_seen = 0;
    a->mmas[w].n_waits = a->mmas[w].n_fenced = 0;
    for (int i = 0; i < FA_MAX_SUMS; ++i) a->mmas[w].sum[i].n_mmas = 0;
  }
}

void fa_simt_async_free(fa_simt_block *b) {
  fa_simt_async *a = b->async;
  if (!a) return;
  free(a->load);
  free(a->store);
  while (a->n_sums > 0) free(a->sum[--a->n_sums].x);
  free(a->sum);
  free(a->n_reading);
  free(a->read_tick);
  free(a->read_lane);
  free(a->word_tick);
  free(a->mmas);
  free(a);
  b->async = NULL;
}

static void merge(fa_clock *into, const fa_clock *from) {
  for (int i = 0; i < FA_AGENTS; ++i)
    if (from->tick[i] > into->tick[i]) into->tick[i] = from->tick[i];
}

/* The running thread arrives: merges what its warp has seen and done into the barrier's clock. */
static void arrive(fa_simt_block *b, uint32_t *lanes, fa_clock *clock) {
  const fa_simt_thread *t = b->running;
  merge(clock, &b->async->seen[t->warp]);
  const uint32_t now = ++b->tick, synced = b->warps[t->warp].sync_tick;
  lanes[t->warp] |= 1u << t->lane;
  uint32_t *own = &clock->tick[t->warp];
  if (synced > *own) *own = synced;
  if (lanes[t->warp] == 0xffffffffu) *own = now;
  if (t->lane == 0) clock->tick[FA_LEADERS + t->warp] = now;
}

/* The running thread waits, as a bit of *waiting, until another one makes it ready. */
static void block_in(fa_simt_block *b, uint32_t *waiting, const char *what, fa_simt_place at) {
  const fa_simt_thread *t = b->running;
  fa_thread_wait *w = &b->async->wait[t->index];
  waiting[t->warp] |= 1u << t->lane;
  *w = (fa_thread_wait){what, at};
  fa_simt_yield(b);
  w->what = NULL;
}

static void wake(fa_simt_block *b, uint32_t *waiting) {
  for (int w = 0; w < b->n_warps; ++w) {
    b->warps[w].ready |= waiting[w];
    waiting[w] = 0;
  }
}

/* ---- barriers in shared memory ---- */

int fa_simt_mbarrier_find(fa_simt_block *b, uint32_t offset, fa_simt_place at) {
  const fa_simt_async *a = fa_simt_async_get(b);
  for (int i = 0; i < a->n_bars; ++i)
    if (a->bar[i].offset == offset) {
      fa_simt_shared_check_written(b, offset, at); /* its initialisation must be ordered before this */
      return i;
    }
  fa_simt_violation(FA_SUBJECT_CRASH, at, "no mbarrier was initialised at shared offset %u", offset);
}

void fa_simt_mbarrier_init(uint32_t offset, uint32_t count, fa_simt_place at) {
  fa_simt_block *b = fa_simt_current;
  fa_simt_async *a = fa_simt_async_get(b);
  fa_simt_shared(offset, 8, true, at);
  if (count == 0 || count > FA_MAX_BLOCK_THREADS)
    fa_simt_violation(FA_SUBJECT_CRASH, at, "mbarrier for %u arrivals; 1..%d are possible here", count,
                      FA_MAX_BLOCK_THREADS);
  for (int i = 0; i < a->n_bars; ++i)
    if (a->bar[i].offset == offset)
      fa_simt_violation(FA_SUBJECT_CRASH, at, "the mbarrier at shared offset %u is initialised twice",
                        offset);
  FA_ASSERT(a->n_bars < FA_MAX_MBARRIERS);
  fa_mbarrier *m = &a->bar[a->n_bars++];
  memset(m, 0, sizeof *m);
  m->offset = offset;
  m->count = m->pending = (int)count;
}

/* Only the parity of a phase can be waited for, so that whoever has not seen one before the next completes takes that for none. */
static void settle(fa_simt_block *b, fa_mbarrier *m, fa_simt_place at) {
  if (m->pending > 0 || m->bytes != 0) return;
  if (m->phase > 0 && !m->waited)
    fa_simt_violation(
        FA_SUBJECT_RACE, at,
        "a phase of the mbarrier at shared offset %u completes and nobody has waited for the one before",
        m->offset);
  ++m->phase;
  m->waited = false;
  m->pending = m->count;
  merge(&m->complete, &m->clock);
  memset(m->lanes, 0, sizeof m->lanes);
  wake(b, m->waiting);
}

void fa_simt_mbarrier_bytes(fa_simt_block *b, int bar, int64_t bytes, fa_simt_place at) {
  fa_mbarrier *m = &b->async->bar[bar];
  m->bytes -= bytes;
  m->clock.tick[FA_MAX_WARPS + bar] = ++b->tick;
  settle(b, m, at);
}

void fa_simt_check_alive(const fa_simt_block *b, uint32_t offset, const char *what, fa_simt_place at) {
  if (b->n_ranks > 1 && b->n_live_of[offset / FA_RANK_BYTES] == 0)
    fa_simt_violation(FA_SUBJECT_RACE, at, "%s at shared offset %u, of a block of the cluster that has ended",
                      what, offset);
}

void fa_simt_mbarrier_arrive(uint32_t offset, uint32_t bytes, fa_simt_place at) {
  fa_simt_block *b = fa_simt_current;
  fa_simt_check_alive(b, offset, "an arrival", at);
  fa_mbarrier *m = &fa_simt_async_get(b)->bar[fa_simt_mbarrier_find(b, offset, at)];
  if (m->pending == 0)
    fa_simt_violation(FA_SUBJECT_RACE, at,
                      "more than %d arrivals at the mbarrier at shared offset %u in one phase", m->count,
                      offset);
  m->bytes += bytes;
  arrive(b, m->lanes, &m->clock);
  --m->pending;
  settle(b, m, at);
}

void fa_simt_mbarrier_wait(uint32_t offset, int parity, fa_simt_place at) {
  fa_simt_block *b = fa_simt_current;
  fa_mbarrier *m = &fa_simt_async_get(b)->bar[fa_simt_mbarrier_find(b, offset, at)];
  ++b->work.barriers;
  if (parity != 0 && parity != 1)
    fa_simt_violation(FA_SUBJECT_CRASH, at,
                      "a wait for the parity %d of the mbarrier at shared offset %u: there are 0 and 1",
                      parity, offset);
  while ((int)(m->phase & 1) == parity) block_in(b, m->waiting, "a wait for an mbarrier", at);
  m->unseen.file = NULL;
  m->waited = true;
  merge(&b->async->seen[b->running->warp], &m->complete);
}

/* ---- named barriers ---- */

void fa_simt_named_barrier(int id, int n_threads, bool wait, fa_simt_place at) {
  fa_simt_block *b = fa_simt_current;
  fa_simt_async *a = fa_simt_async_get(b);
  if (id < 1 || id >= FA_NAMED_BARRIERS || n_threads <= 0 || n_threads % FA_WARP != 0)
    fa_simt_violation(FA_SUBJECT_CRASH, at,
                      "named barrier %d of %d threads; 1..%d, of whole warps, are possible", id, n_threads,
                      FA_NAMED_BARRIERS - 1);
  ++b->work.barriers;
  fa_named_barrier *m = &a->named[FA_NAMED_BARRIERS * fa_simt_self->rank + (unsigned)id];
  if (m->n_arrived == 0) {
    m->n_threads = n_threads;
    m->at = at;
  } else if (m->n_threads != n_threads) {
    fa_simt_violation(FA_SUBJECT_DEADLOCK, at, "named barrier %d of %d threads, but of %d at %s:%d", id,
                      n_threads, m->n_threads, m->at.file, m->at.line);
  }
  arrive(b, m->lanes, &m->clock);
  const bool full = ++m->n_arrived == m->n_threads;
  if (!full) {
    if (wait) block_in(b, m->waiting, "a named barrier", at);
    return;
  }
  const uint32_t *waiting = m->waiting;
  const int mine = b->running->warp;
  for (int w = 0; w < b->n_warps; ++w)
    if (waiting[w] || (wait && w == mine)) merge(&a->seen[w], &m->clock);
  wake(b, m->waiting);
  m->n_arrived = 0;
  memset(m->lanes, 0, sizeof m->lanes);
}

/* ---- progress ---- */

bool fa_simt_async_progress(fa_simt_block *b, bool must) {
  fa_simt_async *a = b->async;
  if (!a || a->n_loads == 0) return false;
  if (must) {
    fa_simt_bulk_arrive(b, b->rng ? (int)(fa_simt_random(b) >> 33) % a->n_loads : 0);
    return true;
  }
  if (!b->rng || (fa_simt_random(b) >> 40 & 15) != 0) return false;
  fa_simt_bulk_arrive(b, (int)(fa_simt_random(b) >> 33) % a->n_loads);
  return true;
}

void fa_simt_async_thread_end(fa_simt_block *b, bool last) {
  fa_simt_async *a = b->async;
  if (!a) return;
  const int me = b->running->index;
  for (int i = 0; i < a->n_stores; ++i)
    if (a->store[i].thread == me)
      fa_simt_violation(FA_SUBJECT_RACE, (fa_simt_place){"(end of the thread)", 0},
                        "the thread ends while its bulk store may still read shared memory");
  fa_simt_bulk_make_sums(b, false);
  if (a->mmas[b->running->warp].n)
    fa_simt_violation(FA_SUBJECT_RACE, a->mmas[b->running->warp].v[0].at,
                      "the thread ends while this product is in flight: its wait is missing");
  const char *const text = "the block ends, and nobody has waited for this bulk load";
  if (last && a->n_loads) fa_simt_violation(FA_SUBJECT_RACE, a->load[0].at, text);
  for (int i = 0; last && i < a->n_bars; ++i)
    if (a->bar[i].unseen.file) fa_simt_violation(FA_SUBJECT_RACE, a->bar[i].unseen, text);
}
