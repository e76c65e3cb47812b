/* Sums of products in few bits: a mistake of the reference (fa_ref_coarse in ref/engine/twist.h). */
#ifndef FA_REF_ATTENTION_COARSE_H
#define FA_REF_ATTENTION_COARSE_H

#include "ref/attention/astray.h"
#include "ref/math/blas.h"

/* The call's mistake of this kind; NULL: none. */
const fa_ref_coarse *fa_ref_coarse_of(const fa_ref_call *c);
/* The keys of a tile: FA_BLOCK_N where the reference may choose. */
int64_t fa_ref_coarse_keys(const fa_ref_call *c);
/* Lets the keys that the rows see begin where a tile does. */
void fa_ref_coarse_align(const fa_ref_call *c, fa_ref_rows *r);

/* A product as fa_blas_dgemm has it, with beta 1. */
typedef struct fa_ref_product {
  fa_blas_op ta, tb;
  int m, n, k;
  double alpha;
  const double *a;
  int lda;
  const double *b;
  int ldb;
  double *c;
  int ldc;
} fa_ref_product;

/* C += alpha A B, the k of them in tiles of x->tile, if it has one, and rounded as x says. What is rounded lacks alpha,
 * which kernels apply last. part: m x n numbers of memory. */
void fa_ref_coarse_add(const fa_ref_coarse *x, const fa_ref_product *p, double *part);
/* Q K^T or dO V^T: C = alpha A B, rounded at the end, or after x->within products. */
void fa_ref_coarse_scores(const fa_ref_coarse *x, const fa_ref_product *p, double *part);

#endif
