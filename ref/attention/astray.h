/* Mistakes of the forward that change how a row is summed up (ref/engine/twist.h), and which parts are computed. */
#ifndef FA_REF_ATTENTION_ASTRAY_H
#define FA_REF_ATTENTION_ASTRAY_H

#include "ref/math/rows.h"
#include "ref/tiles/mask.h"
#include "ref/tiles/scratch.h"

/* False: nothing of this query block is asked for. Otherwise cuts it to the rows that are. */
bool fa_ref_rows_asked(const fa_ref_call *c, fa_ref_rows *r);
/* The same for the keys that its rows see, of head hk. */
bool fa_ref_keys_asked(const fa_ref_call *c, int64_t hk, fa_ref_rows *r);
/* The keys of a head whose gradients are asked for: *begin .. *end - 1. False: none. */
bool fa_ref_gradients_asked(const fa_ref_call *c, const fa_ref_sequence *e, int64_t hk, int64_t *begin,
                            int64_t *end);

/* Per row of a query block: the sums of exponentials that a mistaken kernel has. */
typedef struct fa_ref_astray {
  double sum[FA_BLOCK_M]; /* never rescaled */
} fa_ref_astray;

/* Row k's n scores x, from key first on, become weights, as softmax_tile has them. Updates m, l and acc of w. */
void fa_ref_astray_row(const fa_ref_call *c, const fa_rows *rows, fa_ref_scratch *w, int64_t k, double *x,
                       int64_t first, int64_t n, fa_ref_astray *a);
/* Rounds n numbers as r says. */
void fa_ref_astray_round(const fa_ref_rounding *r, double *x, int64_t n);
/* dscore of ref/math/rows.h, with the P in dS rounded as r says. */
void fa_ref_astray_dscore(const fa_ref_rounding *r, double *p, double *dp, const double *z, double delta,
                          int64_t n);
/* Once O, LSE and their bounds are written: makes them what the mistaken kernel returns. */
void fa_ref_astray_end(fa_ref_call *c, const fa_ref_rows *r, const fa_ref_scratch *w, const fa_ref_astray *a);

#endif
