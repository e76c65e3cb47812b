#include "fuzz/inputs/plan_faults.h"

#include <string.h>

/* CUDA C Programming Guide, "Technical Specifications per Compute Capability", and the driver's cuTensorMapEncodeTiled. */
#define MAX_GRID_X 0x7fffffffu
#define MAX_GRID_YZ 65535u
#define MAX_THREADS 1024u
#define MAX_CLUSTER 8u      /* on every device that has clusters */
#define MAX_ANY_CLUSTER 16u /* of kernels whose module asks for more, on sm_90 */
#define MAX_SHARED 232448u
#define MAX_PARAMS 4096u
#define MAX_BOX 256u
#define MAX_MAP_SIZE ((uint64_t)1 << 32)
#define MAX_MAP_STRIDE ((uint64_t)1 << 40)
#define MAX_WORKSPACE ((size_t)1 << 62)

#define MUST(holds, ...)                                                                                     \
  do {                                                                                                       \
    if (!(holds)) return fa_fail(why, FA_ERR_INPUT, __VA_ARGS__) == FA_OK;                                   \
  } while (0)

static bool box_is_sound(const fa_tensor_map *map, const char *who, fa_error *why) {
  fa_tensor_box x;
  memcpy(&x, map, sizeof x);
  MUST(x.base && (uintptr_t)x.base % 16 == 0, "%s: a map begins at %p", who, x.base);
  for (int i = 0; i < 4; ++i) {
    MUST(x.size[i] >= 1 && x.size[i] <= MAX_MAP_SIZE, "%s: a map has %llu elements along axis %d", who,
         (unsigned long long)x.size[i], i);
    MUST(x.box[i] >= 1 && x.box[i] <= MAX_BOX, "%s: a map's box has %u elements along axis %d", who, x.box[i],
         i);
  }
  for (int i = 0; i < 3; ++i)
    MUST(x.bytes[i] % 16 == 0 && x.bytes[i] < MAX_MAP_STRIDE, "%s: a map's axis %d steps over %llu bytes",
         who, i + 1, (unsigned long long)x.bytes[i]);
  MUST((unsigned)x.swizzle <= FA_SWIZZLE_32, "%s: a map's swizzle is %d", who, x.swizzle);
  return true;
}

static bool params_are_sound(const fa_plan *x, const fa_launch *l, const fa_kernel *k, fa_error *why) {
  const unsigned char *at = l->params, *end = x->params + x->params_bytes;
  MUST(x->params_bytes <= sizeof x->params, "%zu bytes of parameters", x->params_bytes);
  MUST(at >= x->params && at <= end && (size_t)(end - at) >= k->params_bytes,
       "%s: its parameters are not in the plan", k->name);
  MUST(k->params_bytes <= MAX_PARAMS, "%s: %zu bytes of parameters", k->name, k->params_bytes);
  MUST((uintptr_t)at % 64 == 0, "%s: its parameters lie at %p", k->name, (const void *)at);
  MUST(l->n_maps == k->n_maps, "%s: %d maps of %d", k->name, l->n_maps, k->n_maps);
  const fa_tensor_map *maps = l->params;
  for (int i = 0; i < l->n_maps; ++i)
    if (!box_is_sound(&maps[i], k->name, why)) return false;
  return true;
}

static bool launch_is_sound(const fa_plan *x, const fa_launch *l, const fa_kernel_device *device,
                            fa_error *why) {
  const char *name = l->kernel.name ? l->kernel.name : "";
  const fa_kernel *k = fa_kernel_find(name);
  const size_t shared = device ? device->max_shared_bytes : MAX_SHARED;
  MUST(k, "there is no kernel \"%s\"", name);
  MUST(l->grid[0] >= 1 && l->grid[0] <= MAX_GRID_X, "%s: grid.x = %u", name, l->grid[0]);
  for (int i = 1; i < 3; ++i)
    MUST(l->grid[i] >= 1 && l->grid[i] <= MAX_GRID_YZ, "%s: grid[%d] = %u", name, i, l->grid[i]);
  MUST(l->n_threads >= 1 && l->n_threads <= MAX_THREADS && l->n_threads % 32 == 0, "%s: %u threads", name,
       l->n_threads);
  MUST(l->shared_bytes <= shared, "%s: %zu bytes of shared memory of %zu", name, l->shared_bytes, shared);
  const unsigned clusters = l->kernel.recipe.any_cluster ? MAX_ANY_CLUSTER : MAX_CLUSTER;
  MUST(l->cluster <= clusters && (l->cluster < 2 || l->grid[0] % l->cluster == 0),
       "%s: %u blocks in clusters of %u", name, l->grid[0], l->cluster);
  MUST(l->writes &&
           !(l->writes & ~(FA_WRITES(FA_T_COUNT) - 1) & ~(FA_WRITES_WORKSPACE | FA_WRITES_DROPOUT_USED)),
       "%s: it writes %llx", name, (unsigned long long)l->writes);
  return params_are_sound(x, l, k, why);
}

bool fa_plan_is_sound(const fa_plan *x, const fa_kernel_device *device, fa_error *why) {
  MUST(x->n_launches >= 0 && x->n_launches <= FA_PLAN_LAUNCHES, "%d launches", x->n_launches);
  MUST(x->workspace_bytes <= MAX_WORKSPACE, "a workspace of %zu bytes", x->workspace_bytes);
  MUST(x->n_splits >= 1, "%d splits", x->n_splits);
  for (int i = 0; i < x->n_launches; ++i)
    if (!launch_is_sound(x, &x->launch[i], device, why)) return false;
  return true;
}

/* ---- two plans ---- */

static bool launches_are_alike(const fa_launch *x, const fa_launch *y, fa_error *why) {
  const char *name = x->kernel.name;
  MUST(strcmp(name, y->kernel.name) == 0, "%s, then %s", name, y->kernel.name);
  MUST(memcmp(x->grid, y->grid, sizeof x->grid) == 0 && x->n_threads == y->n_threads &&
           x->cluster == y->cluster && x->shared_bytes == y->shared_bytes && x->writes == y->writes &&
           x->overlaps == y->overlaps && x->adds_in_order == y->adds_in_order && x->mods == y->mods,
       "%s is launched differently for another workspace", name);
  return true;
}

/* Addresses are on 8 bytes in every struct of parameters. */
static bool words_are_alike(const fa_plan *x, const char *x_workspace, const fa_plan *y,
                            const char *y_workspace, const fa_launch *l, fa_error *why) {
  const uint64_t apart = (uint64_t)(uintptr_t)y_workspace - (uint64_t)(uintptr_t)x_workspace;
  const size_t begin = (size_t)((const unsigned char *)l->params - x->params);
  const size_t end = begin + fa_kernel_find(l->kernel.name)->params_bytes;
  for (size_t at = begin; at + 8 <= end; at += 8) {
    uint64_t a, b;
    memcpy(&a, x->params + at, 8);
    memcpy(&b, y->params + at, 8);
    if (a == b) continue;
    MUST(b - a == apart, "%s: byte %zu of its parameters depends on where the workspace lies", l->kernel.name,
         at - begin);
    const uint64_t offset = a - (uint64_t)(uintptr_t)x_workspace;
    /* Calls without rows have parts of nothing. */
    MUST(offset < x->workspace_bytes || x->workspace_bytes + offset == 0,
         "%s: byte %zu of its parameters is an address %llu bytes into a workspace of %zu", l->kernel.name,
         at - begin, (unsigned long long)offset, x->workspace_bytes);
  }
  return true;
}

bool fa_plans_are_alike(const fa_plan *x, const char *x_workspace, const fa_plan *y, const char *y_workspace,
                        fa_error *why) {
  MUST(x->workspace_bytes == y->workspace_bytes, "a workspace of %zu bytes, then of %zu", x->workspace_bytes,
       y->workspace_bytes);
  MUST(x->n_launches == y->n_launches && x->params_bytes == y->params_bytes, "%d launches, then %d",
       x->n_launches, y->n_launches);
  for (int i = 0; i < x->n_launches; ++i)
    if (!launches_are_alike(&x->launch[i], &y->launch[i], why) ||
        !words_are_alike(x, x_workspace, y, y_workspace, &x->launch[i], why))
      return false;
  return true;
}
