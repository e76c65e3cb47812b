/* Counter-based random numbers: a pure function of (seed, stream, index), so that values do not depend on the
 * number of threads, the order of evaluation, or which other elements exist. The mixing is splitmix64's
 * finaliser (Steele, Lea & Flood 2014) over the three words. It uses only correctly rounded operations and no
 * libm, so every machine draws the same bits. */
#ifndef FA_CASES_BASE_RNG_H
#define FA_CASES_BASE_RNG_H

#include <stdint.h>

uint64_t fa_rng_u64(uint64_t seed, uint64_t stream, uint64_t index);
double fa_rng_uniform(uint64_t seed, uint64_t stream, uint64_t index); /* in (0, 1): odd multiples of 2^-53 */
double fa_rng_normal(uint64_t seed, uint64_t stream, uint64_t index);  /* N(0,1), Box-Muller */

/* The same for many indices of one (seed, stream): fa_rng_key_u64(fa_rng_key(s, t), i) == fa_rng_u64(s, t,
 * i). */
uint64_t fa_rng_key(uint64_t seed, uint64_t stream);
uint64_t fa_rng_key_u64(uint64_t key, uint64_t index);
double fa_rng_key_normal(uint64_t key, uint64_t index);
/* out[i] = fa_rng_key_normal(key, first + i step), bit for bit, but many times faster. */
void fa_rng_key_normals(uint64_t key, uint64_t first, uint64_t step, int64_t n, double *out);

/* A draw that is given instead of drawn: number `index` of a stream is made of these 16 bits. fa_rng_below finds each of up
 * to 640 results among them, and fa_rng_chance is true for value / 65536 < p. */
typedef struct fa_rng_edit {
  uint16_t stream, index, value;
} fa_rng_edit;

/* Which draws were made, in their order; the first FA_RNG_TRACE of them. */
enum { FA_RNG_TRACE = 400 };
typedef struct fa_rng_trace {
  int n;
  fa_rng_edit made[FA_RNG_TRACE]; /* value: of the draw, its upper bits */
} fa_rng_trace;

/* The first that fits counts. Values of 65535 may be drawn over, by the next index. */
typedef struct fa_rng_edits {
  const fa_rng_edit *v;
  int n;
  fa_rng_trace *trace; /* NULL: none */
} fa_rng_edits;

/* A sequence drawn from one stream, for generators. */
typedef struct fa_rng {
  uint64_t seed, stream, next;
  const fa_rng_edits *edits; /* NULL: none */
} fa_rng;
fa_rng fa_rng_make(uint64_t seed, uint64_t stream);
uint64_t fa_rng_next(fa_rng *r);
int64_t fa_rng_below(fa_rng *r, int64_t n);              /* uniform in [0, n); n >= 1; no modulo bias */
int64_t fa_rng_range(fa_rng *r, int64_t lo, int64_t hi); /* uniform in [lo, hi], both inclusive */
double fa_rng_next_uniform(fa_rng *r);                   /* (0, 1) */
int fa_rng_chance(fa_rng *r, double p);                  /* 1 with probability p */

#endif
