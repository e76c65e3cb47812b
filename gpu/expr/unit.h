/* The translation unit of a flex kernel on a device: the expressions of a call, as gpu/kernels/mods/call.cuh
 * expects them, followed by the kernel's own source. The text depends only on fa_flex_unit, so that compiled
 * code is found on disk again; it contains no names of buffers and none of the spaces in expressions. */
#ifndef FA_GPU_EXPR_UNIT_H
#define FA_GPU_EXPR_UNIT_H

#include "gpu/expr/emit.h"
#include "gpu/expr/program.h"
#include "gpu/kernels/params/traits.h"
#include "gpu/kernels/registry/kernel.h"

typedef struct fa_flex_unit {
  const char *source;             /* "flex/forward": gpu/kernels/flex/forward.cu */
  const fa_flex_program *program; /* NULL: no expressions, as in a call with only block lists */
  bool has_score;                 /* calls score_mod, if there is one */
  bool drops;                     /* the call has dropout */
  bool has_slope;                 /* calls its derivatives; gradients of these f32 buffers are wanted: */
  bool wanted[FA_FLEX_CAPTURED];
  fa_expr_speed speed; /* of score_mod */
  unsigned lacks;      /* fa_trait: what the kernel needs no code for, because no call of this unit has it */
} fa_flex_unit;

/* Everything that the text depends on, as bytes; malloc'd; NULL: out of memory. Much cheaper than the text,
 * for finding existing kernels. */
char *fa_flex_unit_key(const fa_flex_unit *u, size_t *n_bytes);

/* Malloc'd; NULL: out of memory. kernel: the text of the source. */
char *fa_flex_unit_text(const fa_flex_unit *u, const char *kernel);

#endif
