#include "gpu/modules/kernel.h"

#include "gpu/driver/nvrtc.h"
#include "gpu/modules/ahead.h"
#include "gpu/modules/rtc.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CUBINS 64
#define MAX_LIBRARIES 512
#define MAX_KERNELS 1024

/* Code that was compiled at run time and loaded. */
typedef struct compiled {
  char *unit;        /* the recipe's source and line */
  int major, minor;  /* the devices it is for */
  CUlibrary library; /* NULL: it does not compile */
  char *why_not;
} compiled;

/* A kernel, and how far its limit on shared memory has been raised on a device; limits only grow. In a hash
 * table by name, device and policy. */
typedef struct ready_kernel {
  char name[96]; /* "": free */
  CUdevice device;
  fa_rtc_policy policy;
  size_t shared_bytes;
  CUkernel kernel;
} ready_kernel;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUlibrary library[MAX_CUBINS]; /* of cubin i; NULL: not loaded yet */
static compiled at_run_time[MAX_LIBRARIES];
static int n_at_run_time;
static ready_kernel ready[MAX_KERNELS];
static const fa_cubin *cubins = fa_cubins;
static int n_cubins = -1;      /* number in the build */
static fa_error first_failure; /* of compiling */

static int count(void) {
  return n_cubins < 0 ? fa_n_cubins : n_cubins;
}

bool fa_cubin_fits(const char *arch, int major, int minor) {
  char *suffix = NULL;
  const long number = strtol(arch, &suffix, 10);
  if (*suffix == 'a') return number == 10 * major + minor; /* this architecture only */
  return number / 10 == major && number % 10 <= minor;
}

/* "sm_80, sm_90a"; returns whether one of them fits. */
static bool list_archs(const fa_cuda_device *device, char *have, size_t size) {
  size_t used = 0;
  bool fits = false;
  have[0] = 0;
  for (int i = 0; i < count(); ++i) {
    fits |= fa_cubin_fits(cubins[i].arch, device->major, device->minor);
    bool seen = false;
    for (int k = 0; k < i; ++k) seen |= strcmp(cubins[k].arch, cubins[i].arch) == 0;
    if (!seen && used < size)
      used += (size_t)snprintf(have + used, size - used, "%ssm_%s", used ? ", " : "", cubins[i].arch);
  }
  return fits;
}

fa_status fa_cuda_kernels_exist(const fa_cuda_device *device, fa_error *err) {
  char have[200];
  fa_rtc_policy policy;
  fa_error no_compiler = {"FA_NVRTC=off"};
  const fa_status status = fa_rtc_policy_get(&policy, err);
  if (status != FA_OK) return status;
  const bool fits = list_archs(device, have, sizeof have);
  if (fits && policy != FA_RTC_ALWAYS) return FA_OK;
  if (device->major < 8) snprintf(no_compiler.text, sizeof no_compiler.text, "they need 8.0 or later");
  if (device->major >= 8 && policy != FA_RTC_OFF && fa_nvrtc_get(NULL, &no_compiler)) return FA_OK;
  if (count() == 0)
    return fa_fail(err, FA_ERR_UNSUPPORTED, "this build has no device kernels (%s), and makes none (%s)",
                   fa_cubins_why_not, no_compiler.text);
  return fa_fail(err, FA_ERR_UNSUPPORTED,
                 "%s is of compute capability %d.%d; this build has kernels for %s, and makes none (%s)",
                 device->name, device->major, device->minor, have, no_compiler.text);
}

fa_status fa_cuda_kernel_device(const fa_cuda_device *device, fa_kernel_device *out, fa_error *err) {
  fa_rtc_policy policy;
  const fa_status status = fa_rtc_policy_get(&policy, err);
  *out = (fa_kernel_device){.max_shared_bytes = (size_t)device->max_shared_bytes,
                            .compiles = policy != FA_RTC_OFF && device->major >= 8 && fa_nvrtc_is_possible()};
  return status;
}

void fa_cuda_kernels_describe(const fa_cuda_device *device, char *text, size_t size) {
  char have[200], compiler[300];
  fa_rtc_policy policy;
  const bool fits = list_archs(device, have, sizeof have);
  if (fa_rtc_policy_get(&policy, NULL) != FA_OK) policy = FA_RTC_AUTO;
  fa_nvrtc_describe(compiler, sizeof compiler);
  if (policy == FA_RTC_OFF) snprintf(compiler, sizeof compiler, "none compiled at run time: FA_NVRTC=off");
  pthread_mutex_lock(&lock);
  snprintf(text, size, "%s%s; %s%s%s", fits ? "kernels for " : "no kernels compiled ahead of time",
           fits ? have : "", compiler, first_failure.text[0] ? "; general kernels instead: " : "",
           first_failure.text);
  pthread_mutex_unlock(&lock);
}

/* ---- compiled ahead of time ---- */

/* True if name is probably a kernel of this cubin. A source compiled in parts has a cubin for each:
 * "flash/backward_f16" holds the kernels of "flash/backward" with "_f16" in their names. */
static bool is_likely_in(const fa_cubin *cubin, const char *name, const char *source) {
  const size_t n = strlen(source);
  if (strncmp(cubin->source, source, n) != 0) return false;
  return cubin->source[n] == 0 || strstr(name, cubin->source + n) != NULL;
}

static fa_status load(const fa_cuda_driver *d, int i, fa_error *err) {
  if (library[i]) return FA_OK;
  const CUresult code = d->cuLibraryLoadData(&library[i], cubins[i].begin, NULL, NULL, 0, NULL, NULL, 0);
  if (code == CUDA_SUCCESS) return FA_OK;
  library[i] = NULL;
  return fa_cuda_fail(d, code, "loading the kernels", err);
}

/* Finds name in the code for this device, loading cubins as needed. It starts with the cubin that name and
 * source suggest, because memory checkers report a failed lookup as an error. */
static fa_status find(const fa_cuda_driver *d, const fa_cuda_device *device, const char *name,
                      const char *source, CUkernel *out, fa_error *err) {
  for (int pass = 0; pass < 2; ++pass) {
    for (int i = 0; i < count() && i < MAX_CUBINS; ++i) {
      if (!fa_cubin_fits(cubins[i].arch, device->major, device->minor)) continue;
      if (is_likely_in(&cubins[i], name, source) != (pass == 0)) continue;
      const fa_status status = load(d, i, err);
      if (status != FA_OK) return status;
      const CUresult code = d->cuLibraryGetKernel(out, library[i], name);
      if (code == CUDA_SUCCESS) return FA_OK;
      if (code != CUDA_ERROR_NOT_FOUND) return fa_cuda_fail(d, code, name, err);
    }
  }
  return fa_fail(err, FA_ERR_UNSUPPORTED, "kernel %s is not among those compiled ahead of time", name);
}

/* ---- compiled at run time ---- */

/* Compiles the unit or reads it from disk, and loads it. */
static fa_status build(const fa_cuda_driver *d, const fa_cuda_device *device, const fa_kernel_recipe *recipe,
                       CUlibrary *out, fa_error *err) {
  char only[256];
  const char *const options[] = {only};
  const fa_rtc_unit unit = {.name = recipe->source,
                            .text = fa_kernel_source_find(recipe->source),
                            .options = options,
                            .n_options = 1};
  fa_rtc_code code;
  snprintf(only, sizeof only, "-DFA_ONLY=%s", recipe->only);
  if (!unit.text) return fa_fail(err, FA_ERR_UNSUPPORTED, "this build has no source %s.cu", recipe->source);
  fa_status status = fa_rtc_build(&unit, device->major, device->minor, &code, err);
  if (status != FA_OK) return status;
  const CUresult result = d->cuLibraryLoadData(out, code.cubin, NULL, NULL, 0, NULL, NULL, 0);
  if (result != CUDA_SUCCESS) status = fa_cuda_fail(d, result, "loading a kernel compiled at run time", err);
  fa_rtc_code_free(&code);
  return status;
}

static fa_status remember(const fa_cuda_device *device, const char *unit, CUlibrary l, const char *why_not,
                          fa_error *err) {
  compiled *c = &at_run_time[n_at_run_time];
  c->unit = strdup(unit);
  c->why_not = strdup(why_not);
  if (!c->unit || !c->why_not) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  c->major = device->major;
  c->minor = device->minor;
  c->library = l;
  ++n_at_run_time;
  return FA_OK;
}

static const compiled *find_compiled(const fa_cuda_device *device, const char *unit) {
  for (int i = 0; i < n_at_run_time; ++i) {
    const compiled *c = &at_run_time[i];
    if (c->major == device->major && c->minor == device->minor && strcmp(c->unit, unit) == 0) return c;
  }
  return NULL;
}

static fa_status use_compiled(const compiled *c, CUlibrary *out, fa_error *err) {
  *out = c->library;
  return *out ? FA_OK : fa_fail(err, FA_ERR_UNSUPPORTED, "%s", c->why_not);
}

/* A unit that does not compile is not tried again; an error of the driver may go away. Other threads go on while it
 * compiles, and may compile the same: then the first is kept. */
static fa_status get_library(const fa_cuda_driver *d, const fa_cuda_device *device,
                             const fa_kernel_recipe *recipe, CUlibrary *out, fa_error *err) {
  char unit[300];
  fa_error own = {""};
  snprintf(unit, sizeof unit, "%s: %s", recipe->source, recipe->only);
  const compiled *there = find_compiled(device, unit);
  if (there) return use_compiled(there, out, err);
  *out = NULL;
  pthread_mutex_unlock(&lock);
  const fa_status status = build(d, device, recipe, out, &own);
  pthread_mutex_lock(&lock);
  there = find_compiled(device, unit);
  if (there && *out) d->cuLibraryUnload(*out);
  if (there) return use_compiled(there, out, err);
  if (n_at_run_time == MAX_LIBRARIES)
    return fa_fail(err, FA_ERR_UNSUPPORTED, "more than %d kernels compiled at run time", MAX_LIBRARIES);
  if (status == FA_OK) return remember(device, unit, *out, "", err);
  if (err) *err = own;
  if (status != FA_ERR_UNSUPPORTED) return status;
  if (!first_failure.text[0]) first_failure = own;
  const fa_status kept = remember(device, unit, NULL, own.text, err);
  return kept == FA_OK ? status : kept;
}

static fa_status compile(const fa_cuda_driver *d, const fa_cuda_device *device, const char *name,
                         const fa_kernel_recipe *recipe, CUkernel *out, fa_error *err) {
  CUlibrary l = NULL;
  const fa_status status = get_library(d, device, recipe, &l, err);
  if (status != FA_OK) return status;
  const CUresult code = d->cuLibraryGetKernel(out, l, name);
  return code == CUDA_SUCCESS ? FA_OK : fa_cuda_fail(d, code, name, err);
}

/* ---- either ---- */

static fa_status find_or_compile(const fa_cuda_driver *d, const fa_cuda_device *device, const char *name,
                                 const fa_kernel_recipe *recipe, fa_rtc_policy policy, CUkernel *out,
                                 fa_error *err) {
  char have[200];
  const bool fits = list_archs(device, have, sizeof have);
  const bool can_compile = policy != FA_RTC_OFF && device->major >= 8;
  if (policy == FA_RTC_ALWAYS && can_compile) return compile(d, device, name, recipe, out, err);
  if (recipe->is_ahead_of_time && fits) {
    const fa_status status = find(d, device, name, recipe->source, out, err);
    if (status != FA_ERR_UNSUPPORTED || !can_compile) return status;
  }
  if (can_compile) return compile(d, device, name, recipe, out, err);
  const fa_status status = fa_cuda_kernels_exist(device, err);
  if (status != FA_OK) return status;
  return fa_fail(err, FA_ERR_UNSUPPORTED, "kernel %s is compiled at run time alone, and FA_NVRTC=off", name);
}

static fa_status make_ready(const fa_cuda_driver *d, const fa_cuda_device *device, const char *name,
                            const fa_kernel_recipe *recipe, fa_rtc_policy policy, size_t shared_bytes,
                            CUkernel *out, fa_error *err) {
  if (shared_bytes > (size_t)device->max_shared_bytes)
    return fa_fail(err, FA_ERR_UNSUPPORTED,
                   "kernel %s needs %zu bytes of shared memory, %s has %d for a block", name, shared_bytes,
                   device->name, device->max_shared_bytes);
  const fa_status status = find_or_compile(d, device, name, recipe, policy, out, err);
  CUresult code = CUDA_SUCCESS;
  if (status != FA_OK) return status;
  if (shared_bytes > 48 * 1024)
    code = d->cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)shared_bytes, *out,
                                   device->device);
  if (code == CUDA_SUCCESS && recipe->any_cluster)
    code =
        d->cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1, *out, device->device);
  return code == CUDA_SUCCESS ? FA_OK : fa_cuda_fail(d, code, "cuKernelSetAttribute", err);
}

/* The entry, or where it may go; NULL: the table is full. */
static ready_kernel *find_ready(const char *name, CUdevice device, fa_rtc_policy policy) {
  uint32_t hash = 2166136261u ^ (uint32_t)(device * 3 + (int)policy);
  for (const char *c = name; *c; ++c) hash = (hash ^ (unsigned char)*c) * 16777619u; /* FNV-1a */
  for (uint32_t i = 0; i < MAX_KERNELS; ++i) {
    ready_kernel *r = &ready[(hash + i) % MAX_KERNELS];
    if (!r->name[0] || (r->device == device && r->policy == policy && strcmp(r->name, name) == 0)) return r;
  }
  return NULL;
}

fa_status fa_cuda_kernel(const fa_cuda_driver *d, const fa_cuda_device *device, const char *name,
                         const fa_kernel_recipe *recipe, size_t shared_bytes, CUkernel *out, fa_error *err) {
  fa_rtc_policy policy;
  fa_status status = fa_rtc_policy_get(&policy, err);
  if (status != FA_OK) return status;
  pthread_mutex_lock(&lock);
  ready_kernel *place = find_ready(name, device->device, policy);
  if (place && place->name[0] && place->shared_bytes >= shared_bytes) {
    *out = place->kernel;
  } else {
    status = make_ready(d, device, name, recipe, policy, shared_bytes, out, err);
    place = find_ready(name, device->device, policy); /* others may have come meanwhile */
    if (status == FA_OK && place) {
      *place = (ready_kernel){
          .device = device->device, .policy = policy, .shared_bytes = shared_bytes, .kernel = *out};
      snprintf(place->name, sizeof place->name, "%s", name);
    }
  }
  pthread_mutex_unlock(&lock);
  return status;
}

void fa_cuda_kernels_replace(const fa_cubin *replacement, int n) {
  pthread_mutex_lock(&lock);
  memset(ready, 0, sizeof ready);
  for (int i = 0; i < n_at_run_time; ++i) {
    free(at_run_time[i].unit);
    free(at_run_time[i].why_not);
  }
  n_at_run_time = 0;
  first_failure.text[0] = 0;
  memset(library, 0, sizeof library);
  fa_ahead_replace(NULL, replacement ? 0 : -1);
  cubins = replacement ? replacement : fa_cubins;
  n_cubins = replacement ? n : fa_n_cubins;
  fa_cuda_forget();
  pthread_mutex_unlock(&lock);
}
