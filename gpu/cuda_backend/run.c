/* The cuda backend: the kernels on a GPU, through gpu/fa.h. */
#include "gpu/cuda/run.h"
#include "gpu/args/calls.h"
#include "gpu/args/drop.h"
#include "gpu/backend.h"
#include "gpu/cuda/target.h"
#include "gpu/cuda_backend/context.h"
#include "gpu/cuda_backend/issue.h"
#include "gpu/cuda_backend/memory.h"
#include "gpu/driver/nvrtc.h"
#include "gpu/modules/rtc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* open does not touch the driver, so that this process may still fork; the first call that needs the device
 * does. */
typedef struct cuda_backend {
  int index;              /* of the device: cuda:1 */
  bool graph;             /* kernels are captured into a graph, which is then launched */
  bool concurrent_writer; /* another stream writes to its own memory while they run */
  bool prepared;          /* a thread that has ended tried to open the context */
  bool tried;
  fa_status status; /* the result of that */
  fa_error why_not;
  fa_cuda_context context;
  fa_cuda_arena arena;
  fa_cuda_issue issue;
  bool lost; /* a kernel destroyed the context: this process can no longer use the device */
} cuda_backend;

/* How many of them work at once in this process, each in a thread of its own. */
static int n_lanes = 1;
enum { MOST_QUEUES = 32 }; /* of a context */

/* A mistake in the environment is the user's, and must not look like a kernel that refuses a case. */
static fa_status check_environment(fa_error *err) {
  fa_rtc_policy policy;
  bool off;
  const fa_status status = fa_rtc_policy_get(&policy, err);
  return status == FA_OK ? fa_cuda_hopper_policy(&off, err) : status;
}

/* Parses "1", "graph", "0,graph,company": the device, and how kernels are issued. */
static bool read_argument(const char *arg, cuda_backend *c) {
  if (!arg || !*arg) return true;
  while (*arg) {
    const size_t n = strcspn(arg, ",");
    char word[16], *end = word;
    snprintf(word, sizeof word, "%.*s", (int)n, arg);
    const long index = strtol(word, &end, 10);
    const bool number = n > 0 && n < 5 && *end == 0 && index >= 0 && index <= 1023;
    if (number)
      c->index = (int)index;
    else if (strcmp(word, "graph") == 0)
      c->graph = true;
    else if (strcmp(word, "company") == 0)
      c->concurrent_writer = true;
    else
      return false;
    arg += n;
    if (*arg == ',' && !*++arg) return false;
  }
  return true;
}

static fa_status cuda_open(const char *arg, void **self, fa_error *err) {
  cuda_backend wanted = {0};
  if (!read_argument(arg, &wanted))
    return fa_fail(err, FA_ERR_INPUT,
                   "backend cuda:N takes the number of a device, \"graph\" and \"company\", with commas "
                   "between, got \"%s\"",
                   arg);
  const fa_status status = check_environment(err);
  if (status != FA_OK) return status;
  cuda_backend *c = malloc(sizeof *c);
  if (!c) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  *c = wanted;
  *self = c;
  /* All work is in one stream. Set here, before there are threads that read the environment. */
  if (n_lanes == 1) setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", 0);
  return FA_OK;
}

/* A context with one hardware queue instead of eight opens in a third of the time. */
static void cuda_lanes(int n) {
  char text[16];
  snprintf(text, sizeof text, "%d", n < MOST_QUEUES ? n : MOST_QUEUES);
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", text, 0);
  n_lanes = n;
}

static void cuda_close(void *self) {
  cuda_backend *c = self;
  if (!c->lost) {
    if (c->tried && c->status == FA_OK) {
      fa_cuda_issue_free(c->context.driver, &c->issue);
      fa_cuda_arena_free(c->context.driver, &c->arena);
    }
    fa_cuda_context_close(&c->context);
  }
  free(c);
}

/* Does not write tried, which other threads read meanwhile. */
static void cuda_prepare(void *self) {
  cuda_backend *c = self;
  c->status = fa_cuda_context_open(c->index, &c->context, &c->why_not);
  c->prepared = true;
}

/* Several of this process have the context together: what one waits for must not be another's. */
static fa_status take_stream(cuda_backend *c) {
  const CUresult code = fa_cuda_own_stream(c->context.driver, &c->issue);
  c->arena.stream = c->issue.own;
  return code == CUDA_SUCCESS ? FA_OK : fa_cuda_fail(c->context.driver, code, "a stream", &c->why_not);
}

static fa_status ensure_ready(cuda_backend *c, fa_error *err) {
  if (!c->tried && !c->prepared) c->status = fa_cuda_context_open(c->index, &c->context, &c->why_not);
  if (!c->tried && c->prepared && c->status == FA_OK)
    c->status = fa_cuda_context_use(&c->context, &c->why_not);
  if (!c->tried && c->status == FA_OK && n_lanes > 1) c->status = take_stream(c);
  c->tried = true;
  if (c->status != FA_OK && err) *err = c->why_not;
  return c->status;
}

static void cuda_describe(void *self, fa_backend_info *out) {
  cuda_backend *c = self;
  memset(out, 0, sizeof *out);
  out->name = fa_backend_cuda.name;
  out->usable = ensure_ready(c, NULL) == FA_OK;
  if (!out->usable) {
    snprintf(out->why_not, sizeof out->why_not, "%s", c->why_not.text);
    return;
  }
  const fa_cuda_device *d = &c->context.device;
  snprintf(out->device, sizeof out->device, "%.90s, sm_%d%d, %d SMs", d->name, d->major, d->minor,
           d->n_processors);
  char compiler[300];
  fa_nvrtc_describe(compiler, sizeof compiler);
  snprintf(out->driver, sizeof out->driver, "CUDA %s; %s", d->driver, compiler);
}

/* The device that kernels are chosen for, if it was queried already; otherwise NULL for any. */
static const fa_kernel_device *target_of(const cuda_backend *c, fa_kernel_device *target) {
  if (!c->tried || c->status != FA_OK) return NULL;
  return fa_cuda_target(&c->context.device, target, NULL) == FA_OK ? target : NULL;
}

static unsigned cuda_supports(void *self, const fa_problem *p, char *reason, size_t reason_size) {
  fa_kernel_device any;
  const fa_kernel_device *target = target_of(self, &any);
  if (!fa_args_supported(p, false, target, reason, reason_size)) return FA_PASS_NONE;
  if (!fa_args_supported(p, true, target, reason, reason_size)) return FA_PASS_FORWARD;
  return FA_PASS_FORWARD | FA_PASS_BACKWARD;
}

static void cuda_profile(void *self, const fa_problem *p, fa_profile *out) {
  cuda_backend *c = self;
  fa_kernel_device target;
  const bool hopper = ensure_ready(c, NULL) != FA_OK || c->context.device.major >= 9;
  fa_args_profile(p, hopper, target_of(c, &target), FA_PLAN_PROCESSORS, out);
}

/* ---- a run ---- */

static fa_status refuse(fa_outcome *out, const char *why) {
  out->state = FA_SUBJECT_REJECTED;
  snprintf(out->text, sizeof out->text, "%s", why);
  return FA_OK;
}

/* Device memory that the calls need; 0 for those that will be refused. Only presence and alignment of pointers
 * matter, which are the same on host and device. */
static size_t scratch_needed(const fa_problem *p, const fa_tensors *host, unsigned passes) {
  fa_args x;
  const char *why = NULL;
  size_t forward = 0, backward = 0;
  if (fa_args_make(p, host, passes & FA_PASS_BACKWARD, FA_PLAN_PROCESSORS, &x, &why, NULL) == FA_OK && !why) {
    if (p->family == FA_MERGE) {
      fa_args_free(&x);
      return 0; /* a merge needs none */
    }
    if (p->family == FA_KVCACHE)
      fa_forward_kvcache_workspace(&x.a, &x.cache, &forward, NULL);
    else
      fa_forward_workspace(&x.a, &forward, NULL);
    if (passes & FA_PASS_BACKWARD) fa_backward_workspace(&x.a, &x.g, &backward, NULL);
  }
  fa_args_free(&x);
  return forward > backward ? forward : backward;
}

/* Kernels that are always compiled at run time need a compiler; if there is one, and one of them does not
 * compile, that is an error of the harness. */
static fa_status status_of_launch(const fa_call *call, fa_status status) {
  fa_rtc_policy policy;
  if (!fa_call_is_flex(call) || status != FA_ERR_UNSUPPORTED) return status;
  const bool can_compile =
      fa_rtc_policy_get(&policy, NULL) == FA_OK && policy != FA_RTC_OFF && fa_nvrtc_get(NULL, NULL);
  return can_compile ? FA_ERR_DEVICE : status;
}

/* *ran: what was launched; its name is "" where the call was refused before it was planned. */
static fa_status launch_call(fa_call *call, const fa_cuda_tensors *t, CUstream stream, fa_cuda_ran *ran,
                             fa_outcome *out, fa_error *err) {
  call->workspace = fa_cuda_tensors_scratch(t);
  const fa_status status = fa_cuda_run(call, t->scratch_bytes, stream, ran, err);
  const bool is_refused = status == FA_ERR_INPUT || (status == FA_ERR_UNSUPPORTED && !ran->name[0]);
  return is_refused ? refuse(out, err->text) : status_of_launch(call, status);
}

/* drop: NULL, or where on the device dropout's seed and offset are. */
static fa_status launch_passes(const fa_problem *p, fa_args *x, const fa_cuda_tensors *t, unsigned passes,
                               CUstream stream, bool captured, fa_args_drop *drop, fa_outcome *out,
                               fa_error *err) {
  fa_cuda_ran ran;
  fa_status status = FA_OK;
  x->a.check_device_data = !captured;
  if (drop) fa_args_drop_from(drop, &x->a);
  if (passes & FA_PASS_FORWARD) {
    status = launch_call(&x->forward, t, stream, &ran, out, err);
    if (ran.name[0]) fa_args_name(p, ran.name, ran.aligned, out->kernel, sizeof out->kernel);
  }
  if (status != FA_OK || out->state != FA_SUBJECT_OK || !(passes & FA_PASS_BACKWARD)) return status;
  if (drop) fa_args_drop_as_used(drop, &x->a);
  status = launch_call(&x->backward, t, stream, &ran, out, err);
  snprintf(out->backward_kernel, sizeof out->backward_kernel, "%s", ran.name);
  return status;
}

/* Launches the kernels between tensors that are on the device or being copied there. captured: nothing may wait
 * for them. */
static fa_status launch_kernels(const fa_problem *p, const fa_cuda_tensors *t, unsigned passes,
                                CUstream stream, bool captured, fa_args_drop *drop, fa_outcome *out,
                                fa_error *err) {
  fa_args x;
  const char *why = NULL;
  fa_status status = fa_args_make(p, &t->set, passes & FA_PASS_BACKWARD, FA_PLAN_PROCESSORS, &x, &why, err);
  if (status == FA_OK)
    status = why ? refuse(out, why) : launch_passes(p, &x, t, passes, stream, captured, drop, out, err);
  fa_args_free(&x);
  return status;
}

/* Waits for what was launched before a launch failed or was refused: if that failed too, it is the error to
 * report. */
static fa_status wait_behind(const fa_cuda_driver *d, const fa_cuda_tensors *t, const char *what,
                             fa_status status, CUresult *code, fa_error *err) {
  *code = fa_cuda_tensors_wait(d, t);
  const bool theirs = fa_cuda_is_kernels_fault(*code) || (*code != CUDA_SUCCESS && status == FA_OK);
  return theirs ? fa_cuda_fail(d, *code, what, err) : status;
}

static const char *name_of_run(const fa_outcome *out, unsigned passes, char *what, size_t size) {
  snprintf(what, size, "%s%s", out->kernel, passes & FA_PASS_BACKWARD ? " or its backward" : "");
  return what;
}

/* Like every user of graphs, makes the call once before capturing it, so that kernels are loaded. Its outputs
 * are discarded. */
static fa_status rehearse(cuda_backend *c, const fa_problem *p, const fa_tensors *t, unsigned passes,
                          fa_outcome *out, CUresult *code, fa_error *err) {
  const fa_cuda_driver *d = c->context.driver;
  fa_cuda_tensors on_device;
  char what[sizeof out->kernel + 32];
  fa_status status = fa_cuda_tensors_up(d, &c->arena, t, scratch_needed(p, t, passes), &on_device, code, err);
  if (status != FA_OK) return status;
  status = launch_kernels(p, &on_device, passes, c->issue.own, false, NULL, out, err);
  status = wait_behind(d, &on_device, name_of_run(out, passes, what, sizeof what), status, code, err);
  fa_cuda_tensors_free(d, &on_device);
  return status;
}

/* Captures the kernels and launches them in the backend's stream, after the tensors' copies to the device. With dropout,
 * whose seed and offset are then in device memory, the graph is launched twice: first as it was captured, with numbers
 * that nobody asked for, and then with those of the problem. */
static fa_status launch_graph(cuda_backend *c, const fa_problem *p, const fa_cuda_tensors *t, unsigned passes,
                              fa_outcome *out, CUresult *code, fa_error *err) {
  const fa_cuda_driver *d = c->context.driver;
  const bool drops = p->dropout.p > 0 && (passes & FA_PASS_FORWARD);
  const fa_args_drop decoy = fa_args_drop_decoy(p), real = fa_args_drop_of(p);
  CUstream stream;
  if (drops) *code = fa_cuda_small_write(d, &c->issue, &decoy, sizeof decoy);
  if (*code == CUDA_SUCCESS) *code = fa_cuda_graph_begin(d, &c->issue, &stream);
  if (*code != CUDA_SUCCESS) return fa_cuda_fail(d, *code, "beginning a graph", err);
  fa_args_drop *const drop = drops ? (fa_args_drop *)c->issue.small : NULL; /* NOLINT: on the device */
  const fa_status status = launch_kernels(p, t, passes, stream, true, drop, out, err);
  const bool launches = status == FA_OK && out->state == FA_SUBJECT_OK;
  *code = fa_cuda_graph_end(d, &c->issue, launches);
  if (drops && launches && *code == CUDA_SUCCESS)
    *code = fa_cuda_small_write(d, &c->issue, &real, sizeof real);
  if (drops && launches && *code == CUDA_SUCCESS) *code = fa_cuda_graph_again(d, &c->issue);
  return status == FA_OK && *code != CUDA_SUCCESS ? fa_cuda_fail(d, *code, "launching a graph", err) : status;
}

static fa_status issue(cuda_backend *c, const fa_problem *p, const fa_cuda_tensors *t, bool graph,
                       unsigned passes, fa_outcome *out, CUresult *code, fa_error *err) {
  const fa_cuda_driver *d = c->context.driver;
  if (c->concurrent_writer) *code = fa_cuda_concurrent_writer(d, &c->issue);
  if (*code != CUDA_SUCCESS) return fa_cuda_fail(d, *code, "work in another stream", err);
  if (graph) return launch_graph(c, p, t, passes, out, code, err);
  return launch_kernels(p, t, passes, c->issue.own, false, NULL, out, err);
}

/* Reserved address space is mapped for one call, so it cannot be rehearsed. */
static bool wants_graph(const cuda_backend *c, const fa_tensors *t) {
  bool small = true;
  for (int i = 0; i < FA_T_COUNT; ++i) small = small && !fa_buffer_is_virtual(&t->buffer[i]);
  return small && c->graph;
}

/* Copies to the device, launches, copies back, and waits for the device once, at the end. */
static fa_status run_on_device(cuda_backend *c, const fa_problem *p, fa_tensors *t, unsigned passes,
                               fa_outcome *out, CUresult *code, fa_error *err) {
  const fa_cuda_driver *d = c->context.driver;
  const bool graph = wants_graph(c, t);
  fa_cuda_tensors on_device;
  bool intact = true;
  char what[sizeof out->kernel + 32];
  fa_status status = graph ? rehearse(c, p, t, passes, out, code, err) : FA_OK;
  if (status != FA_OK || out->state != FA_SUBJECT_OK) return status;
  status = fa_cuda_tensors_up(d, &c->arena, t, scratch_needed(p, t, passes), &on_device, code, err);
  if (status != FA_OK) return status;
  status = issue(c, p, &on_device, graph, passes, out, code, err);
  name_of_run(out, passes, what, sizeof what);
  if (status == FA_OK && out->state == FA_SUBJECT_OK)
    status = fa_cuda_tensors_down(d, &on_device, what, t, &intact, out->text, sizeof out->text, code, err);
  else
    status = wait_behind(d, &on_device, what, status, code, err);
  if (!intact) out->state = FA_SUBJECT_OOB;
  fa_cuda_tensors_free(d, &on_device);
  return status;
}

static fa_status cuda_run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                          fa_outcome *out, fa_error *err) {
  cuda_backend *c = self;
  CUresult code = CUDA_SUCCESS;
  fa_error own;
  if (!err) err = &own;
  memset(out, 0, sizeof *out);
  fa_kernel_device target;
  fa_status status = ensure_ready(c, err);
  if (!fa_args_supported(p, false, target_of(c, &target), out->text, sizeof out->text))
    return fa_fail(err, FA_ERR_UNSUPPORTED, "backend cuda: %s", out->text);
  if (status != FA_OK) return status == FA_ERR_UNSUPPORTED ? FA_ERR_DEVICE : status;
  if (c->lost)
    return fa_fail(err, FA_ERR_DEVICE, "a kernel of an earlier case took the device's context with it");
  status = run_on_device(c, p, t, opt->passes, out, &code, err);
  if (!fa_cuda_is_kernels_fault(code)) return status;
  c->lost = true;
  out->state = FA_SUBJECT_CRASH;
  snprintf(out->text, sizeof out->text, "%s", err->text);
  return FA_OK;
}

static char *cuda_memory(void *self, int place, size_t bytes) {
  cuda_backend *c = self;
  if (c->lost || ensure_ready(c, NULL) != FA_OK) return NULL;
  return fa_cuda_arena_block(c->context.driver, &c->arena, place, bytes);
}

static bool cuda_spent(void *self) {
  return ((cuda_backend *)self)->lost;
}

const fa_backend fa_backend_cuda = {
    .name = "cuda",
    .what = "the CUDA kernels on the GPU; cuda:N is device N; cuda:graph: as a graph; cuda:company: "
            "while another stream works",
    .open = cuda_open,
    .close = cuda_close,
    .describe = cuda_describe,
    .supports = cuda_supports,
    .profile = cuda_profile,
    .run = cuda_run,
    .memory = cuda_memory,
    .lanes = cuda_lanes,
    .prepare = cuda_prepare,
    .spent = cuda_spent};
