/* The backend cubin:PLAN.json: compiled kernels that a plan launches. Nothing of the candidate runs on the host, and its
 * kernels see the call's tensors in guarded memory, as those of the cuda backend do. */
#include "cases/tensors/guard.h"
#include "gpu/backends/exec_tensors.h"
#include "gpu/backends/plugin_backend.h"
#include "gpu/contract/lse.h"
#include "gpu/cubin/launch.h"
#include "gpu/cuda_backend/context.h"
#include "gpu/cuda_backend/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* open reads files only, so that this process may still fork; the first call that needs the device touches it. */
typedef struct cubin {
  fa_cubin_plan plan;
  char path[256];
  bool tried, lost;
  fa_status status; /* of opening the device */
  fa_error why_not;
  fa_cuda_context context;
  fa_cuda_arena arena;
  CUlibrary library; /* NULL: not loaded */
  CUkernel kernel[FA_CUBIN_LAUNCHES];
} cubin;

/* ---- opening ---- */

static void cubin_close(void *self) {
  cubin *x = self;
  const fa_cuda_driver *d = x->context.driver;
  if (d && !x->lost) {
    fa_cuda_arena_free(d, &x->arena);
    if (x->library) d->cuLibraryUnload(x->library);
    fa_cuda_context_close(&x->context);
  }
  fa_cubin_plan_free(&x->plan);
  free(x);
}

static fa_status cubin_open(const char *arg, void **self, fa_error *err) {
  *self = NULL;
  if (!arg || !*arg) return fa_fail(err, FA_ERR_INPUT, "backend cubin needs a launch plan: cubin:PLAN.json");
  cubin *x = calloc(1, sizeof *x);
  if (!x) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  snprintf(x->path, sizeof x->path, "%s", arg);
  const fa_status status = fa_cubin_plan_load(arg, &x->plan, err);
  if (status == FA_OK)
    *self = x;
  else
    free(x);
  return status;
}

static fa_status load_module(cubin *x, fa_error *err) {
  const fa_cuda_driver *d = x->context.driver;
  CUresult code = d->cuLibraryLoadData(&x->library, x->plan.module, NULL, NULL, 0, NULL, NULL, 0);
  if (code != CUDA_SUCCESS) return fa_cuda_fail(d, code, "loading its module", err);
  for (int i = 0; i < x->plan.n_launches; ++i) {
    const char *name = x->plan.launch[i].kernel;
    code = d->cuLibraryGetKernel(&x->kernel[i], x->library, name);
    if (code != CUDA_SUCCESS)
      return fa_cuda_fail(d, code, name, err), fa_error_prefix(err, "launches[%d]", i), FA_ERR_DEVICE;
  }
  return FA_OK;
}

static fa_status ensure_ready(cubin *x, fa_error *err) {
  if (!x->tried) {
    x->tried = true;
    x->status = fa_cuda_context_open_any(0, &x->context, &x->why_not);
    if (x->status == FA_OK) x->status = load_module(x, &x->why_not);
    if (x->status != FA_OK) fa_error_prefix(&x->why_not, "%s", x->path);
  }
  if (x->status != FA_OK && err) *err = x->why_not;
  return x->status;
}

static void cubin_describe(void *self, fa_backend_info *out) {
  cubin *x = self;
  memset(out, 0, sizeof *out);
  out->name = fa_backend_cubin.name;
  out->usable = ensure_ready(x, NULL) == FA_OK;
  if (!out->usable) {
    snprintf(out->why_not, sizeof out->why_not, "%s", x->why_not.text);
    return;
  }
  const fa_cuda_device *d = &x->context.device;
  snprintf(out->device, sizeof out->device, "%.90s, sm_%d%d", d->name, d->major, d->minor);
  snprintf(out->driver, sizeof out->driver, "CUDA %s", d->driver);
  snprintf(out->source, sizeof out->source, "%s", x->plan.hello.source);
}

/* ---- what it can do, and how ---- */

static unsigned cubin_supports(void *self, const fa_problem *p, char *reason, size_t reason_size) {
  const cubin *x = self;
  return fa_hello_passes(&x->plan.hello, p, reason, reason_size);
}

static void cubin_declare(void *self, const fa_problem *p, fa_declaration *out) {
  const cubin *x = self;
  fa_hello_declare(&x->plan.hello, p, out);
}

static void cubin_profile(void *self, const fa_problem *p, fa_profile *out) {
  fa_declaration d;
  cubin_declare(self, p, &d);
  *out = fa_declaration_profile(&d, p);
}

static void cubin_adopt(void *self, fa_dtype dtype, const fa_declaration *found) {
  cubin *x = self;
  fa_hello_adopt(&x->plan.hello, dtype, found);
}

static const char *cubin_hello(void *self) {
  const cubin *x = self;
  return x->plan.hello_text;
}

static bool cubin_spent(void *self) {
  return ((cubin *)self)->lost;
}

/* ---- a run ---- */

typedef struct run {
  cubin *x;
  const fa_problem *p;
  fa_tensors set; /* the call's, with the LSE as the plan declares it; owns nothing */
  unsigned passes;
  fa_outcome *out;
  CUresult code;
} run;

/* The launches that this call has, in order. */
static void name_kernels(run *r) {
  size_t used = 0;
  for (int i = 0; i < r->x->plan.n_launches; ++i) {
    const fa_cubin_launch *l = &r->x->plan.launch[i];
    if (!(l->pass & r->passes) || used >= sizeof r->out->kernel) continue;
    used += (size_t)snprintf(r->out->kernel + used, sizeof r->out->kernel - used, "%s%s", used ? " " : "",
                             l->kernel);
  }
}

static fa_status crash(run *r, const char *why) {
  r->out->state = FA_SUBJECT_CRASH;
  snprintf(r->out->text, sizeof r->out->text, "%s", why);
  return FA_OK;
}

static fa_status launch(run *r, const fa_cuda_tensors *device, fa_error *err) {
  cubin *x = r->x;
  fa_cubin_call call = {.driver = x->context.driver,
                        .device = x->context.device.device,
                        .plan = &x->plan,
                        .kernel = x->kernel,
                        .sizes = {r->p, &device->set, x->context.device.n_processors},
                        .workspace = fa_cuda_tensors_scratch(device),
                        .passes = r->passes};
  const fa_status status = fa_cubin_launch_all(&call, err);
  r->code = call.code;
  return status;
}

/* Copies to the device, launches, copies back, and waits once, at the end. */
static fa_status run_on_device(run *r, fa_error *err) {
  cubin *x = r->x;
  const fa_cuda_driver *d = x->context.driver;
  const fa_cubin_sizes sizes = {r->p, &r->set, x->context.device.n_processors};
  fa_cuda_tensors device;
  bool intact = true;
  size_t workspace = 0;
  if (fa_cubin_workspace(&x->plan, &sizes, &workspace, err) != FA_OK) return crash(r, err->text);
  fa_status status = fa_cuda_tensors_up(d, &x->arena, &r->set, workspace, &device, &r->code, err);
  if (status != FA_OK) return status;
  status = launch(r, &device, err);
  if (status == FA_OK) {
    status = fa_cuda_tensors_down(d, &device, r->out->kernel, &r->set, &intact, r->out->text,
                                  sizeof r->out->text, &r->code, err);
  } else { /* a plan that asks for what cannot be launched is the subject's fault */
    const CUresult ended = fa_cuda_tensors_wait(d, &device);
    status = crash(r, err->text);
    if (ended != CUDA_SUCCESS) r->code = ended;
  }
  if (!intact) r->out->state = FA_SUBJECT_OOB;
  fa_cuda_tensors_free(d, &device);
  return status;
}

/* Puts the LSE that the kernel writes in the place of the call's. */
static void set_lse(run *r, const fa_exec_tensors *list) {
  if (!list->own.t[FA_T_LSE].data) return;
  r->set.t[FA_T_LSE] = list->own.t[FA_T_LSE];
  r->set.buffer[FA_T_LSE] = list->own.buffer[FA_T_LSE];
  r->set.owner[FA_T_LSE] = FA_T_LSE;
}

static fa_status run_call(run *r, const fa_exec_tensors *list, const fa_contract *c, fa_tensors *t,
                          fa_error *err) {
  set_lse(r, list);
  const fa_status status = run_on_device(r, err);
  if (fa_cuda_is_kernels_fault(r->code)) {
    r->x->lost = true;
    return crash(r, err->text);
  }
  if (status != FA_OK || r->out->state != FA_SUBJECT_OK) return status;
  if (fa_tensors_guards_intact(&list->own, r->out->text, sizeof r->out->text))
    return fa_exec_tensors_take(list, r->p, c, t, err);
  r->out->state = FA_SUBJECT_OOB;
  return FA_OK;
}

static fa_status cubin_run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                           fa_outcome *out, fa_error *err) {
  cubin *x = self;
  fa_error own;
  fa_declaration d;
  fa_exec_tensors list;
  if (!err) err = &own;
  memset(out, 0, sizeof *out);
  run r = {.x = x, .p = p, .set = *t, .passes = opt->passes, .out = out};
  fa_status status = ensure_ready(x, err);
  if (status != FA_OK) return status == FA_ERR_UNSUPPORTED ? FA_ERR_DEVICE : status;
  if (x->lost)
    return fa_fail(err, FA_ERR_DEVICE, "a kernel of an earlier case took the device's context with it");
  name_kernels(&r);
  fa_hello_declare(&x->plan.hello, p, &d);
  if (opt->lse_as_declared) fa_contract_own_lse(&d.contract);
  status = fa_exec_tensors_make(p, t, &d.contract, opt->passes, false, &list, err);
  if (status != FA_OK) return status;
  status = run_call(&r, &list, &d.contract, t, err);
  fa_exec_tensors_free(&list);
  return status;
}

const fa_backend fa_backend_cubin = {
    .name = "cubin",
    .what = "cubin:PLAN.json, compiled kernels and a plan of how to launch them (docs/reference/cubin.md)",
    .open = cubin_open,
    .close = cubin_close,
    .describe = cubin_describe,
    .supports = cubin_supports,
    .profile = cubin_profile,
    .run = cubin_run,
    .declare = cubin_declare,
    .adopt = cubin_adopt,
    .spent = cubin_spent,
    .hello_text = cubin_hello,
    .served = &fa_backend_served};
