/* What score_mod and mask_mod may read besides the scores: the buffers that they capture. */
#ifndef FA_CASES_EXPR_CAPTURE_H
#define FA_CASES_EXPR_CAPTURE_H

#include "cases/base/dtype.h"

#include <stdbool.h>
#include <stdint.h>

#define FA_MAX_CAPTURES 32
#define FA_MAX_CAPTURE_RANK 4
/* Below this are the numbers of an i64 buffer: as many digits as JSON is written with. */
#define FA_MAX_CAPTURE_I64 ((int64_t)1 << 48)

/* A buffer captured by score_mod or mask_mod. */
typedef struct fa_capture {
  char name[64];
  int rank;
  int64_t shape[FA_MAX_CAPTURE_RANK];
  fa_dtype dtype;                      /* f32, f16, bf16, i32, i64 or bool */
  int n_strides;                       /* 0: row-major and dense; otherwise rank */
  int64_t stride[FA_MAX_CAPTURE_RANK]; /* in elements; 0: the axis repeats one element */
  bool grad;     /* floats: its gradient is wanted (it exists if score_mod reads the buffer) */
  char fill[32]; /* floats */
  bool sorted;   /* ints: ascending along the last axis, like document numbers; otherwise independent draws */
  int64_t below; /* ints: 0 .. below - 1 */
  double share;  /* bool: of elements that are true */
} fa_capture;

/* What a buffer's type may be. */
bool fa_dtype_is_capture(fa_dtype t);
static inline bool fa_capture_is_int(const fa_capture *c) {
  return c->dtype == FA_I32 || c->dtype == FA_I64;
}
static inline bool fa_capture_is_float(const fa_capture *c) {
  return fa_dtype_is_float(c->dtype);
}
/* Strides in elements, also where the case says nothing of them. */
void fa_capture_strides(const fa_capture *c, int64_t stride[FA_MAX_CAPTURE_RANK]);
/* Elements from the first to behind the last in memory; INT64_MAX: too many to count. */
int64_t fa_capture_span(const fa_capture *c);
/* False: two elements may share memory though no stride is 0. */
bool fa_capture_is_distinct(const fa_capture *c);

#endif
