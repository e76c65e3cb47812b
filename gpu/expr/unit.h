/* The translation unit of a flex kernel on a device: the kernel's own source behind the expressions of a
 * call, as gpu/kernels/mods/call.cuh wants them. The text depends on nothing but what fa_flex_unit has, so that code on
 * disk is found again; names of buffers and spaces in expressions do not stand in it. */
#ifndef FA_GPU_EXPR_UNIT_H
#define FA_GPU_EXPR_UNIT_H

#include "gpu/expr/emit.h"
#include "gpu/expr/program.h"
#include "gpu/kernels/registry/flash_forward.h"

typedef struct fa_flex_unit {
  const char *source;             /* "flex/forward": gpu/kernels/flex/forward.cu */
  const fa_flex_program *program; /* NULL: no expressions, as when a call has but block lists */
  bool has_score;                 /* score_mod is asked, if there is one */
  bool has_slope;                 /* and its derivatives; gradients of those f32 buffers are wanted: */
  bool wanted[FA_FLEX_CAPTURED];
  fa_expr_speed speed; /* of score_mod */
} fa_flex_unit;

/* What the text depends on, as bytes: malloc'd; NULL: out of memory. Costs little beside the text, for
 * finding kernels that there are. */
char *fa_flex_unit_key(const fa_flex_unit *u, size_t *n_bytes);

/* Malloc'd; NULL: out of memory. kernel: the text of the source. */
char *fa_flex_unit_text(const fa_flex_unit *u, const char *kernel);

#endif
