/* The order of additions. A release is a snapshot of what its block has done before it, by the clocks of async.h, with
 * the waits of its block until then; so whether an addition comes before another is a search from wait to release to
 * wait. */
#include "gpu/simt/order.h"

#include "gpu/simt/async.h"

#include <pthread.h>
#include <stdlib.h>

enum {
  PAGE_BYTES = 4096,
  ADDED_BYTES = 16,
  PER_PAGE = PAGE_BYTES / ADDED_BYTES,
  MAX_ADDING_PLACES = 64,
  BUCKETS = 256,
  CHUNK_BYTES = 1 << 16
};
#define NOT_COMPLETE UINT32_MAX

/* The last addition to 16 bytes. */
typedef struct addition {
  uint32_t block, tick;
  uint16_t thread, place; /* place: 1 + index in fa_simt_order.place; 0: nobody has added */
} addition;

typedef struct page {
  pthread_mutex_t lock;
  addition last[PER_PAGE];
} page;

/* Nothing of it changes once it was made, but for `next` and `search`. */
typedef struct release {
  const unsigned *semaphore;
  unsigned value;
  uint32_t block;
  int thread;
  const struct fa_order_wait *waits; /* of the block until then, the last one first */
  struct release *older;             /* of the same bucket */
  struct release *next;              /* to be searched */
  uint32_t search;                   /* the last one that came here */
  /* What comes before it: what its thread did until tick `now`; all threads before barrier_tick; each warp before
   * before[warp]; the first lane of each warp before before[n_warps + warp]. */
  uint32_t now, barrier_tick, before[];
} release;

typedef struct fa_order_wait {
  release *saw;
  int thread;
  uint32_t tick;
  const struct fa_order_wait *older;
} fa_order_wait;

typedef struct chunk {
  struct chunk *older;
  size_t used;
  _Alignas(16) char bytes[CHUNK_BYTES];
} chunk;

struct fa_simt_order {
  const fa_simt_launch *launch;
  int n_warps;
  page ***pages; /* of each writable range, from that on in which it begins; NULL: nobody has added there */
  pthread_mutex_t lock; /* for what follows and for new pages; places up to n_places are read without it */
  fa_simt_place place[MAX_ADDING_PLACES];
  int n_places;
  release *released[BUCKETS]; /* hashed by semaphore */
  uint32_t search;
  chunk *memory; /* of releases and waits */
};

/* ---- memory ---- */

static uintptr_t page_number(const void *p) {
  return (uintptr_t)p / PAGE_BYTES;
}

static size_t pages_of(const fa_simt_range *r) {
  return page_number(r->begin + r->bytes) - page_number(r->begin) + 1;
}

fa_simt_order *fa_simt_order_make(const fa_simt_launch *launch) {
  fa_simt_order *o = calloc(1, sizeof *o);
  if (!o) return NULL;
  o->launch = launch;
  o->n_warps = (int)(launch->block.x * launch->block.y * launch->block.z) *
               (launch->cluster ? (int)launch->cluster : 1) / FA_WARP;
  pthread_mutex_init(&o->lock, NULL);
  o->pages = calloc((size_t)launch->n_ranges + 1, sizeof *o->pages);
  bool done = o->pages != NULL;
  for (int i = 0; done && i < launch->n_ranges; ++i) {
    if (!launch->ranges[i].writable) continue;
    o->pages[i] = calloc(pages_of(&launch->ranges[i]), sizeof **o->pages);
    done = o->pages[i] != NULL;
  }
  if (done) return o;
  fa_simt_order_free(o);
  return NULL;
}

static void free_pages(const fa_simt_range *r, page **of) {
  for (size_t i = 0; of && i < pages_of(r); ++i) {
    if (of[i]) pthread_mutex_destroy(&of[i]->lock);
    free(of[i]);
  }
  free(of);
}

void fa_simt_order_free(fa_simt_order *o) {
  if (!o) return;
  for (int i = 0; o->pages && i < o->launch->n_ranges; ++i) free_pages(&o->launch->ranges[i], o->pages[i]);
  free(o->pages);
  for (chunk *c = o->memory, *older; c; c = older) {
    older = c->older;
    free(c);
  }
  pthread_mutex_destroy(&o->lock);
  free(o);
}

/* With the lock. */
static void *take(fa_simt_order *o, size_t bytes) {
  bytes = (bytes + 15) / 16 * 16;
  FA_ASSERT(bytes <= CHUNK_BYTES);
  if (!o->memory || CHUNK_BYTES - o->memory->used < bytes) {
    chunk *c = malloc(sizeof *c);
    FA_ASSERT(c);
    c->older = o->memory;
    c->used = 0;
    o->memory = c;
  }
  void *p = o->memory->bytes + o->memory->used;
  o->memory->used += bytes;
  return p;
}

static page *new_page(fa_simt_order *o, page **at) {
  pthread_mutex_lock(&o->lock);
  page *p = *at;
  if (!p) {
    p = calloc(1, sizeof *p);
    FA_ASSERT(p);
    pthread_mutex_init(&p->lock, NULL);
    __atomic_store_n(at, p, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&o->lock);
  return p;
}

/* The page of an address, locked. */
static page *lock_page(fa_simt_block *b, const void *to) {
  fa_simt_order *o = b->order;
  const fa_simt_range *r = fa_simt_range_of(b, to, 4);
  page **at = &o->pages[r - b->launch->ranges][page_number(to) - page_number(r->begin)];
  page *p = __atomic_load_n(at, __ATOMIC_ACQUIRE);
  if (!p) p = new_page(o, at);
  pthread_mutex_lock(&p->lock);
  return p;
}

static addition *last_of(page *p, const void *to) {
  return &p->last[(uintptr_t)to % PAGE_BYTES / ADDED_BYTES];
}

static int find_place(const fa_simt_order *o, int n, fa_simt_place at) {
  for (int i = 0; i < n; ++i)
    if (o->place[i].line == at.line && o->place[i].file == at.file) return i + 1;
  return 0;
}

static uint16_t place_number(fa_simt_order *o, fa_simt_place at) {
  int found = find_place(o, __atomic_load_n(&o->n_places, __ATOMIC_ACQUIRE), at);
  if (found) return (uint16_t)found;
  pthread_mutex_lock(&o->lock);
  found = find_place(o, o->n_places, at);
  if (!found) {
    FA_ASSERT(o->n_places < MAX_ADDING_PLACES);
    o->place[o->n_places] = at;
    found = o->n_places + 1;
    __atomic_store_n(&o->n_places, found, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&o->lock);
  return (uint16_t)found;
}

/* ---- releases and waits ---- */

static release **bucket_of(fa_simt_order *o, const unsigned *semaphore) {
  return &o->released[(uintptr_t)semaphore / sizeof *semaphore % BUCKETS];
}

/* What by barriers comes before what the running thread does now. */
static void fill_before(const fa_simt_block *b, release *r) {
  const int mine = b->running->warp;
  for (int w = 0; w < b->n_warps; ++w) {
    const uint32_t *seen = b->async ? b->async->seen[mine].tick : NULL;
    r->before[w] = seen ? seen[w] : 0;
    r->before[b->n_warps + w] = seen ? seen[FA_LEADERS + w] : 0;
  }
  if (b->warps[mine].sync_tick > r->before[mine]) r->before[mine] = b->warps[mine].sync_tick;
}

void fa_simt_order_release(fa_simt_block *b, const unsigned *semaphore, unsigned value) {
  fa_simt_order *o = b->order;
  release **bucket = bucket_of(o, semaphore);
  pthread_mutex_lock(&o->lock);
  release *r = take(o, sizeof *r + 2 * (size_t)b->n_warps * sizeof *r->before);
  *r = (release){.semaphore = semaphore,
                 .value = value,
                 .block = (uint32_t)b->index,
                 .thread = b->running->index,
                 .now = b->tick,
                 .barrier_tick = b->barrier_tick,
                 .waits = b->waits,
                 .older = *bucket};
  fill_before(b, r);
  *bucket = r;
  pthread_mutex_unlock(&o->lock);
  ++b->tick; /* what the thread does next comes later */
}

void fa_simt_order_wait(fa_simt_block *b, const unsigned *semaphore, unsigned value) {
  fa_simt_order *o = b->order;
  pthread_mutex_lock(&o->lock);
  release *r = *bucket_of(o, semaphore);
  while (r && (r->semaphore != semaphore || r->value != value)) r = r->older;
  if (r) { /* else the value was there before the launch */
    fa_order_wait *w = take(o, sizeof *w);
    *w = (fa_order_wait){.saw = r, .thread = b->running->index, .tick = b->tick, .older = b->waits};
    b->waits = w;
  }
  pthread_mutex_unlock(&o->lock);
}

/* Whether the release's block did it before the release. */
static bool comes_before(const fa_simt_order *o, int thread, uint32_t tick, const release *r) {
  if (thread == r->thread) return tick <= r->now;
  if (tick < r->barrier_tick || tick < r->before[thread / FA_WARP]) return true;
  return thread % FA_WARP == 0 && tick < r->before[o->n_warps + thread / FA_WARP];
}

static bool releases(const fa_simt_order *o, const release *r, const addition *a) {
  return r->block == a->block && comes_before(o, a->thread, a->tick, r);
}

static release *push(const fa_simt_order *o, release *r, release *rest) {
  if (r->search == o->search) return rest;
  r->search = o->search;
  r->next = rest;
  return r;
}

/* Whether the running thread has waited for a release after the addition, or for one of a block that has, and so on. */
static bool search(fa_simt_block *b, const addition *a) {
  fa_simt_order *o = b->order;
  release *rest = NULL;
  bool found = false;
  pthread_mutex_lock(&o->lock);
  ++o->search;
  for (const fa_order_wait *w = b->waits; w; w = w->older)
    if (fa_simt_ordered(b, w->thread, w->tick)) rest = push(o, w->saw, rest);
  while (rest && !found) {
    const release *r = rest;
    rest = r->next;
    found = releases(o, r, a);
    for (const fa_order_wait *w = r->waits; w; w = w->older)
      if (comes_before(o, w->thread, w->tick, r)) rest = push(o, w->saw, rest);
  }
  pthread_mutex_unlock(&o->lock);
  return found;
}

/* As a rule one of the block's last waits saw such a release itself, and nothing is to be searched. */
static bool is_ordered(fa_simt_block *b, const addition *a) {
  for (const fa_order_wait *w = b->waits; w; w = w->older)
    if (releases(b->order, w->saw, a) && fa_simt_ordered(b, w->thread, w->tick)) return true;
  return search(b, a);
}

/* ---- additions ---- */

static void report(const fa_simt_block *b, const addition *a, fa_simt_place at) {
  const fa_simt_place *p = &b->order->place[a->place - 1];
  const fa_simt_dim block = fa_simt_block_at(b, a->block, a->thread);
  fa_simt_violation(
      FA_SUBJECT_RACE, at,
      "adds to what block (%u,%u,%u) added to at %s:%d, %s: in a deterministic call the order must be fixed",
      block.x, block.y, block.z, p->file, p->line,
      a->tick == NOT_COMPLETE ? "which nobody has waited for" : "with no semaphore between");
}

void fa_simt_order_add(fa_simt_block *b, const void *to, bool asynchronous, fa_simt_place at) {
  const addition mine = {.block = (uint32_t)b->index,
                         .tick = asynchronous ? NOT_COMPLETE : b->tick,
                         .thread = (uint16_t)b->running->index,
                         .place = place_number(b->order, at)};
  page *p = lock_page(b, to);
  const addition before = *last_of(p, to);
  *last_of(p, to) = mine;
  pthread_mutex_unlock(&p->lock);
  if (before.place && before.block != mine.block && !is_ordered(b, &before)) report(b, &before, at);
}

void fa_simt_order_complete(fa_simt_block *b, const float *to, uint32_t n) {
  for (uint32_t i = 0; i < n; i += ADDED_BYTES / sizeof *to) {
    page *p = lock_page(b, to + i);
    addition *a = last_of(p, to + i);
    if (a->block == b->index && a->thread == b->running->index && a->tick == NOT_COMPLETE) a->tick = b->tick;
    pthread_mutex_unlock(&p->lock);
  }
}
