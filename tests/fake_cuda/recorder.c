#include "tests/fake_cuda/recorder.h"

#include "gpu/kernels/params/hopper.h"
#include "gpu/kernels/params/hopper_cache.h"
#include "gpu/modules/kernel.h"
#include "tests/fake_cuda/padding.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Thread_local recorder_log recorded;
_Thread_local CUdevice recorder_device;
_Thread_local bool recorder_captures;

void recorder_clear(void) {
  recorded = (recorder_log){.hash = 14695981039346656037u};
}

static uint64_t hash_of(uint64_t hash, const void *data, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i)
    hash = (hash ^ ((const unsigned char *)data)[i]) * 1099511628211u; /* FNV-1a */
  return hash;
}

/* ---- devices ---- */

static CUresult init(unsigned flags) {
  (void)flags;
  return CUDA_SUCCESS;
}
static CUresult driver_version(int *version) {
  *version = 13000;
  return CUDA_SUCCESS;
}
static CUresult error_text(CUresult code, const char **text) {
  (void)code;
  *text = "an error";
  return CUDA_SUCCESS;
}
static CUresult device_count(int *n) {
  *n = 3;
  return CUDA_SUCCESS;
}
static CUresult device_name(char *name, int size, CUdevice d) {
  snprintf(name, (size_t)size, "%s", d == 1 ? "A100" : "H100");
  return CUDA_SUCCESS;
}
static CUresult device_attribute(int *value, CUdevice_attribute a, CUdevice d) {
  const bool is_hopper = d != 1;
  *value = a == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR            ? (is_hopper ? 9 : 8)
           : a == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT              ? (is_hopper ? 132 : 108)
           : a == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? (is_hopper ? 227 : 163) << 10
           : a == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE                     ? 40 << 20
                                                                        : 0;
  return CUDA_SUCCESS;
}
static CUresult current_context(CUcontext *c) {
  static int context;
  *c = (CUcontext)&context;
  return CUDA_SUCCESS;
}
static CUresult current_device(CUdevice *d) {
  *d = recorder_device;
  return CUDA_SUCCESS;
}
static CUresult is_capturing(CUstream stream, CUstreamCaptureStatus *out) {
  (void)stream;
  *out = recorder_captures ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

/* ---- kernels: their rows in the registry ---- */

static CUresult library_load(CUlibrary *l, const void *code, CUjit_option *a, void **b, unsigned c,
                             CUlibraryOption *d, void **e, unsigned f) {
  (void)code, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
  *l = (CUlibrary)&recorded; /* any */
  return CUDA_SUCCESS;
}
static CUresult get_kernel(CUkernel *out, CUlibrary l, const char *name) {
  (void)l;
  *out = (CUkernel)fa_kernel_find(name);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
static CUresult kernel_attribute(CUfunction_attribute a, int value, CUkernel k, CUdevice d) {
  (void)a, (void)value, (void)k, (void)d;
  return CUDA_SUCCESS;
}

static CUresult encode(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *base,
                       const cuuint64_t *size, const cuuint64_t *bytes, const cuuint32_t *box,
                       const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                       CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  const int numbers[] = {(int)type, (int)interleave, (int)swizzle, (int)promotion, (int)fill};
  memset(map, 0, sizeof *map);
  memcpy(map, &base, sizeof base);
  uint64_t hash = hash_of(rank, numbers, sizeof numbers);
  hash = hash_of(hash, size, rank * sizeof *size);
  hash = hash_of(hash, bytes, (rank - 1) * sizeof *bytes);
  hash = hash_of(hash, box, rank * sizeof *box);
  hash = hash_of(hash, steps, rank * sizeof *steps);
  memcpy((char *)map + sizeof base, &hash, sizeof hash);
  ++recorded.n_maps;
  return CUDA_SUCCESS;
}

/* ---- launches ---- */

/* Where a tile counter is in the parameters; -1: nowhere. */
static ptrdiff_t counter_at(const fa_kernel *k) {
  if (k->params == FA_PARAMS_HOPPER) return offsetof(fa_hopper_params, tiles.counter);
  if (k->params == FA_PARAMS_HOPPER_BIASED) return offsetof(fa_hopper_biased_params, call.tiles.counter);
  if (k->params == FA_PARAMS_HOPPER_CACHE) return offsetof(fa_hopper_cache_params, tiles.counter);
  return -1;
}

static void record_params(const fa_kernel *k, const void *params) {
  static _Thread_local _Alignas(64) unsigned char copy[4096];
  const ptrdiff_t at = counter_at(k);
  memcpy(copy, params, k->params_bytes);
  params_clear_padding(k->params, copy);
  if (at >= 0) {
    if (recorded.n_counters < 2) memcpy(&recorded.counters[recorded.n_counters++], copy + at, sizeof(int));
    memset(copy + at, 0, sizeof(int));
  }
  recorded.hash = hash_of(recorded.hash, copy, k->params_bytes);
}

static CUresult launch_ex(const CUlaunchConfig *c, CUfunction f, void **arguments, void **extra) {
  const fa_kernel *k = (const fa_kernel *)f;
  const unsigned numbers[] = {c->gridDimX,  c->gridDimY,  c->gridDimZ,       c->blockDimX,
                              c->blockDimY, c->blockDimZ, c->sharedMemBytes, c->numAttrs};
  (void)extra;
  ++recorded.n_launches;
  recorded.hash = hash_of(recorded.hash, k->name, strlen(k->name));
  recorded.hash = hash_of(recorded.hash, numbers, sizeof numbers);
  for (unsigned i = 0; i < c->numAttrs; ++i) {
    const unsigned attribute[] = {c->attrs[i].id, c->attrs[i].value.clusterDim.x};
    recorded.hash = hash_of(recorded.hash, attribute, sizeof attribute);
  }
  record_params(k, arguments[0]);
  return CUDA_SUCCESS;
}
static CUresult launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                       unsigned bz, unsigned shared, CUstream stream, void **arguments, void **extra) {
  const CUlaunchConfig c = {gx, gy, gz, bx, by, bz, shared, stream, NULL, 0};
  return launch_ex(&c, f, arguments, extra);
}

void recorder_use(void) {
  static const fa_cuda_driver functions = {.cuInit = init,
                                           .cuDriverGetVersion = driver_version,
                                           .cuGetErrorName = error_text,
                                           .cuGetErrorString = error_text,
                                           .cuDeviceGetCount = device_count,
                                           .cuDeviceGetName = device_name,
                                           .cuDeviceGetAttribute = device_attribute,
                                           .cuCtxGetCurrent = current_context,
                                           .cuCtxGetDevice = current_device,
                                           .cuStreamIsCapturing = is_capturing,
                                           .cuLibraryLoadData = library_load,
                                           .cuLibraryGetKernel = get_kernel,
                                           .cuKernelSetAttribute = kernel_attribute,
                                           .cuTensorMapEncodeTiled = encode,
                                           .cuLaunchKernelEx = launch_ex,
                                           .cuLaunchKernel = launch};
  static const char code[] = "\177ELF of every kernel";
  static const fa_cubin cubins[] = {{"all", "80", code, code + sizeof code},
                                    {"all", "90a", code, code + sizeof code}};
  fa_cuda_driver_replace(&functions);
  fa_cuda_kernels_replace(cubins, 2);
  setenv("FA_NVRTC", "off", 1);
  recorder_clear();
}
