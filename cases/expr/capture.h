/* What score_mod and mask_mod may read besides the scores: the buffers that they capture. */
#ifndef FA_CASES_EXPR_CAPTURE_H
#define FA_CASES_EXPR_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#define FA_MAX_CAPTURES 8
#define FA_MAX_CAPTURE_RANK 4

/* A buffer captured by score_mod or mask_mod: f32, or i32 with values 0 .. below - 1. */
typedef struct fa_capture {
  char name[64];
  int rank;
  int64_t shape[4];
  bool grad;     /* f32: its gradient is wanted (it exists if score_mod reads the buffer) */
  char fill[32]; /* f32 */
  bool is_int;
  bool sorted; /* i32: ascending along the last axis, like document numbers; otherwise independent draws */
  int64_t below;
} fa_capture;

#endif
