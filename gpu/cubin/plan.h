/* A launch plan: which kernels of a compiled module a call launches, how, and with which parameters. Data only: nothing of
 * the candidate runs on the host. docs/reference/cubin.md has its keys. */
#ifndef FA_GPU_CUBIN_PLAN_H
#define FA_GPU_CUBIN_PLAN_H

#include "gpu/contract/hello.h"
#include "gpu/cubin/expr.h"

#include <limits.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fa_cubin_kind {
  FA_CUBIN_TENSOR,    /* the address of element 0; NULL if the call has no such tensor */
  FA_CUBIN_WORKSPACE, /* an address in the workspace, so many bytes from its begin */
  FA_CUBIN_INTEGER,
  FA_CUBIN_REAL
} fa_cubin_kind;

typedef struct fa_cubin_param {
  fa_cubin_kind kind;
  int bytes;         /* 4 or 8 */
  int name;          /* of a tensor; of a real, or -1 */
  double number;     /* a real without a name */
  fa_size_expr expr; /* an integer, an offset */
} fa_cubin_param;

enum { FA_CUBIN_LAUNCHES = 16, FA_CUBIN_PARAMS = 64 };

typedef struct fa_cubin_launch {
  char kernel[256];
  unsigned pass;         /* fa_pass */
  fa_size_expr when;     /* 0: this launch is left out */
  fa_size_expr grid[3];  /* a 0: nothing to do, and it is left out */
  fa_size_expr block[3]; /* threads */
  fa_size_expr cluster[3];
  fa_size_expr shared; /* bytes of dynamic shared memory */
  int n_params;
  fa_cubin_param *param;
} fa_cubin_launch;

/* Zeroed: empty. */
typedef struct fa_cubin_plan {
  char *hello_text; /* as in the file, or "{}" */
  fa_hello hello;   /* its passes are those that launches have */
  fa_size_expr workspace;
  int n_launches;
  fa_cubin_launch launch[FA_CUBIN_LAUNCHES];
  char *module; /* the module's bytes, with a NUL behind them */
  size_t module_bytes;
} fa_cubin_plan;

/* Reads the plan and the module that it names. FA_ERR_INPUT: "plan.json: launches[0].grid[1]: column 3: ...". */
fa_status fa_cubin_plan_load(const char *path, fa_cubin_plan *out, fa_error *err);
void fa_cubin_plan_free(fa_cubin_plan *x);

/* Every key of a plan, of a launch, and every kind of parameter; NULL behind the last. */
const char *fa_cubin_plan_key(int i);
const char *fa_cubin_launch_key(int i);
const char *fa_cubin_param_key(int i);

#ifdef __cplusplus
}
#endif

#endif
