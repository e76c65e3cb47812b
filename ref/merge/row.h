/* One row of a merge: the parts that it is made of. Everything is in natural logarithms, whatever the case's base. */
#ifndef FA_REF_MERGE_ROW_H
#define FA_REF_MERGE_ROW_H

#include "ref/engine/call.h"

typedef struct fa_merge_row {
  const fa_ref_call *c;
  const fa_ref_sequence *e;
  int64_t h, i;
  int64_t n;         /* parts */
  int64_t width;     /* of O */
  double unit;       /* ln 2 in base 2, else 1: a given LSE times it is natural */
  double *lse;       /* [n]: -inf where the part is empty */
  double *weight;    /* [n]: exp(lse - total), 0 where empty; the sum is 1 unless all are */
  double *eps;       /* [n]: how far a weight before it is normalised may be off, relative; with bounds */
  double max, total; /* of the LSEs; of their exponentials, -inf: all parts are empty */
  double cascade;    /* what merging two at a time costs an LSE */
  double sum_eps;    /* how far the sum of weights may be off, relative */
  double *o;         /* [n][width]: 0 where empty */
} fa_merge_row;

/* Room for any row of the call. */
fa_status fa_merge_row_init(fa_merge_row *r, const fa_ref_call *c, fa_error *err);
void fa_merge_row_free(fa_merge_row *r);
/* Loads row i of head h, and weighs its parts. */
void fa_merge_row_load(fa_merge_row *r, const fa_ref_sequence *e, int64_t h, int64_t i);

/* One part as a tensor without the axis of parts. */
fa_tensor fa_merge_part(const fa_tensor *t, int64_t part);
/* Element offset of the row in a want that is [part]..., of one row-major part of so many elements. */
static inline int64_t fa_merge_part_index(int64_t part, int64_t n_part, int64_t index) {
  return part * n_part + index;
}

/* Calls visit for every row of the call. */
typedef void fa_merge_visit(fa_merge_row *r, void *context);
fa_status fa_merge_for_rows(const fa_ref_call *c, fa_merge_visit *visit, void *context, fa_error *err);

/* ---- bounds.c; with a profile only ---- */

/* Smallest normal f32: hardware may flush what is below it. */
#define FA_MERGE_FLUSHED 0x1p-126
/* Unit roundoff of f32. */
#define FA_MERGE_U 0x1p-24

/* Sets eps, cascade and sum_eps. */
void fa_merge_row_errors(fa_merge_row *r);
/* The error of the row's LSE, in the case's base, and of element x of its O, before they are rounded. */
double fa_merge_lse_error(const fa_merge_row *r);
double fa_merge_o_error(const fa_merge_row *r, int64_t x, double value);
/* The relative error of a part's weight taken from an LSE that may be off by lse_bound (natural). */
double fa_merge_weight_error(const fa_merge_row *r, int64_t part, double lse_bound);

#endif
