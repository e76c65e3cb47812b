/* Bulk copies (TMA) of boxes of tensors, and between the shared memories of a cluster. */
#include "gpu/simt/async.h"

#include "gpu/simt/add.h"
#include "gpu/simt/order.h"

#include <stdlib.h>
#include <string.h>

static void *grow(void *v, int n, int *capacity, size_t each) {
  if (n < *capacity) return v;
  *capacity = *capacity ? *capacity * 2 : 64;
  v = realloc(v, (size_t)*capacity * each);
  FA_ASSERT(v);
  return v;
}

static const fa_tensor_box *box_of(const fa_tensor_map *map) {
  _Static_assert(sizeof(fa_tensor_box) <= sizeof(fa_tensor_map), "it lies inside");
  return (const fa_tensor_box *)(const void *)map->bytes;
}

static uint32_t rows_of(const fa_tensor_box *x) {
  return x->box[1] * x->box[2] * x->box[3];
}

static uint32_t bytes_of(const fa_tensor_box *x) {
  return rows_of(x) * x->box[0] * 2;
}

/* Reports a tensor map that the driver would not encode, or a copy that the hardware would reject. */
static void check(const fa_tensor_box *x, uint32_t shared, fa_simt_place at) {
  static const uint32_t width[] = {0, 128, 64, 32};
  bool right = (uintptr_t)x->base % 16 == 0 && x->box[0] * 2 % 16 == 0;
  for (int i = 0; i < 4; ++i) right &= x->size[i] >= 1 && x->box[i] >= 1 && x->box[i] <= 256;
  for (int i = 0; i < 3; ++i) right &= x->bytes[i] % 16 == 0;
  if (x->swizzle) right &= x->box[0] * 2 <= width[x->swizzle];
  if (!right) fa_simt_violation(FA_SUBJECT_CRASH, at, "a tensor map that no device takes");
  if (shared % 128 != 0)
    fa_simt_violation(FA_SUBJECT_CRASH, at, "bulk copy at shared offset %u: not aligned to 128 bytes",
                      shared);
}

/* The address of byte `at` of a packed box at address `shared`. */
static uint32_t swizzled(uint32_t shared, uint32_t at, int swizzle) {
  static const uint32_t mask[] = {0, 7, 3, 1};
  const uint32_t address = shared + at;
  return address ^ (address >> 7 & mask[swizzle]) << 4;
}

/* The global address of chunk `chunk` of a box, 8 elements. Returns how many of its bytes exist (0..16). */
static int chunk_of(const fa_tensor_box *x, const int c[4], uint32_t chunk, const char **from) {
  const uint32_t per_row = x->box[0] / 8, row = chunk / per_row;
  const int64_t i[4] = {(int64_t)c[0] + chunk % per_row * 8, (int64_t)c[1] + row % x->box[1],
                        (int64_t)c[2] + row / x->box[1] % x->box[2],
                        (int64_t)c[3] + row / x->box[1] / x->box[2]};
  const char *p = (const char *)x->base + i[0] * 2;
  for (int k = 1; k < 4; ++k) {
    if (i[k] < 0 || i[k] >= (int64_t)x->size[k]) return 0;
    p += i[k] * (int64_t)x->bytes[k - 1];
  }
  if (i[0] < 0 || i[0] >= (int64_t)x->size[0]) return 0;
  *from = p;
  const int64_t left = (int64_t)x->size[0] - i[0];
  return left >= 8 ? 16 : (int)left * 2;
}

/* A whole chunk at once, part of one element by element. */
static void check_loaded(const char *p, int bytes, fa_simt_place at) {
  if (bytes == 16)
    fa_simt_global(p, 16, false, at);
  else
    for (int i = 0; i < bytes; i += 2) fa_simt_global(p + i, 2, false, at);
}

static fa_bulk_load *start(fa_simt_async *a, fa_bulk_load load) {
  a->load = grow(a->load, a->n_loads, &a->load_capacity, sizeof *a->load);
  a->load[a->n_loads] = load;
  return &a->load[a->n_loads++];
}

void fa_simt_tma_load(uint32_t shared, const fa_tensor_map *map, uint32_t bar, const int c[4],
                      fa_simt_place at) {
  fa_simt_block *b = fa_simt_current;
  fa_simt_async *a = fa_simt_async_get(b);
  const fa_tensor_box *x = box_of(map);
  const char *from = NULL;
  check(x, shared, at);
  for (uint32_t i = 0; i < bytes_of(x) / 16; ++i) {
    const int bytes = chunk_of(x, c, i, &from);
    if (bytes) check_loaded(from, bytes, at);
  }
  fa_simt_shared_begin_write(b, shared, bytes_of(x), at);
  fa_bulk_load *l = start(a, (fa_bulk_load){.map = map, .shared = shared, .bytes = bytes_of(x), .at = at});
  l->bar = fa_simt_mbarrier_find(b, bar, at);
  memcpy(l->c, c, sizeof l->c);
}

void fa_simt_bulk_copy(uint32_t to, uint32_t from, uint32_t bytes, uint32_t bar, fa_simt_place at) {
  fa_simt_block *b = fa_simt_current;
  fa_simt_async *a = fa_simt_async_get(b);
  if (to % 16 != 0 || from % 16 != 0 || bytes % 16 != 0)
    fa_simt_violation(FA_SUBJECT_CRASH, at, "bulk copy of %u bytes from %u to %u: not in sixteens", bytes,
                      from, to);
  fa_simt_shared_begin_read(b, from, bytes, "bulk copy", at);
  fa_simt_shared_begin_write(b, to, bytes, at);
  fa_bulk_load *l = start(a, (fa_bulk_load){.shared = to, .from = from, .bytes = bytes, .at = at});
  l->bar = fa_simt_mbarrier_find(b, bar, at);
}

static void fill_box(fa_simt_block *b, const fa_bulk_load *l) {
  const fa_tensor_box *x = box_of(l->map);
  for (uint32_t k = 0; k < l->bytes / 16; ++k) {
    const char *from = NULL;
    char *to = b->shared + swizzled(l->shared, 16 * k, x->swizzle);
    const int bytes = chunk_of(x, l->c, k, &from);
    memset(to, 0, 16);
    if (bytes) memcpy(to, from, (size_t)bytes);
  }
}

void fa_simt_bulk_arrive(fa_simt_block *b, int i) {
  fa_simt_async *a = b->async;
  const fa_bulk_load l = a->load[i];
  memmove(&a->load[i], &a->load[i + 1], (size_t)(a->n_loads - i - 1) * sizeof l);
  --a->n_loads;
  fa_simt_check_alive(b, l.shared, "a bulk copy", l.at);
  if (l.map) {
    fill_box(b, &l);
  } else {
    memcpy(b->shared + l.shared, b->shared + l.from, l.bytes);
    fa_simt_shared_drop_read(b, l.from, l.bytes);
  }
  a->bar[l.bar].unseen = l.at;
  fa_simt_shared_arrived(b, l.shared, l.bytes, l.bar, ++b->tick);
  fa_simt_mbarrier_bytes(b, l.bar, l.bytes, l.at);
}

void fa_simt_tma_store(const fa_tensor_map *map, uint32_t shared, const int c[4], fa_simt_place at) {
  fa_simt_block *b = fa_simt_current;
  fa_simt_async *a = fa_simt_async_get(b);
  const fa_tensor_box *x = box_of(map);
  check(x, shared, at);
  fa_simt_shared_begin_read(b, shared, bytes_of(x), "bulk store", at);
  for (uint32_t i = 0; i < bytes_of(x) / 16; ++i) { /* stored at once: the data must not change before the
                                                       wait */
    const char *to = NULL;
    if (!chunk_of(x, c, i, &to)) continue;
    fa_simt_global(to, 16, true, at); /* whole, as an H200 does, though the tensor ends within it */
    memcpy((char *)(uintptr_t)to, b->shared + swizzled(shared, 16 * i, x->swizzle), 16);
  }
  a->store = grow(a->store, a->n_stores, &a->store_capacity, sizeof *a->store);
  a->store[a->n_stores++] =
      (fa_bulk_store){.thread = b->running->index, .shared = shared, .bytes = bytes_of(x)};
}

void fa_simt_bulk_add(float *to, uint32_t shared, uint32_t bytes, fa_simt_place at) {
  fa_simt_block *b = fa_simt_current;
  fa_simt_async *a = fa_simt_async_get(b);
  if ((uintptr_t)to % 16 != 0 || shared % 16 != 0 || bytes % 16 != 0)
    fa_simt_violation(FA_SUBJECT_CRASH, at, "bulk addition of %u bytes from %u: not in sixteens", bytes,
                      shared);
  fa_simt_shared_begin_read(b, shared, bytes, "bulk addition", at);
  for (uint32_t i = 0; i < bytes / 16; ++i) fa_simt_global_add(to + 4 * i, 16, true, at);
  a->store = grow(a->store, a->n_stores, &a->store_capacity, sizeof *a->store);
  a->store[a->n_stores++] =
      (fa_bulk_store){.thread = b->running->index, .shared = shared, .bytes = bytes, .to = to};
}

static void make_sum(fa_bulk_sum *s) {
  for (uint32_t k = 0; s->x && k < s->n; ++k) fa_add_flushed(s->to + k, s->x[k]);
  free(s->x);
  s->x = NULL;
}

void fa_simt_bulk_make_sums(fa_simt_block *b, bool waited_for) {
  fa_simt_async *a = b->async;
  int kept = 0;
  for (int i = 0; i < a->n_sums; ++i) {
    fa_bulk_sum s = a->sum[i];
    const bool own = s.thread == b->running->index;
    if (own) make_sum(&s);
    if (own && waited_for && b->order) fa_simt_order_complete(b, s.to, s.n);
    if (!own || (b->order && !waited_for)) a->sum[kept++] = s;
  }
  a->n_sums = kept;
}

/* What an addition has read: shared memory may change now. */
static void read_sum(fa_simt_block *b, const fa_bulk_store *s) {
  fa_simt_async *a = b->async;
  float *x = malloc(s->bytes);
  FA_ASSERT(x);
  memcpy(x, b->shared + s->shared, s->bytes);
  a->sum = grow(a->sum, a->n_sums, &a->sum_capacity, sizeof *a->sum);
  a->sum[a->n_sums++] = (fa_bulk_sum){.thread = s->thread, .to = s->to, .x = x, .n = s->bytes / 4};
}

void fa_simt_tma_store_commit(void) {
  fa_simt_block *b = fa_simt_current;
  fa_simt_async *a = fa_simt_async_get(b);
  /* An empty group counts too. */
  a->store = grow(a->store, a->n_stores, &a->store_capacity, sizeof *a->store);
  a->store[a->n_stores++] = (fa_bulk_store){.thread = b->running->index, .committed = true};
}

void fa_simt_tma_store_wait_read(int n_pending_groups) {
  fa_simt_block *b = fa_simt_current;
  fa_simt_async *a = fa_simt_async_get(b);
  int n_groups = 0, kept = 0;
  for (int i = 0; i < a->n_stores; ++i)
    n_groups += a->store[i].thread == b->running->index && a->store[i].committed;
  int n_done = n_groups > n_pending_groups ? n_groups - n_pending_groups : 0;
  for (int i = 0; i < a->n_stores; ++i) {
    const fa_bulk_store s = a->store[i];
    if (s.thread != b->running->index || n_done == 0) {
      a->store[kept++] = s;
      continue;
    }
    if (s.to) read_sum(b, &s);
    if (s.bytes) fa_simt_shared_end_read(b, s.shared, s.bytes, b->running->lane);
    n_done -= s.committed;
  }
  a->n_stores = kept;
  if (b->rng && (fa_simt_random(b) >> 40 & 1) != 0) fa_simt_bulk_make_sums(b, false);
}

void fa_simt_tma_store_wait(void) {
  fa_simt_tma_store_wait_read(0);
  fa_simt_bulk_make_sums(fa_simt_current, true);
}

void fa_simt_fence_async(void) {
  fa_simt_block *b = fa_simt_current;
  fa_simt_async_get(b)->fence_tick[b->running->index] = ++b->tick;
}
