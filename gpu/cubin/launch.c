#include "gpu/cubin/launch.h"

#include "cases/tensors/table.h"

#include <string.h>

/* Workspaces beyond this are taken for a mistake. */
#define MAX_WORKSPACE ((int64_t)1 << 40)

static fa_status value_of(const fa_cubin_sizes *sizes, const fa_size_expr *x, const char *what, int64_t least,
                          int64_t most, int64_t *out, fa_error *err) {
  const fa_status status = fa_size_evaluate(x, fa_cubin_size_value, sizes, out, err);
  if (status != FA_OK) return fa_error_prefix(err, "%s", what), status;
  if (*out >= least && *out <= most) return FA_OK;
  return fa_fail(err, FA_ERR_INPUT, "%s is %lld, and may be from %lld to %lld", what, (long long)*out,
                 (long long)least, (long long)most);
}

fa_status fa_cubin_workspace(const fa_cubin_plan *plan, const fa_cubin_sizes *sizes, size_t *bytes,
                             fa_error *err) {
  int64_t n = 0;
  const fa_status status = value_of(sizes, &plan->workspace, "workspace", 0, MAX_WORKSPACE, &n, err);
  *bytes = (size_t)n;
  return status;
}

/* ---- parameters ---- */

/* As many parameters as a kernel may read, whatever the plan says: those that the plan lacks are zeros. */
enum { SLOTS = 2 * FA_CUBIN_PARAMS, SLOT_BYTES = 16 };

typedef struct arguments {
  char slot[FA_CUBIN_PARAMS][SLOT_BYTES];
  char zeros[4096];
  void *pointer[SLOTS];
} arguments;

/* The bytes of a number as the kernel reads them. */
static void store(const fa_cubin_param *p, int64_t whole, double real, char *to) {
  const int32_t narrow = (int32_t)whole;
  const float single = (float)real;
  if (p->kind == FA_CUBIN_REAL)
    memcpy(to, p->bytes == 4 ? (const void *)&single : (const void *)&real, (size_t)p->bytes);
  else
    memcpy(to, p->bytes == 4 ? (const void *)&narrow : (const void *)&whole, (size_t)p->bytes);
}

static fa_status set_param(const fa_cubin_call *c, const fa_cubin_param *p, char *to, fa_error *err) {
  int64_t whole = 0;
  double real = p->number;
  fa_status status = FA_OK;
  switch (p->kind) {
  case FA_CUBIN_TENSOR:
    whole = (int64_t)(uintptr_t)c->sizes.tensors->t[p->name].data;
    break;
  case FA_CUBIN_WORKSPACE:
    status = value_of(&c->sizes, &p->expr, "offset in the workspace", 0, MAX_WORKSPACE, &whole, err);
    whole += (int64_t)(uintptr_t)c->workspace;
    break;
  case FA_CUBIN_REAL:
    if (p->name >= 0) real = fa_cubin_real_value(c->sizes.problem, p->name);
    break;
  default:
    status = value_of(&c->sizes, &p->expr, "value", p->bytes == 4 ? INT32_MIN : INT64_MIN,
                      p->bytes == 4 ? UINT32_MAX : INT64_MAX, &whole, err);
  }
  store(p, whole, real, to);
  return status;
}

static fa_status set_arguments(const fa_cubin_call *c, const fa_cubin_launch *l, arguments *a,
                               fa_error *err) {
  memset(a, 0, sizeof *a);
  for (int i = 0; i < SLOTS; ++i) a->pointer[i] = i < l->n_params ? a->slot[i] : a->zeros;
  for (int i = 0; i < l->n_params; ++i) {
    const fa_status status = set_param(c, &l->param[i], a->slot[i], err);
    if (status != FA_OK) return fa_error_prefix(err, "params[%d]", i), status;
  }
  return FA_OK;
}

/* ---- one launch ---- */

typedef struct geometry {
  int64_t grid[3], block[3], cluster[3], shared;
} geometry;

static fa_status evaluate_dims(const fa_cubin_call *c, const fa_size_expr x[3], const char *what,
                               const int64_t most[3], int64_t least, int64_t out[3], fa_error *err) {
  fa_status status = FA_OK;
  for (int i = 0; status == FA_OK && i < 3; ++i)
    status = value_of(&c->sizes, &x[i], what, least, most[i], &out[i], err);
  return status;
}

static fa_status evaluate(const fa_cubin_call *c, const fa_cubin_launch *l, geometry *g, fa_error *err) {
  static const int64_t blocks[3] = {INT32_MAX, 65535, 65535}, threads[3] = {1024, 1024, 64},
                       clusters[3] = {16, 16, 16};
  fa_status status = evaluate_dims(c, l->grid, "grid", blocks, 0, g->grid, err);
  if (status == FA_OK) status = evaluate_dims(c, l->block, "block", threads, 1, g->block, err);
  if (status == FA_OK) status = evaluate_dims(c, l->cluster, "cluster", clusters, 1, g->cluster, err);
  if (status == FA_OK) status = value_of(&c->sizes, &l->shared, "shared", 0, 1 << 20, &g->shared, err);
  return status;
}

static fa_status driver_failed(fa_cubin_call *c, CUresult code, fa_error *err) {
  c->code = code;
  return code == CUDA_SUCCESS ? FA_OK : fa_cuda_fail(c->driver, code, c->what, err);
}

static fa_status issue(fa_cubin_call *c, CUkernel kernel, const geometry *g, arguments *a, fa_error *err) {
  CUlaunchAttribute cluster = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
  cluster.value.clusterDim.x = (unsigned)g->cluster[0];
  cluster.value.clusterDim.y = (unsigned)g->cluster[1];
  cluster.value.clusterDim.z = (unsigned)g->cluster[2];
  const bool has_cluster = g->cluster[0] * g->cluster[1] * g->cluster[2] > 1;
  const CUlaunchConfig config = {.gridDimX = (unsigned)g->grid[0],
                                 .gridDimY = (unsigned)g->grid[1],
                                 .gridDimZ = (unsigned)g->grid[2],
                                 .blockDimX = (unsigned)g->block[0],
                                 .blockDimY = (unsigned)g->block[1],
                                 .blockDimZ = (unsigned)g->block[2],
                                 .sharedMemBytes = (unsigned)g->shared,
                                 .attrs = &cluster,
                                 .numAttrs = has_cluster};
  if (g->shared > 48 * 1024) {
    const CUresult code = c->driver->cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                          (int)g->shared, kernel, c->device);
    if (code != CUDA_SUCCESS) return driver_failed(c, code, err);
  }
  return driver_failed(c, c->driver->cuLaunchKernelEx(&config, (CUfunction)kernel, a->pointer, NULL), err);
}

static fa_status launch_one(fa_cubin_call *c, int i, fa_error *err) {
  const fa_cubin_launch *l = &c->plan->launch[i];
  arguments a;
  geometry g;
  int64_t when = 0;
  fa_status status = value_of(&c->sizes, &l->when, "when", INT64_MIN, INT64_MAX, &when, err);
  if (status != FA_OK || when == 0) return status;
  status = evaluate(c, l, &g, err);
  if (status != FA_OK || g.grid[0] * g.grid[1] * g.grid[2] == 0) return status;
  c->what = l->kernel;
  status = set_arguments(c, l, &a, err);
  return status == FA_OK ? issue(c, c->kernel[i], &g, &a, err) : status;
}

fa_status fa_cubin_launch_all(fa_cubin_call *c, fa_error *err) {
  fa_status status = FA_OK;
  for (int i = 0; status == FA_OK && i < c->plan->n_launches; ++i) {
    if (!(c->plan->launch[i].pass & c->passes)) continue;
    status = launch_one(c, i, err);
    if (status != FA_OK) fa_error_prefix(err, "launches[%d]", i);
  }
  return status;
}
