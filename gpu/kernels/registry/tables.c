#include "gpu/kernels/registry/tables.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

static const fa_kernel_table *const tables[] = {
#define FA_UNIT(folder, file) &fa_kernels_##folder##_##file,
#define FA_UNIT_BY_TYPE FA_UNIT
#define FA_UNIT_OF_CALLS FA_UNIT
#include "gpu/kernels/registry/units.def"
};
enum { N_TABLES = sizeof tables / sizeof *tables };

const fa_kernel *fa_kernel_at(int i) {
  for (int t = 0; t < N_TABLES; ++t) {
    if (i < tables[t]->n) return &tables[t]->v[i];
    i -= tables[t]->n;
  }
  return NULL;
}

const fa_kernel *fa_kernel_find(const char *name) {
  const fa_kernel *k;
  for (int i = 0; (k = fa_kernel_at(i)) != NULL; ++i)
    if (strcmp(k->name, name) == 0) return k;
  return NULL;
}

/* Flex kernels are compiled for every call, whatever the device's compiler is used for beside that. */
static bool is_to_be_had(const fa_kernel *k, const fa_kernel_device *device) {
  if (device && k->shared_bytes > device->max_shared_bytes) return false;
  return k->recipe.is_ahead_of_time || k->ability.flex || (device && device->compiles);
}

const fa_kernel *fa_kernel_first(const fa_kernel_table *t, fa_kernel_step step, const fa_kernel_ability *wanted,
                                 const fa_kernel_device *device) {
  for (const fa_kernel *k = t->v; k < t->v + t->n; ++k)
    if (k->step == step && fa_kernel_is_able(&k->ability, wanted) && is_to_be_had(k, device)) return k;
  return NULL;
}

const fa_kernel *fa_kernel_of_type(const fa_kernel_table *t, fa_kernel_step step, fa_dtype dtype) {
  for (const fa_kernel *k = t->v; k < t->v + t->n; ++k)
    if (k->step == step && k->dtype == dtype) return k;
  return NULL;
}

const fa_kernel *fa_kernel_narrowest(const fa_kernel_table *t, fa_dtype dtype, int64_t head_dim_v,
                                     const fa_kernel_device *device) {
  const fa_kernel *widest = NULL;
  for (const fa_kernel *k = t->v; k < t->v + t->n; ++k) {
    if (k->dtype != dtype || k->ability.head_dim < INT_MAX) continue;
    if (device && k->shared_bytes > device->max_shared_bytes) continue;
    widest = k;
    if (head_dim_v <= k->block_cols) break;
  }
  return widest;
}
