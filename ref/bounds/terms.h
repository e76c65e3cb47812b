/* Error bounds of the reference's values: docs/reference/bounds.md.
 *
 * Everything here is float32 and nonnegative. Operands are scaled by powers of two to at most about 1, and
 * those that get squared are kept above a least size, so that no square vanishes: a bound may come out a
 * little too large, never too small. */
#ifndef FA_REF_BOUNDS_TERMS_H
#define FA_REF_BOUNDS_TERMS_H

#include "ref/math/rows.h"
#include "ref/tiles/mask.h"
#include "ref/tiles/scratch.h"

/* Smallest f32: what underflow can cost one operation. Units far above it, so that it stays representable. */
#define FA_F32_TINY 0x1p-149
#define FA_LEAST_UNIT 0x1p-89

/* What the sums of n terms lose that bounds are made of: they are taken in f32, in units of the largest
 * operands, and may be subnormal there where what they stand for is not. */
static inline double fa_bound_lost(int64_t n, double unit) {
  return 2 * (double)n * FA_F32_TINY * unit;
}

/* How far the logits of a row are apart: sum of the distances of neighbours that are visible, each at most
 * `most`, so that a few outliers do not count as spread. */
typedef struct fa_bound_spread {
  double sum, last, most;
  int64_t n;
} fa_bound_spread;

/* One thread's memory for bounds. Arrays named after a matrix hold its absolute values in units of its scale;
 * with a 2, their squares. */
typedef struct fa_bound_scratch {
  const fa_ref_sequence *e; /* whose head k .. v2 hold; NULL: nobody's */
  int64_t hk;
  double unit_q, unit_do, unit_dlse; /* of the call: powers of two >= the largest magnitude */
  double unit_k, unit_v;             /* of the head */
  double unit_ds;                    /* of dS, for the head */
  float *k, *k2, *v, *v2;            /* [sk, D], [sk, Dv] */
  float *q, *q2, *d_o, *d_o2;        /* [FA_BLOCK_M, D | Dv] */
  float *e_logit, *d, *w, *w2, *we;  /* tiles [FA_BLOCK_M, FA_BLOCK_N] */
  float *g, *g2, *ge, *cap, *cap_err;
  float *o1, *o2, *oe;                      /* [FA_BLOCK_M, Dv]: worst case, squares, f32 errors */
  float *dq1, *dq2, *dqe;                   /* [FA_BLOCK_M, D] */
  float *dk1, *dk2, *dke, *dv1, *dv2, *dve; /* [sk, D], [sk, Dv] */
  float *dk_terms;                          /* [sk] */
  float *dv_exact;                          /* [sk]: squares of P near 1, which w2 leaves out */
  float *terms, *exact;                     /* [FA_BLOCK_N] */
  float *max_k, *max_v;                     /* [sk]: largest magnitude of a key or value row */
  float *row_k, *row_q;                     /* rotary: [sk, D], [FA_BLOCK_M, D] rounding uncertainty */
  double *x;                                /* [FA_BLOCK_N] */
  double steepest; /* of all pairs so far: the most that dS is multiplied by, back through the score chain */
  bool plain;      /* dS before softcap's derivative and any rounding */
  float row_e_delta[FA_BLOCK_M]; /* error of delta, in unit_ds */
  double row_extra[FA_BLOCK_M];  /* in the row's exponents */
  double row_terms[FA_BLOCK_M];  /* sum_j P (Z |dP| + |delta|), in unit_ds */
  double row_least[FA_BLOCK_M];  /* fa_bound_least_spread; 0: roundings do not repeat */
  fa_bound_spread row_spread[FA_BLOCK_M];
  char *arena;
} fa_bound_scratch;
fa_status fa_bound_scratch_init(fa_bound_scratch *s, const fa_ref_call *c, bool backward, fa_error *err);
void fa_bound_scratch_free(fa_bound_scratch *s);

/* ---- ref/bounds/terms.c ---- */

/* Relative error of an n-term sum of products in the kernel's GEMM, of its absolute values' sum. */
double fa_bound_gamma(const fa_ref_call *c, int64_t n);
/* The same for a plain f32 sum. */
double fa_bound_sum(const fa_ref_call *c, int64_t n);
/* How often the running maximum of a row with n visible keys may change. */
double fa_bound_changes(const fa_ref_call *c, int64_t n);

/* ---- ref/bounds/backward.c ---- */

/* After the last head: what only the whole call's steepest slope can say. */
void fa_bound_backward_derivative(const fa_ref_call *c, const fa_bound_scratch *b, int n_threads);

/* ---- ref/bounds/alike.c ---- */

/* most: what a distance counts at most. */
void fa_bound_spread_begin(fa_bound_spread *s, double most);
/* n more logits of the row, -inf where hidden. */
void fa_bound_spread_add(fa_bound_spread *s, const double *x, int64_t n);
/* The standard deviation that a row of n logits needs for its roundings, of relative size u, to be
 * independent of each other; by_keys: and of what they are multiplied by, which is k. */
double fa_bound_least_spread(const fa_ref_call *c, double u, int64_t n, bool by_keys);
bool fa_bound_is_alike(const fa_bound_spread *s, double least);

/* ---- ref/bounds/operands.c ---- */

/* Makes k .. v2 hold the head that w holds. */
void fa_bound_head(fa_bound_scratch *b, const fa_ref_call *c, const fa_ref_scratch *w, bool backward);
/* to = |from| / unit, to2 = its square (NULL: not wanted). */
void fa_bound_scale(const double *from, int64_t n, double unit, float *to, float *to2);

/* ---- ref/bounds/logits.c ---- */

/* b->e_logit = absolute error of the scores' tile, before exp. Two steps around fa_ref_score_tile: s holds
 * scale * q.k in the first, x the final scores in the second. */
void fa_bound_logits_begin(fa_bound_scratch *b, const fa_ref_call *c, const fa_ref_rows *r, int64_t j0,
                           int64_t n, const double *s);
void fa_bound_logits_end(fa_bound_scratch *b, const fa_ref_call *c, const fa_ref_rows *r, int64_t j0,
                         int64_t n, const double *x, const double *th, fa_ref_mod_scratch *mod);
/* One row: e (absolute error of x) becomes the relative error of exp(x - c), c being m or L. extra: what else
 * is in the exponent. *most: the largest. Returns false if the exponential's size is lost (an error of order
 * 1). */
bool fa_bound_exponent(const fa_ref_call *c, const fa_rows *rows, float *e, const double *x, int64_t n,
                       double shift, bool from_lse, double extra, float *most);

/* After a query block's values stand in c->out: its bounds. w holds the block's q and the head's k, v. */
void fa_bound_forward_block(fa_ref_call *c, const fa_ref_rows *r, fa_ref_scratch *w, fa_bound_scratch *b);

#endif
