/* The fake driver, with kernels of any name, none of which runs. */
#include "tests/plans/dump.h"

#include "gpu/cuda_backend/memory.h"
#include "tests/fake_cuda/fake.h"
#include "tests/fake_cuda/nvrtc.h"

#include <stdlib.h>
#include <string.h>

/* Never freed: the tables of the library under test point to them. */
typedef struct library {
  struct library *next;
  char unit[300];
} library;
typedef struct kernel {
  struct kernel *next;
  const library *from;
  char name[96];
  int allowed_shared;
} kernel;
static library *libraries;
static kernel *kernels;

static int n_processors;
static plan_places places; /* of the tensors last copied to the device */
static char misuse[200];

/* ---- where tensors are ---- */

fa_status __real_fa_cuda_tensors_up(const fa_cuda_driver *d, fa_cuda_arena *arena, const fa_tensors *host,
                                    size_t scratch_bytes, fa_cuda_tensors *out, CUresult *code,
                                    fa_error *err);
fa_status __wrap_fa_cuda_tensors_up(const fa_cuda_driver *d, fa_cuda_arena *arena, const fa_tensors *host,
                                    size_t scratch_bytes, fa_cuda_tensors *out, CUresult *code,
                                    fa_error *err);
fa_status __wrap_fa_cuda_tensors_up(const fa_cuda_driver *d, fa_cuda_arena *arena, const fa_tensors *host,
                                    size_t scratch_bytes, fa_cuda_tensors *out, CUresult *code,
                                    fa_error *err) {
  const fa_status status = __real_fa_cuda_tensors_up(d, arena, host, scratch_bytes, out, code, err);
  places.n = 0;
  if (status != FA_OK) return status;
  for (int i = 0; i < FA_T_COUNT; ++i)
    if (out->base[i])
      places.v[places.n++] = (plan_place){.name = fa_tensor_id_name((fa_tensor_id)i),
                                          .begin = (const char *)(uintptr_t)out->base[i] + FA_GUARD_BYTES,
                                          .bytes = host->buffer[i].bytes};
  if (scratch_bytes)
    places.v[places.n++] = (plan_place){"workspace", fa_cuda_tensors_scratch(out), scratch_bytes};
  return status;
}

/* ---- the driver ---- */

static CUresult get_attribute(int *value, CUdevice_attribute a, CUdevice d) {
  const CUresult code = fake_cuda_driver()->cuDeviceGetAttribute(value, a, d);
  if (a == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) *value = n_processors;
  return code;
}

/* Code of the fake compiler is the name of what was compiled; other code is the build's. */
static CUresult library_load(CUlibrary *l, const void *image, CUjit_option *a, void **b, unsigned c,
                             CUlibraryOption *d, void **e, unsigned f) {
  (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
  library *x = calloc(1, sizeof *x);
  if (!x) return CUDA_ERROR_OUT_OF_MEMORY;
  if (image != fake_cubins[0].begin) snprintf(x->unit, sizeof x->unit, "%s", (const char *)image + 5);
  x->next = libraries;
  libraries = x;
  *l = (CUlibrary)x;
  return CUDA_SUCCESS;
}

static CUresult library_unload(CUlibrary l) {
  (void)l;
  return CUDA_SUCCESS;
}

static CUresult get_kernel(CUkernel *out, CUlibrary l, const char *name) {
  kernel *k = calloc(1, sizeof *k);
  if (!k) return CUDA_ERROR_OUT_OF_MEMORY;
  *k = (kernel){.next = kernels, .from = (const library *)l, .allowed_shared = 48 * 1024};
  snprintf(k->name, sizeof k->name, "%s", name);
  kernels = k;
  *out = (CUkernel)k;
  return CUDA_SUCCESS;
}

static CUresult set_attribute(CUfunction_attribute a, int value, CUkernel k, CUdevice d) {
  (void)d;
  if (a != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value > fake.max_shared_bytes)
    return CUDA_ERROR_INVALID_VALUE;
  ((kernel *)k)->allowed_shared = value;
  return CUDA_SUCCESS;
}

/* The fake driver answers otherwise, and then no kernel gets a counter. */
static CUresult is_capturing(CUstream stream, CUstreamCaptureStatus *out) {
  (void)stream;
  *out = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

static CUresult launch_ex(const CUlaunchConfig *c, CUfunction f, void **arguments, void **extra) {
  const kernel *k = (const kernel *)f;
  (void)extra;
  plan_launch l = {.kernel = k->name,
                   .unit = k->from->unit,
                   .grid = {c->gridDimX, c->gridDimY, c->gridDimZ},
                   .block = {c->blockDimX, c->blockDimY, c->blockDimZ},
                   .shared_bytes = c->sharedMemBytes,
                   .params = arguments[0],
                   .places = places};
  for (unsigned i = 0; i < c->numAttrs; ++i)
    if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
      l.overlaps = c->attrs[i].value.programmaticStreamSerializationAllowed;
    else if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
      l.cluster = c->attrs[i].value.clusterDim.x;
    else
      snprintf(misuse, sizeof misuse, "%s: attribute %d is not known", k->name, (int)c->attrs[i].id);
  if ((int)c->sharedMemBytes > k->allowed_shared)
    snprintf(misuse, sizeof misuse, "%s: %u bytes of shared memory, %d allowed", k->name, c->sharedMemBytes,
             k->allowed_shared);
  plan_launched(&l);
  return CUDA_SUCCESS;
}

static CUresult launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                       unsigned bz, unsigned shared, CUstream stream, void **arguments, void **extra) {
  const CUlaunchConfig c = {.gridDimX = gx,
                            .gridDimY = gy,
                            .gridDimZ = gz,
                            .blockDimX = bx,
                            .blockDimY = by,
                            .blockDimZ = bz,
                            .sharedMemBytes = shared,
                            .hStream = stream};
  return launch_ex(&c, f, arguments, extra);
}

/* ---- the device ---- */

static bool read_words(const char *at, bool *off) {
  while (at && *at) {
    int n = 0, end = 0;
    if (sscanf(at, "sm_%d%n", &n, &end) == 1 && end) {
      fake.major = n / 10;
      fake.minor = n % 10;
    } else if (sscanf(at, "processors=%d%n", &n, &end) == 1 && end) {
      n_processors = n;
    } else if (sscanf(at, "shared=%d%n", &n, &end) == 1 && end) {
      fake.max_shared_bytes = n * 1024;
    } else if (strncmp(at, "off", 3) == 0) {
      *off = true;
      end = 3;
    }
    if (end == 0 || (at[end] && at[end] != ',')) return false;
    at += end + (at[end] == ',');
  }
  return true;
}

bool plan_cuda_start(const char *words) {
  static fa_cuda_driver driver;
  bool off = false;
  fake_cuda_reset();
  n_processors = 132;
  fake.memory_bytes = (size_t)80 << 30;
  if (!read_words(words, &off)) return false;
  setenv("FA_HOPPER", off ? "off" : "auto", 1);
  setenv("FA_CACHE_DIR", "/dev/null/no-folder", 1); /* nobody else can use what is made here */
  driver = *fake_cuda_driver();
  driver.cuDeviceGetAttribute = get_attribute;
  driver.cuLibraryLoadData = library_load;
  driver.cuLibraryUnload = library_unload;
  driver.cuLibraryGetKernel = get_kernel;
  driver.cuKernelSetAttribute = set_attribute;
  driver.cuStreamIsCapturing = is_capturing;
  driver.cuLaunchKernel = launch;
  driver.cuLaunchKernelEx = launch_ex;
  fa_cuda_driver_replace(&driver);
  fa_cuda_kernels_replace(fake_cubins, 2);
  fake_nvrtc_use(13, 0, "/bin/sh");
  return true;
}

const char *plan_cuda_misuse(void) {
  return misuse[0] ? misuse : fake.misuse;
}

bool plan_cuda_is_large(void) {
  return fake.bytes_in_use > (size_t)64 << 20;
}
