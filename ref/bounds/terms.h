/* Error bounds of the reference's values: docs/reference/bounds.md.
 *
 * Everything here is float32 and nonnegative. Operands are scaled by powers of two to at most about 1, and
 * those that are squared are kept above a minimum, so that no square underflows: a bound may be slightly too
 * large, never too small. */
#ifndef FA_REF_BOUNDS_TERMS_H
#define FA_REF_BOUNDS_TERMS_H

#include "ref/bounds/amax_formula.h"
#include "ref/bounds/gradient_formula.h"
#include "ref/bounds/sink_formula.h"
#include "ref/math/rows.h"
#include "ref/tiles/mask.h"
#include "ref/tiles/scratch.h"

/* A row's sum P dP so far: errors that are sure, and those that are independent from pair to pair. */
typedef struct fa_bound_delta_sum {
  double size, sure, worst, squares;
} fa_bound_delta_sum;

/* Stored numbers of 8 bits and their exponents (ref/bounds/narrow.h); NULL where no bound is made of them. */
typedef struct fa_bound_narrow {
  float *q, *k;                 /* [FA_BLOCK_M, D], [sk, D] */
  int *q_exponent, *k_exponent; /* the same */
  double *k_descale;            /* [sk] */
  double q_descale[FA_BLOCK_M];
} fa_bound_narrow;

/* One thread's memory for bounds. An array named after a matrix holds its absolute values in units of its
 * scale; with a 2 in the name, their squares. */
typedef struct fa_bound_scratch {
  const fa_ref_sequence *e; /* the head in k .. v2; NULL: none */
  int64_t hk;
  double unit_q, unit_do, unit_dlse; /* of the call: powers of two >= the largest magnitude */
  double unit_k, unit_v;             /* of the head */
  double unit_ds, most_unit_ds;      /* of dS, for the head; the largest of all heads so far */
  float *k, *k2, *v, *v2;            /* [sk, D], [sk, Dv] */
  float *q, *q2, *d_o, *d_o2;        /* [FA_BLOCK_M, D | Dv] */
  float *e_logit, *d, *w, *w2, *we;  /* tiles [FA_BLOCK_M, FA_BLOCK_N] */
  float *e_score, *e_dp; /* the same: independent errors of scores and dP; NULL: none (scattered.h) */
  double *mean_k; /* [FA_BLOCK_M, D]: sum P K of the rows; NULL: queries have no errors (scattered.h) */
  float *g, *g2, *ge, *cap, *cap_err;
  float *o1, *o2, *oe;                      /* [FA_BLOCK_M, Dv]: worst case, squares, f32 errors */
  float *dq1, *dq2, *dqe;                   /* [FA_BLOCK_M, D] */
  float *dk1, *dk2, *dke, *dv1, *dv2, *dve; /* [sk, D], [sk, Dv] */
  float *dk_terms;                          /* [sk] */
  float *dv_exact;                          /* [sk]: squares of P near 1, which w2 excludes */
  float *terms, *exact;                     /* [FA_BLOCK_N] */
  bool *dk_lost, *key_lost;      /* [sk], [FA_BLOCK_N]: some dS of the key is beyond its narrow type */
  float *max_k, *max_v;          /* [sk]: largest magnitude of a key or value row */
  float *row_k, *row_q;          /* rotary: [sk, D], [FA_BLOCK_M, D] rounding uncertainty */
  double *x;                     /* [FA_BLOCK_N] */
  double steepest;               /* largest factor of dS from the score chain, over all pairs so far */
  bool overflows;                /* a narrow format of the kernel may, somewhere in the tile */
  bool ds_overflows;             /* the same of dS, which dV has no part in */
  bool plain;                    /* dS before softcap's derivative and before any rounding */
  float row_e_delta[FA_BLOCK_M]; /* error of delta, in unit_ds */
  double row_extra[FA_BLOCK_M];  /* part of the row's exponents */
  double row_terms[FA_BLOCK_M];  /* sum_j P (Z |dP| + |delta|), in unit_ds */
  bool row_lost[FA_BLOCK_M];     /* as key_lost, of the row */
  double row_least[FA_BLOCK_M];  /* fa_bound_least_spread; 0: roundings do not repeat */
  fa_bound_spread row_spread[FA_BLOCK_M];
  fa_bound_delta_sum row_delta[FA_BLOCK_M]; /* where delta is sum P dP */
  fa_bound_narrow narrow;
  fa_bound_largest row_amax[FA_BLOCK_M]; /* of rows so far */
  fa_bound_amax amax;                    /* of all rows that are done */
  char *arena;
} fa_bound_scratch;
/* like: another thread's of the same call, which saves a look at all of its inputs; NULL: this is the first. */
fa_status fa_bound_scratch_init(fa_bound_scratch *s, const fa_ref_call *c, bool backward,
                                const fa_bound_scratch *like, fa_error *err);
void fa_bound_scratch_free(fa_bound_scratch *s);

/* ---- ref/bounds/backward.c ---- */

/* After the last head: adds what depends on the whole call's largest derivative. */
void fa_bound_backward_derivative(const fa_ref_call *c, const fa_bound_scratch *b, int n_threads);

/* ---- ref/bounds/alike.c ---- */

/* most: the cap of each distance. */
void fa_bound_spread_begin(fa_bound_spread *s, double most);
/* Adds n logits of the row, -inf where masked. */
void fa_bound_spread_add(fa_bound_spread *s, const double *x, int64_t n);

/* ---- ref/bounds/operands.c ---- */

/* Loads into k .. v2 the head that w holds. */
void fa_bound_head(fa_bound_scratch *b, const fa_ref_call *c, const fa_ref_scratch *w, bool backward);
/* to = |from| / unit; to2 = its square (NULL: omitted). */
void fa_bound_scale(const double *from, int64_t n, double unit, float *to, float *to2);

/* ---- ref/bounds/logits.c ---- */

/* b->e_logit = absolute error of the tile's scores, before exp. Two steps around fa_ref_score_tile: in the
 * first, s holds scale * q.k; in the second, x holds the final scores. */
void fa_bound_logits_begin(fa_bound_scratch *b, const fa_ref_call *c, const fa_ref_rows *r, int64_t j0,
                           int64_t n, const double *s);
void fa_bound_logits_end(fa_bound_scratch *b, const fa_ref_call *c, const fa_ref_rows *r, int64_t j0,
                         int64_t n, const double *x, const double *th, fa_ref_mod_scratch *mod);
/* The debug matrix, where it is wanted. Row k of a block: n final scores from key j on, and the row's maximum; then, after
 * all of them, the largest relative error of the row's exponentials, which may not be known. */
void fa_bound_magnitudes_add(const fa_ref_call *c, const fa_ref_rows *r, int64_t k, int64_t j,
                             const double *x, int64_t n, double max);
void fa_bound_magnitudes_finish(const fa_ref_call *c, const fa_ref_rows *r, int64_t k, double widest,
                                bool known);

/* The largest element of P, where it is wanted. Row k of a block of n: pairs with P, and at: where their errors are in b's
 * tiles; then, after all of them, what the row adds to b->amax. */
void fa_bound_amax_begin(fa_bound_scratch *b, int64_t n);
void fa_bound_amax_add(fa_bound_scratch *b, const fa_ref_call *c, int64_t k, int64_t at, const double *p,
                       int64_t n);
void fa_bound_amax_row(fa_bound_scratch *b, const fa_ref_call *c, int64_t k, const fa_bound_row *t,
                       double sum_error);

/* One row: turns e (absolute error of x) into the relative error of exp(x - c), where c is m or L. extra:
 * error of other parts of the exponent. *most: the largest. Returns false if the exponential's magnitude is
 * unknown (an error of order 1). */
bool fa_bound_exponent(const fa_ref_call *c, const fa_rows *rows, float *e, const double *x, int64_t n,
                       double shift, bool from_lse, double extra, float *most);

/* ---- ref/bounds/sink.c ---- */

/* Of row k of a block whose tiles are all done. */
fa_bound_maxima fa_bound_maxima_of(const fa_ref_scratch *w, int64_t k);
/* extra: of every exponent of the row. */
fa_bound_sink fa_bound_sink_forward(const fa_ref_call *c, const fa_ref_rows *r, int64_t k,
                                    const fa_ref_scratch *w, double extra);
/* Of the backward, which makes the share from an LSE. */
fa_bound_sink fa_bound_sink_backward(const fa_ref_call *c, const fa_ref_rows *r, int64_t k,
                                     const fa_ref_scratch *w, double lse_slack);
/* What adding the sink to an LSE that leaves it out may cost an exponent of the backward; 0: nothing is added. */
double fa_bound_sink_added(const fa_ref_call *c, const fa_ref_rows *r, int64_t k, const fa_ref_scratch *w);
/* The LSE of rows that see no key is their sink. */
void fa_bound_sink_rows(const fa_ref_call *c, const fa_ref_rows *r, const fa_ref_scratch *w);

/* Bounds of a query block, whose values are in c->out. w holds the block's q and the head's k, v. */
void fa_bound_forward_block(fa_ref_call *c, const fa_ref_rows *r, fa_ref_scratch *w, fa_bound_scratch *b);

#endif
