#include "gpu/driver/libcuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const fa_cuda_driver *_Atomic the_driver; /* written under the lock */
static const fa_cuda_driver *fake_driver;
static fa_cuda_driver loaded;
static fa_error why_not; /* "" until the first attempt */
static atomic_uint generation = 1;

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x) /* the name that cuda.h's macro expands to */

/* Looks up the functions of library by name; false: one is missing, and *err says which. */
static bool look_up(void *library, const char *file, fa_cuda_driver *out, fa_error *err) {
  const char *missing = NULL;
#define LOOK_UP(function)                                                                                    \
  *(void **)&out->function = dlsym(library, TEXT(function));                                                 \
  if (!out->function && !missing) missing = TEXT(function);
  FA_CUDA_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
  if (missing)
    fa_fail(err, FA_ERR_DEVICE, "%s has no %s: a driver for CUDA %d.%d or later is needed", file, missing,
            CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
  return !missing;
}

static bool start(const fa_cuda_driver *d, fa_error *err) {
  int n = 0;
  CUresult code = d->cuInit(0);
  if (code != CUDA_SUCCESS) {
    fa_cuda_fail(d, code, "cuInit", err);
    return false;
  }
  code = d->cuDeviceGetCount(&n);
  if (code != CUDA_SUCCESS) {
    fa_cuda_fail(d, code, "cuDeviceGetCount", err);
    return false;
  }
  if (n == 0) fa_fail(err, FA_ERR_DEVICE, "the CUDA driver finds no device");
  return n > 0;
}

/* The library is never unloaded, which drivers do not support well. */
static const fa_cuda_driver *load(fa_error *err) {
  const char *file = getenv("FA_LIBCUDA");
  if (!file || !*file) file = "libcuda.so.1";
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fa_fail(err, FA_ERR_DEVICE, "no CUDA driver: %s", dlerror());
    return NULL;
  }
  if (!look_up(library, file, &loaded, err) || !start(&loaded, err)) return NULL;
  return &loaded;
}

const fa_cuda_driver *fa_cuda_driver_get(fa_error *err) {
  const fa_cuda_driver *d = atomic_load_explicit(&the_driver, memory_order_acquire);
  if (d) return d;
  pthread_mutex_lock(&lock);
  if (!the_driver && !why_not.text[0])
    the_driver = !fake_driver ? load(&why_not) : start(fake_driver, &why_not) ? fake_driver : NULL;
  d = the_driver;
  if (!d && err) *err = why_not;
  pthread_mutex_unlock(&lock);
  return d;
}

void fa_cuda_driver_replace(const fa_cuda_driver *fake) {
  pthread_mutex_lock(&lock);
  why_not.text[0] = 0;
  the_driver = NULL;
  fake_driver = fake;
  fa_cuda_forget();
  pthread_mutex_unlock(&lock);
}

unsigned fa_cuda_generation(void) {
  return atomic_load_explicit(&generation, memory_order_relaxed);
}

void fa_cuda_forget(void) {
  atomic_fetch_add(&generation, 1);
}

fa_status fa_cuda_fail(const fa_cuda_driver *d, CUresult code, const char *what, fa_error *err) {
  const char *name = NULL, *text = NULL;
  if (d->cuGetErrorName(code, &name) != CUDA_SUCCESS || !name) name = "unknown error";
  if (d->cuGetErrorString(code, &text) != CUDA_SUCCESS || !text) text = "the driver has no text for it";
  return fa_fail(err, code == CUDA_ERROR_OUT_OF_MEMORY ? FA_ERR_MEMORY : FA_ERR_DEVICE, "%s: %s %d (%s)",
                 what, name, (int)code, text);
}

fa_status fa_cuda_device_get(const fa_cuda_driver *d, CUdevice device, fa_cuda_device *out, fa_error *err) {
  const struct {
    CUdevice_attribute attribute;
    int *value;
  } wanted[] = {{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &out->major},
                {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &out->minor},
                {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &out->n_processors},
                {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &out->max_shared_bytes},
                {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &out->l2_bytes}};
  int version = 0;
  memset(out, 0, sizeof *out);
  out->device = device;
  CUresult code = d->cuDriverGetVersion(&version);
  if (code != CUDA_SUCCESS) return fa_cuda_fail(d, code, "cuDriverGetVersion", err);
  snprintf(out->driver, sizeof out->driver, "%d.%d", version / 1000, version % 1000 / 10);
  code = d->cuDeviceGetName(out->name, (int)sizeof out->name, device);
  if (code != CUDA_SUCCESS) return fa_cuda_fail(d, code, "cuDeviceGetName", err);
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; ++i) {
    code = d->cuDeviceGetAttribute(wanted[i].value, wanted[i].attribute, device);
    if (code != CUDA_SUCCESS) return fa_cuda_fail(d, code, "cuDeviceGetAttribute", err);
  }
  return FA_OK;
}

/* Properties do not change, and the driver takes longer to say them all than a call takes to be planned. */
static fa_status get_known(const fa_cuda_driver *d, CUdevice device, fa_cuda_device *out, fa_error *err) {
  static _Thread_local unsigned learnt; /* when; 0: never */
  static _Thread_local fa_cuda_device last;
  const unsigned now = fa_cuda_generation();
  if (learnt != now || last.device != device) {
    const fa_status status = fa_cuda_device_get(d, device, &last, err);
    learnt = status == FA_OK ? now : 0;
    if (status != FA_OK) return status;
  }
  *out = last;
  return FA_OK;
}

fa_status fa_cuda_device_current(const fa_cuda_driver *d, fa_cuda_device *out, fa_error *err) {
  CUcontext context = NULL;
  CUdevice device = 0;
  CUresult code = d->cuCtxGetCurrent(&context);
  if (code != CUDA_SUCCESS) return fa_cuda_fail(d, code, "cuCtxGetCurrent", err);
  if (!context) return fa_fail(err, FA_ERR_INPUT, "no CUDA context is current in the calling thread");
  code = d->cuCtxGetDevice(&device);
  if (code != CUDA_SUCCESS) return fa_cuda_fail(d, code, "cuCtxGetDevice", err);
  return get_known(d, device, out, err);
}
