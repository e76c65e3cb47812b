/* The units of typical flex calls, for tests and measurements of compilers. */
#ifndef FA_TESTS_SUPPORT_FLEX_UNITS_H
#define FA_TESTS_SUPPORT_FLEX_UNITS_H

#include "gpu/modules/flex.h"
#include "gpu/plan/make.h"

typedef struct flex_units {
  fa_flex_program *program;
  fa_plan plan; /* which the others point into */
  fa_cuda_flex_wanted unit[FA_CUDA_FLEX_WANTED];
  int n;
} flex_units;

typedef struct flex_units_call {
  fa_dtype dtype;
  int head_dim;
  const char *score, *mask; /* NULL: none; buffers f32 slopes[4] and table[4, 9], i32 doc[256] */
  bool backward, hopper;
  int64_t rows; /* and keys; 0: 256, which are few */
} flex_units_call;

/* Those of a call's kernels that are compiled for its expressions, on a device with the shared memory of an
 * H100; blocks are from mask_mod if there is one. false: there is no plan, and *err says why. */
bool flex_units_of(const flex_units_call *call, flex_units *out, fa_error *err);
void flex_units_free(flex_units *u);

#endif
