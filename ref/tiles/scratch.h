/* One thread's memory. */
#ifndef FA_REF_TILES_SCRATCH_H
#define FA_REF_TILES_SCRATCH_H

#include "ref/mods/tile.h"

/* Allocates the arrays of one block consecutively. Without a base, it only counts: adding to NULL is
 * undefined. */
typedef struct fa_ref_arena {
  char *base;
  size_t used;
} fa_ref_arena;

static inline void *fa_ref_arena_alloc(fa_ref_arena *a, int64_t n, size_t size) {
  void *p = a->base ? a->base + a->used : NULL;
  a->used += (((size_t)n * size + 63) / 64) * 64;
  return p;
}

typedef struct fa_ref_scratch {
  double *k, *v; /* one key/value head as doubles: [sk, D], [sk, Dv] */
  const fa_ref_sequence *e;
  int64_t hk;               /* the head in k and v; e == NULL: none */
  double *q, *d_o, *o;      /* [FA_BLOCK_M, D | Dv] */
  double *s, *dp, *ds, *th; /* tiles [FA_BLOCK_M, FA_BLOCK_N] */
  double *scores;           /* [FA_BLOCK_M, sk] of a query block, tile after tile, for its bounds; or NULL */
  double *z;                /* [FA_BLOCK_N] */
  double *acc;              /* [FA_BLOCK_M, max(D, Dv)] */
  double *dk, *dv;          /* [sk, D], [sk, Dv] */
  double *part;             /* twice a tile or a part of acc, dk or dv, for sums in few bits; else NULL */
  double *m, *l, *rest;     /* [FA_BLOCK_M]; l: forward the sum, backward LSE, where rest is what it lacks */
  double *key_m, *key_l;    /* forward: m and l without the sink; without sinks they are m and l */
  double *delta;            /* [FA_BLOCK_M] */
  double amax_p;            /* forward: the largest P of all rows so far */
  fa_ref_mod_scratch *mod;  /* NULL: no expressions */
  char *arena;
} fa_ref_scratch;
fa_status fa_ref_scratch_init(fa_ref_scratch *s, const fa_ref_call *c, bool backward, fa_error *err);
void fa_ref_scratch_free(fa_ref_scratch *s);
/* Loads this head into k and v. */
void fa_ref_scratch_head(fa_ref_scratch *s, const fa_ref_call *c, const fa_ref_sequence *e, int64_t hk);

/* Whether the forward's bounds are made from kept scores: of a call with lists of keys these are the final ones, and else
 * they are q.k. */
bool fa_ref_keeps_scores(const fa_ref_call *c);

#endif
