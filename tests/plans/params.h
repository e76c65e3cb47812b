/* Parameters of the kernels as text that is the same in every run. For tests/plans/dump.c. */
#ifndef FA_TESTS_PLANS_PARAMS_H
#define FA_TESTS_PLANS_PARAMS_H

#include "cases/tensors/set.h"

#include <stdio.h>

/* Memory that parameters may point into. */
typedef struct plan_place {
  const char *name, *begin;
  size_t bytes;
} plan_place;

typedef struct plan_places {
  plan_place v[FA_T_COUNT + 1]; /* tensors and the workspace */
  int n;
} plan_places;

/* The bytes of what this kernel takes, or 0: the name is not known. */
size_t plan_params_bytes(const char *kernel);

/* One line per 8 bytes: what stands there in hex, or the place that it points into and the offset ("q+0"),
 * or "ptr" for any other address. Padding, what a tensor's map has beyond its box, and the number of a
 * counter of tiles are printed as zeros: no two runs have the same there. The kernel is known. */
void plan_params_print(FILE *out, const char *kernel, const void *params, const plan_places *places);

#endif
