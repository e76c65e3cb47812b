/* Shared memory as the kernel sees it: bounds, races, unwritten words, and cp.async copies that complete
 * late. */
#include "gpu/simt/async.h"
#include "gpu/simt/block.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(fa_shadow) == 16, "four of them fill a cache line");

enum {
  NOBODY = -1,
  WHOLE_WARP = -100,
  MANY_WARPS = -2,
  BULK = FA_MAX_THREADS /* writers: BULK + i = bulk loads that complete on mbarrier i */
};            /* readers: WHOLE_WARP - w = several lanes of warp w */

static void fill16(char *p, size_t bytes, unsigned half) {
  const uint64_t pattern = half * 0x0001000100010001ull;
  for (size_t i = 0; i < bytes; i += 8) memcpy(p + i, &pattern, bytes - i < 8 ? bytes - i : 8);
}

void fa_simt_shared_reset(fa_simt_block *b) {
  fill16(b->shared, b->memory_bytes, FA_POISON_UNINITIALISED);
  for (size_t i = 0; i < b->memory_bytes / 4 + 1; ++i) b->shadow[i].in_flight = false;
}

static inline void shared_check(const fa_simt_block *b, uint32_t offset, size_t bytes, const char *what,
                                fa_simt_place at) {
  const size_t size = b->launch->shared_bytes, within = offset & b->address_mask;
  if (__builtin_expect(offset % bytes != 0, 0))
    fa_simt_violation(FA_SUBJECT_CRASH, at, "misaligned %s of %zu bytes at shared offset %u", what, bytes,
                      offset);
  if (__builtin_expect(within > size || size - within < bytes || offset > b->memory_bytes, 0))
    fa_simt_violation(FA_SUBJECT_OOB, at, "%s of %zu bytes at shared offset %u; the block has %zu bytes",
                      what, bytes, offset, size);
}

/* The index of a source line in b->place; the same for the same line. */
static inline uint16_t place_number(fa_simt_block *b, fa_simt_place at) {
  unsigned n = (unsigned)at.line + (unsigned)((uintptr_t)at.file >> 3);
  for (unsigned tried = 0; tried < FA_MAX_PLACES; ++tried, ++n) {
    fa_simt_place *p = &b->place[n % FA_MAX_PLACES];
    if (p->file == at.file && p->line == at.line) return (uint16_t)(n % FA_MAX_PLACES);
    if (p->file) continue;
    *p = at;
    return (uint16_t)(n % FA_MAX_PLACES);
  }
  FA_ASSERT(!"a kernel has no more lines than this that touch shared memory");
  return 0;
}

/* True if what `thread` did at that tick comes before what t does now. */
static bool ordered(const fa_simt_block *b, int thread, uint32_t tick, const fa_simt_thread *t) {
  if (tick < b->barrier_tick || thread == NOBODY || thread == t->index) return true;
  if (thread == MANY_WARPS) return b->async != NULL; /* check_async_reads looks at each */
  if (thread >= BULK) return fa_simt_async_ordered(b, FA_MAX_WARPS + thread - BULK, tick, t->warp);
  const int warp = thread <= WHOLE_WARP ? WHOLE_WARP - thread : thread / FA_WARP;
  if (b->async && fa_simt_async_ordered(b, warp, tick, t->warp)) return true;
  if (b->async && thread >= 0 && thread % FA_WARP == 0 &&
      fa_simt_async_ordered(b, FA_LEADERS + warp, tick, t->warp))
    return true;
  return warp == t->warp && tick < b->warps[warp].sync_tick;
}

bool fa_simt_ordered(const fa_simt_block *b, int thread, uint32_t tick) {
  return ordered(b, thread, tick, b->running);
}

static void race(const char *what, const char *other, uint16_t place, uint32_t offset, fa_simt_place at) {
  const fa_simt_place *p = &fa_simt_current->place[place];
  fa_simt_violation(FA_SUBJECT_RACE, at,
                    "%s of shared offset %u is not ordered with the %s at %s:%d by any barrier", what, offset,
                    other, p->file, p->line);
}

/* What another lane of the warp has waited for is known to this one after a sync_warp. */
static void check_own_async_read(const fa_simt_block *b, const fa_simt_thread *t, uint32_t word,
                                 fa_simt_place at) {
  const fa_simt_async *a = b->async;
  const size_t i = (size_t)t->warp * a->n_granules + word / (FA_GRANULE / 4);
  const uint32_t tick = a->read_tick[i];
  if (a->read_lane[i] == FA_WARP || a->read_lane[i] == t->lane) return;
  if (tick < b->barrier_tick || tick < b->warps[t->warp].sync_tick) return;
  fa_simt_violation(
      FA_SUBJECT_RACE, at,
      "write of shared offset %u, of which lane %d alone knows that a bulk store has read it: a "
      "sync_warp is missing",
      word * 4, a->read_lane[i]);
}

/* For blocks with asynchronous accesses: checks those in flight, and the last read of either kind by each
 * other warp. */
static void check_async_reads(fa_simt_block *b, const fa_simt_thread *t, uint32_t word, fa_simt_place at) {
  const fa_simt_async *a = b->async;
  const fa_shadow *s = &b->shadow[word];
  const size_t granule = word / (FA_GRANULE / 4), n_words = a->n_granules * (FA_GRANULE / 4);
  if (a->n_reading[granule])
    fa_simt_violation(
        FA_SUBJECT_RACE, at,
        "write of shared offset %u, which a product or bulk store may still read: its wait or a "
        "barrier after it is missing",
        word * 4);
  for (int w = 0; w < b->n_warps; ++w) {
    if (w == t->warp) {
      check_own_async_read(b, t, word, at);
      continue;
    }
    const uint32_t ordinary = a->word_tick[(size_t)w * n_words + word],
                   other = a->read_tick[(size_t)w * a->n_granules + granule];
    if (ordinary >= b->barrier_tick && !fa_simt_async_ordered(b, w, ordinary, t->warp) &&
        s->reader == MANY_WARPS)
      race("write", "read", s->read_place, word * 4, at);
    if (other >= b->barrier_tick && !fa_simt_async_ordered(b, w, other, t->warp))
      fa_simt_violation(FA_SUBJECT_RACE, at,
                        "write of shared offset %u is not ordered with warp %d's asynchronous read by any "
                        "barrier",
                        word * 4, w);
  }
}

static void in_flight(const char *what, const fa_shadow *s, uint32_t offset, fa_simt_place at) {
  const fa_simt_place *p = &fa_simt_current->place[s->write_place];
  fa_simt_violation(
      FA_SUBJECT_RACE, at,
      "%s of shared offset %u, into which the cp.async at %s:%d is still copying: its wait is missing", what,
      offset, p->file, p->line);
}

/* The reader to record when several threads have read a word since the last barrier, as precisely as
 * matters. */
static int16_t joint_reader(const fa_shadow *s, const fa_simt_thread *t) {
  if (s->reader == MANY_WARPS) return MANY_WARPS;
  if (s->reader == NOBODY || s->reader == t->index) return (int16_t)t->index;
  const int warp = s->reader <= WHOLE_WARP ? WHOLE_WARP - s->reader : s->reader / FA_WARP;
  return (int16_t)(warp == t->warp ? WHOLE_WARP - t->warp : MANY_WARPS);
}

__attribute__((noinline)) static void check_read(fa_simt_block *b, const fa_shadow *s, fa_simt_thread *t,
                                                 uint32_t offset, fa_simt_place at) {
  if (s->in_flight) in_flight("read", s, offset, at);
  if (s->write_tick < b->first_tick && !b->unwritten.by) /* a word written by an earlier block counts as
                                                            unwritten */
    b->unwritten = (fa_unwritten){.by = t, .offset = offset, .at = at};
  if (!ordered(b, s->writer, s->write_tick, t)) race("read", "write", s->write_place, offset, at);
}

static inline void note_read_word(fa_simt_block *b, fa_simt_thread *t, uint32_t word, uint16_t place,
                                  fa_simt_place at) {
  fa_shadow *s = &b->shadow[word];
  /* The usual case: written since the block started, and before the last barrier. */
  if (s->in_flight || s->write_tick - b->first_tick >= b->barrier_tick - b->first_tick)
    check_read(b, s, t, word * 4, at);
  s->reader = s->read_tick < b->barrier_tick ? (int16_t)t->index : joint_reader(s, t);
  s->read_tick = b->tick;
  s->read_place = place & 0x7fff;
  if (b->async)
    b->async->word_tick[(size_t)t->warp * b->async->n_granules * (FA_GRANULE / 4) + word] = b->tick;
}

static inline void note_write_word(fa_simt_block *b, fa_simt_thread *t, uint32_t word, uint16_t place,
                                   bool in_flight_now, fa_simt_place at) {
  fa_shadow *s = &b->shadow[word];
  if (s->in_flight) in_flight("write", s, word * 4, at);
  if (!ordered(b, s->writer, s->write_tick, t)) race("write", "write", s->write_place, word * 4, at);
  if (!ordered(b, s->reader, s->read_tick, t)) race("write", "read", s->read_place, word * 4, at);
  if (b->async) check_async_reads(b, t, word, at);
  s->writer = (int16_t)t->index;
  s->write_tick = b->tick;
  s->write_place = place;
  s->reader = NOBODY;
  s->in_flight = in_flight_now;
}

/* The shadow of a word as a vector (write_tick, read_tick, writer and reader, the places), so that the four
 * words of 16 bytes are processed at once. */
typedef uint32_t shadow_vector __attribute__((vector_size(16)));
typedef uint64_t two_vector __attribute__((vector_size(16)));
#define IN_FLIGHT 0x80000000u

static inline bool any(shadow_vector v) {
  const two_vector x = (two_vector)v;
  return (x[0] | x[1]) != 0;
}

/* Does what note_read_word does if there is nothing to report and all four words have the same readers;
 * returns false if note_read_word must be called. A negative difference of ticks shows in the sign; a false
 * alarm only costs time. */
static inline bool note_read_four(fa_simt_block *b, const fa_simt_thread *t, uint32_t word, uint16_t place) {
  shadow_vector v[4];
  memcpy(v, &b->shadow[word], sizeof v);
  const shadow_vector since = {b->first_tick}, until = {b->barrier_tick - 1};
  shadow_vector wrong = {0};
  for (int i = 0; i < 4; ++i) wrong |= (v[i] - since) | (until - v[i]);
  const shadow_vector differ = (v[0] ^ v[1]) | (v[0] ^ v[2]) | (v[0] ^ v[3]), all = v[0] | v[1] | v[2] | v[3];
  if (any((wrong & (shadow_vector){0x80000000u, 0, 0, 0}) |
          (differ & (shadow_vector){0, ~0u, 0xffff0000u, 0}) | (all & (shadow_vector){0, 0, 0, IN_FLIGHT})))
    return false;
  const fa_shadow *s = &b->shadow[word];
  const uint16_t reader = (uint16_t)(s->read_tick < b->barrier_tick ? (int16_t)t->index : joint_reader(s, t));
  const shadow_vector now = {0, b->tick, (uint32_t)reader << 16, (uint32_t)place << 16};
  for (int i = 0; i < 4; ++i) v[i] = (v[i] & (shadow_vector){~0u, 0, 0xffff, 0xffff}) | now;
  memcpy(&b->shadow[word], v, sizeof v);
  return true;
}

/* Does what note_write_word does if no thread has accessed the words since the last barrier of the block. */
static inline bool note_write_four(fa_simt_block *b, const fa_simt_thread *t, uint32_t word, uint16_t place,
                                   bool in_flight_now) {
  shadow_vector v[4];
  memcpy(v, &b->shadow[word], sizeof v);
  const shadow_vector until = {b->barrier_tick - 1, b->barrier_tick - 1};
  shadow_vector wrong = {0};
  for (int i = 0; i < 4; ++i) wrong |= until - v[i];
  const shadow_vector all = v[0] | v[1] | v[2] | v[3];
  if (any((wrong & (shadow_vector){0x80000000u, 0x80000000u, 0, 0}) |
          (all & (shadow_vector){0, 0, 0, IN_FLIGHT})))
    return false;
  const shadow_vector now = {b->tick, 0, (uint32_t)t->index | (uint32_t)(uint16_t)NOBODY << 16,
                             place | (in_flight_now ? IN_FLIGHT : 0)};
  for (int i = 0; i < 4; ++i) v[i] = (v[i] & (shadow_vector){0, ~0u, 0, 0x7fff0000u}) | now;
  memcpy(&b->shadow[word], v, sizeof v);
  return true;
}

static inline void note_read(fa_simt_block *b, uint32_t offset, size_t bytes, fa_simt_place at) {
  fa_simt_thread *t = b->running;
  const uint16_t place = place_number(b, at);
  if (bytes == 16 && !b->async && note_read_four(b, t, offset / 4, place)) return;
  for (uint32_t w = offset / 4; w <= (offset + bytes - 1) / 4; ++w) note_read_word(b, t, w, place, at);
}

static inline void note_write(fa_simt_block *b, uint32_t offset, size_t bytes, bool in_flight_now,
                              fa_simt_place at) {
  fa_simt_thread *t = b->running;
  const uint16_t place = place_number(b, at);
  if (bytes == 16 && !b->async && note_write_four(b, t, offset / 4, place, in_flight_now)) return;
  for (uint32_t w = offset / 4; w <= (offset + bytes - 1) / 4; ++w)
    note_write_word(b, t, w, place, in_flight_now, at);
}

void *fa_simt_shared(uint32_t offset, size_t bytes, bool write, fa_simt_place at) {
  fa_simt_block *b = fa_simt_current;
  shared_check(b, offset, bytes, write ? "shared write" : "shared read", at);
  if (__builtin_expect(b->n_ranks > 1, 0) && offset / FA_RANK_BYTES != fa_simt_self->rank)
    fa_simt_violation(FA_SUBJECT_OOB, at, "shared offset %u is of another block of the cluster", offset);
  if (write)
    note_write(b, offset, bytes, false, at);
  else
    note_read(b, offset, bytes, at);
  return b->shared + offset;
}

const void *fa_simt_cluster_read(uint32_t offset, size_t bytes, fa_simt_place at) {
  fa_simt_block *b = fa_simt_current;
  shared_check(b, offset, bytes, "read", at);
  fa_simt_check_alive(b, offset, "a read", at);
  note_read(b, offset, bytes, at);
  return b->shared + offset;
}

const void *fa_simt_shared_read16(fa_simt_block *b, uint32_t offset, const char *what, fa_simt_place at) {
  shared_check(b, offset, 16, what, at);
  note_read(b, offset, 16, at);
  return b->shared + offset;
}

/* ---- bulk copies and MMAs ---- */

/* Bulk copies and MMAs see what ordinary stores wrote only after the writer's fence. */
static void check_fenced(const fa_simt_block *b, const fa_shadow *s, uint32_t offset, const char *what,
                         fa_simt_place at) {
  if (s->write_tick < b->first_tick || s->writer < 0 || s->writer >= BULK) return;
  if (s->write_tick < b->async->fence_tick[s->writer]) return;
  const fa_simt_place *p = &b->place[s->write_place];
  fa_simt_violation(FA_SUBJECT_RACE, at,
                    "%s of shared offset %u, which was written at %s:%d with no fence_async since", what,
                    offset, p->file, p->line);
}

static bool same_write(const fa_shadow *x, const fa_shadow *y) {
  return x->write_tick == y->write_tick && x->writer == y->writer && x->in_flight == y->in_flight;
}

void fa_simt_shared_begin_read(fa_simt_block *b, uint32_t offset, uint32_t bytes, const char *what,
                               fa_simt_place at) {
  fa_simt_thread *t = b->running;
  fa_simt_async *a = b->async;
  for (uint32_t g = offset / FA_GRANULE; g <= (offset + bytes - 1) / FA_GRANULE; ++g) {
    shared_check(b, g * FA_GRANULE, FA_GRANULE, what, at);
    const fa_shadow *s = &b->shadow[g * 4];
    for (int i = 0; i < 4; ++i) {
      if (i > 0 && same_write(&s[i], s)) continue;
      check_read(b, &s[i], t, g * FA_GRANULE + 4 * (uint32_t)i, at);
      check_fenced(b, &s[i], g * FA_GRANULE + 4 * (uint32_t)i, what, at);
    }
    ++a->n_reading[g];
  }
}

void fa_simt_shared_end_read(fa_simt_block *b, uint32_t offset, uint32_t bytes, int lane) {
  fa_simt_async *a = b->async;
  uint32_t *tick = &a->read_tick[(size_t)b->running->warp * a->n_granules];
  for (uint32_t g = offset / FA_GRANULE; g <= (offset + bytes - 1) / FA_GRANULE; ++g) {
    --a->n_reading[g];
    tick[g] = b->tick;
    a->read_lane[(size_t)b->running->warp * a->n_granules + g] = (uint8_t)lane;
  }
}

void fa_simt_shared_drop_read(fa_simt_block *b, uint32_t offset, uint32_t bytes) {
  for (uint32_t g = offset / FA_GRANULE; g <= (offset + bytes - 1) / FA_GRANULE; ++g)
    --b->async->n_reading[g];
}

void fa_simt_shared_begin_write(fa_simt_block *b, uint32_t offset, uint32_t bytes, fa_simt_place at) {
  const uint16_t place = place_number(b, at);
  for (uint32_t i = 0; i < bytes; i += FA_GRANULE) shared_check(b, offset + i, FA_GRANULE, "bulk load", at);
  for (uint32_t w = offset / 4; w < (offset + bytes) / 4; ++w)
    note_write_word(b, b->running, w, place, true, at);
  fill16(b->shared + offset, bytes, FA_POISON_IN_FLIGHT);
}

void fa_simt_shared_check_written(fa_simt_block *b, uint32_t offset, fa_simt_place at) {
  const fa_shadow *s = &b->shadow[offset / 4];
  if (!ordered(b, s->writer, s->write_tick, b->running)) race("use", "write", s->write_place, offset, at);
}

void fa_simt_shared_arrived(fa_simt_block *b, uint32_t offset, uint32_t bytes, int bar, uint32_t tick) {
  for (uint32_t w = offset / 4; w < (offset + bytes) / 4; ++w) {
    fa_shadow *s = &b->shadow[w];
    s->in_flight = false;
    s->writer = (int16_t)(BULK + bar);
    s->write_tick = tick;
  }
}

/* ---- cp.async ---- */

static void land(fa_simt_block *b, fa_copy *c) {
  if (c->complete) return;
  c->complete = true;
  if (c->in_range)
    memcpy(b->shared + c->shared, c->global, c->bytes);
  else
    memset(b->shared + c->shared, 0, c->bytes);
}

static void *grow(void *v, int n, int *capacity, size_t each) {
  if (n < *capacity) return v;
  *capacity = *capacity ? *capacity * 2 : 64;
  v = realloc(v, (size_t)*capacity * each);
  FA_ASSERT(v);
  return v;
}

void fa_simt_cp_async(uint32_t shared, const void *global, uint32_t bytes, bool in_range, fa_simt_place at) {
  fa_simt_block *b = fa_simt_current;
  fa_simt_thread *t = b->running;
  shared_check(b, shared, bytes, "cp.async write", at);
  if (in_range)
    fa_simt_global(global, bytes, false, at);
  else
    fa_simt_check_aligned(global, bytes, at); /* PTX asks it of addresses that nothing is read from, too */
  note_write(b, shared, bytes, true, at);
  fill16(b->shared + shared, bytes, FA_POISON_IN_FLIGHT);
  fa_copy_queue *q = &t->copies;
  q->v = grow(q->v, q->n, &q->capacity, sizeof *q->v);
  q->v[q->n] = (fa_copy){.shared = shared, .bytes = bytes, .in_range = in_range, .global = global, .at = at};
  if (b->rng && (fa_simt_random(b) >> 40 & 1)) land(b, &q->v[q->n]);
  ++q->n;
}

void fa_simt_cp_async_commit(void) {
  fa_copy_queue *q = &fa_simt_current->running->copies;
  q->group_end = grow(q->group_end, q->n_groups, &q->group_capacity, sizeof *q->group_end);
  q->group_end[q->n_groups++] = q->n_grouped = q->n;
}

void fa_simt_cp_async_wait(int n_pending_groups) {
  fa_simt_block *b = fa_simt_current;
  fa_simt_thread *t = b->running;
  fa_copy_queue *q = &t->copies;
  const int n_done = q->n_groups - n_pending_groups;
  if (n_done <= 0) return;
  const int end = q->group_end[n_done - 1];
  for (int i = 0; i < end; ++i) {
    fa_copy *c = &q->v[i];
    land(b, c);
    const uint32_t first = c->shared / 4, past = first + c->bytes / 4;
    for (uint32_t w = first; w < past; ++w) { /* visible to its own thread from now on */
      fa_shadow *s = &b->shadow[w];
      s->in_flight = false;
      s->write_tick = b->tick;
    }
  }
  if (end > 0) memmove(q->v, q->v + end, (size_t)(q->n - end) * sizeof *q->v); /* groups may be empty */
  q->n -= end;
  q->n_grouped -= end;
  memmove(q->group_end, q->group_end + n_done, (size_t)(q->n_groups - n_done) * sizeof *q->group_end);
  q->n_groups -= n_done;
  for (int g = 0; g < q->n_groups; ++g) q->group_end[g] -= end;
}
