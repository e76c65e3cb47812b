/* Bounds of the gradients, computed along with their values. */
#ifndef FA_REF_BOUNDS_BACKWARD_H
#define FA_REF_BOUNDS_BACKWARD_H

#include "ref/bounds/terms.h"
#include "ref/math/order.h"
#include "ref/math/rows.h"
#include "ref/tiles/gather.h"

typedef struct fa_backward_job {
  fa_ref_call *c;
  fa_ref_scratch *scratch; /* [n_threads] */
  fa_bound_scratch *bound; /* [n_threads]; NULL: values only */
  const fa_rows *rows;
  fa_ref_blocks blocks;      /* of a sample: its rows */
  int64_t *first_item;       /* [batch + 1] */
  fa_ref_order *order;       /* a queue per key/value head of a sequence */
  bool *dk_lost;             /* the same: NaN and infinity of any sign may be right; NULL: dS is not narrow */
  float *parts_dk, *parts_dv; /* sums over a group's heads of |dK|, |dV|; NULL unless the bounds need them */
} fa_backward_job;

/* How far the LSE that a kernel's backward starts from may be off, where the reference does not have it. */
double fa_bound_lse_slack(const fa_ref_call *c, const fa_ref_rows *r, int64_t k, const fa_ref_scratch *w);
/* Once per query block, after its rows were loaded; the second when delta is known. */
void fa_bound_backward_begin(const fa_ref_call *c, const fa_ref_rows *r, const fa_ref_scratch *w,
                             fa_bound_scratch *b);
void fa_bound_backward_delta(const fa_ref_call *c, const fa_ref_rows *r, const fa_ref_scratch *w,
                             fa_bound_scratch *b);
/* Once per tile: |dO| |V|^T. */
void fa_bound_backward_tile_begin(const fa_ref_call *c, const fa_ref_rows *r, int64_t j0, int64_t n,
                                  fa_bound_scratch *b);
/* Row k of the tile, keys begin .. end: the first while w->s holds scores, the second while it holds P and
 * w->dp holds dP. */
void fa_bound_backward_row_exponent(const fa_ref_call *c, const fa_rows *rows, const fa_ref_scratch *w,
                                    fa_bound_scratch *b, int64_t k, int64_t n, int64_t begin, int64_t end);
void fa_bound_backward_row(const fa_ref_call *c, const fa_rows *rows, const fa_ref_scratch *w,
                           fa_bound_scratch *b, int64_t k, int64_t n, int64_t begin, int64_t end);
/* Which sums a walk over tiles is for. */
typedef struct fa_sums {
  bool of_rows, of_keys; /* dQ; dK and dV */
} fa_sums;
/* Adds the tile's part to these sums. first: whether it is the first tile of the query block. */
void fa_bound_backward_tile_end(const fa_ref_call *c, const fa_ref_rows *r, int64_t j0, int64_t n,
                                fa_bound_scratch *b, const fa_ref_tile_spans *spans, fa_sums sums,
                                bool first);
/* Computes dQ's bounds for a query block. */
void fa_bound_backward_end(const fa_ref_call *c, const fa_ref_rows *r, const fa_bound_scratch *b);
/* Zeroes the private sums of keys begin .. end - 1. */
void fa_bound_backward_touch(const fa_ref_call *c, fa_bound_scratch *b, int64_t begin, int64_t end);
/* Adds an item's sums to the outputs'; after the last item of a head, turns those of keys
 * begin .. end - 1 into bounds. */
void fa_bound_backward_merge(const fa_backward_job *f, const fa_ref_sequence *e, int64_t hk, int64_t begin,
                             int64_t end, const fa_bound_scratch *b);
void fa_bound_backward_finish(const fa_backward_job *f, const fa_ref_sequence *e, int64_t hk, int64_t begin,
                              int64_t end, const fa_bound_scratch *b);

/* ---- ref/bounds/delta.c ---- */

/* Where delta is sum P dP: adds row k's keys begin .. end of a tile, while w->s holds P and w->dp dP. */
void fa_bound_delta_add(const fa_ref_call *c, const fa_ref_scratch *w, fa_bound_scratch *b, int64_t k,
                        int64_t n, int64_t begin, int64_t end);
/* How far a row's delta may be off. w holds the row's d_o, o, delta. */
double fa_bound_delta(const fa_ref_call *c, const fa_ref_rows *r, int64_t k, const fa_ref_scratch *w,
                      const fa_bound_scratch *b);

#endif
