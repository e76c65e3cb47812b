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

/* Size of this kernel's parameters, or 0: unknown name. */
size_t plan_params_bytes(const char *kernel);

/* One line per 8 bytes: the value in hex, the memory that it points into with the offset ("q+0"), or "ptr"
 * for any other address. Padding, the unused part of a tensor map and the number of a tile counter are
 * printed as zeros, because they differ between runs. The kernel must be known. */
void plan_params_print(FILE *out, const char *kernel, const void *params, const plan_places *places);

#endif
