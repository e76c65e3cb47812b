#include "report/merge/parts.h"

#include <stdlib.h>
#include <string.h>

static uint64_t add_text(uint64_t hash, const char *text) {
  for (const char *s = text; *s; ++s) hash = (hash ^ (unsigned char)*s) * 0x100000001b3u;
  return (hash ^ 0x100) * 0x100000001b3u; /* "ab", "c" is not "a", "bc" */
}

uint64_t fa_twin_hash(const char *record, const char *name, const char *backend, const char *subject) {
  const uint64_t hash = add_text(add_text(0xcbf29ce484222325u, record), name);
  return add_text(add_text(hash, backend), subject);
}

/* The slot of a hash: the one in use whose twin is accepted, or the free one behind. */
static int64_t slot_of(const fa_twins *t, uint64_t hash, bool (*is)(void *, const fa_twin *), void *ctx) {
  const int64_t mask = t->n_slots - 1;
  int64_t at = (int64_t)((hash ^ hash >> 32) & (uint64_t)mask);
  for (; t->slot[at] >= 0; at = (at + 1) & mask) {
    const fa_twin *twin = &t->v[t->slot[at]];
    if (is && twin->hash == hash && is(ctx, twin)) break;
  }
  return at;
}

fa_twin *fa_twins_find(const fa_twins *t, uint64_t hash, bool (*is)(void *ctx, const fa_twin *twin),
                       void *ctx) {
  if (t->n_slots == 0) return NULL;
  const int32_t found = t->slot[slot_of(t, hash, is, ctx)];
  return found < 0 ? NULL : &t->v[found];
}

static bool grow(fa_twins *t) {
  const int64_t capacity = t->capacity ? 2 * t->capacity : 1024, n_slots = 2 * capacity;
  if (capacity > INT32_MAX) return false;
  fa_twin *v = realloc(t->v, (size_t)capacity * sizeof *v);
  if (v) t->v = v;
  int32_t *slot = v ? malloc((size_t)n_slots * sizeof *slot) : NULL;
  if (!slot) return false;
  memset(slot, 0xff, (size_t)n_slots * sizeof *slot); /* -1 */
  free(t->slot);
  t->slot = slot;
  t->n_slots = n_slots;
  t->capacity = capacity;
  for (int64_t i = 0; i < t->n; ++i) t->slot[slot_of(t, t->v[i].hash, NULL, NULL)] = (int32_t)i;
  return true;
}

fa_twin *fa_twins_add(fa_twins *t, uint64_t hash) {
  if (t->n == t->capacity && !grow(t)) return NULL;
  t->slot[slot_of(t, hash, NULL, NULL)] = (int32_t)t->n;
  t->v[t->n] = (fa_twin){.hash = hash, .first = -1, .report = -1, .count = 0};
  return &t->v[t->n++];
}
