#include "cases/base/rng.h"

#include "cases/base/rng_normal.h"
#include "cases/base/row_loops.h"
#include "cases/base/status.h"

/* For a fixed (seed, stream) this is a bijection of the index: no value comes twice in 2^64 draws. */
uint64_t fa_rng_u64(uint64_t seed, uint64_t stream, uint64_t index) {
  return fa_rng_key_u64(fa_rng_key(seed, stream), index);
}

uint64_t fa_rng_key(uint64_t seed, uint64_t stream) {
  return fa_rng_mix_key(seed, stream);
}

uint64_t fa_rng_key_u64(uint64_t key, uint64_t index) {
  return fa_rng_draw_u64(key, index);
}

double fa_rng_uniform(uint64_t seed, uint64_t stream, uint64_t index) {
  return fa_rng_to_uniform(fa_rng_u64(seed, stream, index));
}

double fa_rng_key_normal(uint64_t key, uint64_t index) {
  return fa_rng_draw_normal(key, index);
}

void fa_rng_key_normals(uint64_t key, uint64_t first, uint64_t step, int64_t n, double *out) {
  fa_row_loops_best()->normals(key, first, step, n, out);
}

double fa_rng_normal(uint64_t seed, uint64_t stream, uint64_t index) {
  return fa_rng_key_normal(fa_rng_key(seed, stream), index);
}

fa_rng fa_rng_make(uint64_t seed, uint64_t stream) {
  return (fa_rng){.seed = seed, .stream = stream};
}

/* The high bits decide what is likely, a remainder which of several: both come from the value, which is why it stands there
 * four times. What it is multiplied by for that has no factor below 641, so no remainder by less is out of reach. */
static uint64_t word_of(uint16_t value) {
  return value * 0x0001000100010001u;
}

static uint64_t edited(const fa_rng *r, uint64_t index) {
  for (int i = 0; i < r->edits->n; ++i) {
    const fa_rng_edit *e = &r->edits->v[i];
    if (e->stream == r->stream && e->index == index) return word_of(e->value);
  }
  return fa_rng_u64(r->seed, r->stream, index);
}

static void note(fa_rng_trace *t, const fa_rng *r, uint64_t index, uint64_t word) {
  if (t->n == FA_RNG_TRACE) return;
  t->made[t->n++] = (fa_rng_edit){(uint16_t)r->stream, (uint16_t)index, (uint16_t)(word >> 48)};
}

uint64_t fa_rng_next(fa_rng *r) {
  const uint64_t index = r->next++;
  if (!r->edits) return fa_rng_u64(r->seed, r->stream, index);
  const uint64_t word = edited(r, index);
  if (r->edits->trace) note(r->edits->trace, r, index, word);
  return word;
}

int64_t fa_rng_below(fa_rng *r, int64_t n) {
  FA_ASSERT(n >= 1);
  /* Rejects draws past the largest multiple of n, which would favour small results. */
  const uint64_t range = (uint64_t)n, excess = (UINT64_MAX % range + 1) % range;
  uint64_t u;
  do u = fa_rng_next(r);
  while (u > UINT64_MAX - excess);
  return (int64_t)(u % range);
}

int64_t fa_rng_range(fa_rng *r, int64_t lo, int64_t hi) {
  FA_ASSERT(lo <= hi);
  const uint64_t span = (uint64_t)hi - (uint64_t)lo;
  FA_ASSERT(span < INT64_MAX);
  return lo + fa_rng_below(r, (int64_t)span + 1);
}

double fa_rng_next_uniform(fa_rng *r) {
  return fa_rng_to_uniform(fa_rng_next(r));
}

int fa_rng_chance(fa_rng *r, double p) {
  return fa_rng_next_uniform(r) < p;
}
