#include "tests/fake_cuda/parts.h"

#include "cases/tensors/set.h"
#include "gpu/kernels/params/tensor_map.h"
#include "gpu/kernels/registry/kernel.h"
#include "gpu/simt/launch.h"
#include "tests/fake_cuda/flex.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT_SHARED = 48 * 1024 };

fake_cuda fake;
static CUresult sticky; /* result of every call after a kernel has faulted */
static pid_t initialised_by;
static _Thread_local bool current;

struct fake_kernel {
  char name[96];
  const fa_kernel *of; /* its row in the registry; NULL: it has none */
  int allowed_shared;
};
typedef struct fake_kernel fake_kernel;
static fake_kernel kernels[8192];
static int n_kernels;
static char units[8192][96]; /* compiled at run time: the first of its kernels' names */
static int n_units;

static const char code[] = "\177ELF of every kernel";
const fa_cubin fake_cubins[2] = {{"all", "80", code, code + sizeof code},
                                 {"all", "90a", code, code + sizeof code}};

void fake_cuda_reset(void) {
  fake_virtual_reset();
  fake_memory_reset();
  fake_graph_reset();
  fake = (fake_cuda){
      .n_devices = 1, .major = 9, .max_shared_bytes = 227 * 1024, .memory_bytes = (size_t)1 << 30};
  setenv("FA_HOPPER", "off", 1); /* tests that want them override it */
  sticky = CUDA_SUCCESS;
  initialised_by = 0;
  current = false;
  n_kernels = n_units = 0;
}

void fake_misused(const char *format, ...) {
  va_list args;
  if (fake.misuse[0]) return;
  va_start(args, format);
  vsnprintf(fake.misuse, sizeof fake.misuse, format, args);
  va_end(args);
}

CUresult fake_enter(const char *name, bool needs_init, bool needs_context) {
  if (++fake.n_calls == fake.fail_at) return fake.fail_with;
  if (needs_init && initialised_by != getpid()) {
    fake_misused("%s in a process that has not called cuInit itself", name);
    return CUDA_ERROR_NOT_INITIALIZED;
  }
  if (needs_context && (!current || fake.no_context)) {
    fake_misused("%s without a context", name);
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  return needs_context ? sticky : CUDA_SUCCESS;
}

/* ---- devices and contexts ---- */

static CUresult init(unsigned flags) {
  FAKE_ENTER(false, false);
  initialised_by = getpid();
  return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
static CUresult driver_get_version(int *v) {
  FAKE_ENTER(false, false);
  *v = CUDA_VERSION;
  return CUDA_SUCCESS;
}
static CUresult get_error_name(CUresult code, const char **text) {
  *text = code == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : code == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
                                             : NULL;
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
static CUresult get_error_string(CUresult code, const char **text) {
  *text = "made up";
  return code == CUDA_ERROR_ILLEGAL_ADDRESS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
static CUresult device_get_count(int *n) {
  FAKE_ENTER(true, false);
  *n = fake.n_devices;
  return CUDA_SUCCESS;
}
static CUresult device_get(CUdevice *d, int index) {
  FAKE_ENTER(true, false);
  *d = index;
  return index < fake.n_devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
static CUresult device_get_name(char *name, int size, CUdevice d) {
  FAKE_ENTER(true, false);
  (void)d;
  snprintf(name, (size_t)size, "Fake GPU");
  return CUDA_SUCCESS;
}
static CUresult device_get_attribute(int *value, CUdevice_attribute a, CUdevice d) {
  FAKE_ENTER(true, false);
  (void)d;
  *value = a == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR            ? fake.major
           : a == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR          ? fake.minor
           : a == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT              ? 3
           : a == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? fake.max_shared_bytes
           : a == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE                     ? 4096
                                                                        : -1;
  return *value >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
static CUresult context_retain(CUcontext *c, CUdevice d) {
  FAKE_ENTER(true, false);
  (void)d;
  if (fake.opening) fake.opening();
  *c = (CUcontext)&fake;
  ++fake.n_contexts;
  return CUDA_SUCCESS;
}
static CUresult context_release(CUdevice d) {
  FAKE_ENTER(true, false);
  (void)d;
  --fake.n_contexts;
  return CUDA_SUCCESS;
}
static CUresult context_flags(CUdevice d, unsigned flags) {
  (void)d;
  FAKE_ENTER(true, false);
  return flags == CU_CTX_SCHED_BLOCKING_SYNC ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
static CUresult context_set(CUcontext c) {
  FAKE_ENTER(true, false);
  current = c != NULL;
  return CUDA_SUCCESS;
}
static CUresult context_get(CUcontext *c) {
  FAKE_ENTER(true, false);
  *c = current && !fake.no_context ? (CUcontext)&fake : NULL;
  return CUDA_SUCCESS;
}
static CUresult context_device(CUdevice *d) {
  FAKE_ENTER(true, true);
  *d = 0;
  return CUDA_SUCCESS;
}

/* ---- streams and events ---- */

static CUresult stream_synchronize(CUstream stream) {
  FAKE_ENTER(true, true);
  fake.n_default += !stream;
  fake_graph_no_wait("cuStreamSynchronize");
  ++fake.n_waits;
  fake_memory_flush();
  for (; fake.kernel_hangs && fake.n_launches > 0; sleep(1)) {}
  return CUDA_SUCCESS;
}
static CUresult event_create(CUevent *e, unsigned flags) {
  (void)flags;
  FAKE_ENTER(true, true);
  *e = (CUevent)calloc(1, sizeof(int));
  return *e ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
static CUresult event_record(CUevent e, CUstream stream) {
  (void)stream;
  FAKE_ENTER(true, true);
  *(int *)e = fake.n_launches;
  return CUDA_SUCCESS;
}
static CUresult event_synchronize(CUevent e) {
  (void)e;
  FAKE_ENTER(true, true);
  ++fake.n_waits;
  fake_memory_flush();
  return CUDA_SUCCESS;
}
/* A kernel takes a millisecond. */
static CUresult event_elapsed(float *ms, CUevent begin, CUevent end) {
  FAKE_ENTER(true, true);
  *ms = (float)(*(int *)end - *(int *)begin);
  return CUDA_SUCCESS;
}
static CUresult event_destroy(CUevent e) {
  free(e);
  return CUDA_SUCCESS;
}

/* ---- kernels ---- */

static CUresult library_load(CUlibrary *l, const void *image, CUjit_option *a, void **b, unsigned c,
                             CUlibraryOption *d, void **e, unsigned f) {
  (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
  FAKE_ENTER(true, false);
  if (memcmp(image, "\177ELF", 4) != 0) return CUDA_ERROR_INVALID_IMAGE;
  const char *unit = strchr(image, '('); /* the fake NVRTC's code has one; the caller frees it */
  ++fake.n_libraries;
  *l = (CUlibrary)code;
  if (!unit) return CUDA_SUCCESS;
  if (n_units == (int)(sizeof units / sizeof *units)) return CUDA_ERROR_OUT_OF_MEMORY;
  snprintf(units[n_units], sizeof *units, "%.*s", (int)strcspn(unit + 1, ",)"), unit + 1);
  *l = (CUlibrary)units[n_units++];
  return CUDA_SUCCESS;
}
static CUresult library_unload(CUlibrary l) {
  (void)l;
  FAKE_ENTER(true, false);
  return CUDA_SUCCESS;
}

static CUresult library_get_kernel(CUkernel *out, CUlibrary l, const char *name) {
  FAKE_ENTER(true, false);
  const fa_kernel *of = fa_kernel_find(name);
  const bool is_compiled = (const char *)l != code; /* and the host may have none */
  const bool is_rows = strcmp(name, "fake_rows") == 0;
  if (!is_rows &&
      (is_compiled ? strncmp(name, (const char *)l, strlen((const char *)l)) != 0 : !of || !of->entry))
    return CUDA_ERROR_NOT_FOUND;
  if (n_kernels == (int)(sizeof kernels / sizeof *kernels)) return CUDA_ERROR_OUT_OF_MEMORY;
  fake_kernel *k = &kernels[n_kernels++];
  *k = (fake_kernel){.of = of, .allowed_shared = DEFAULT_SHARED};
  snprintf(k->name, sizeof k->name, "%s", name);
  *out = (CUkernel)k;
  return CUDA_SUCCESS;
}
static CUresult kernel_set_attribute(CUfunction_attribute a, int value, CUkernel k, CUdevice d) {
  (void)d;
  FAKE_ENTER(true, false);
  if (a != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value > fake.max_shared_bytes)
    return CUDA_ERROR_INVALID_VALUE;
  ((fake_kernel *)k)->allowed_shared = value;
  return CUDA_SUCCESS;
}

/* Changes a byte of the last mapped allocation. */
static void scribble_mapped(void) {
  for (int i = FAKE_MAX_ALLOCATIONS - 1; i >= 0; --i)
    if (fake_allocations[i].mapped) {
      fake_allocations[i].data[fake.scribble_mapped] ^= 1;
      return;
    }
}

static CUresult is_capturing(CUstream stream, CUstreamCaptureStatus *out) {
  (void)stream;
  *out = CU_STREAM_CAPTURE_STATUS_ACTIVE; /* the host's counters are not a device's */
  return CUDA_SUCCESS;
}

/* What the executor reads instead of the map. */
static CUresult encode_tiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *base,
                             const cuuint64_t *size, const cuuint64_t *bytes, const cuuint32_t *box,
                             const cuuint32_t *steps, CUtensorMapInterleave interleave,
                             CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                             CUtensorMapFloatOOBfill fill) {
  (void)steps, (void)interleave, (void)promotion, (void)fill;
  if (rank != 4) return CUDA_ERROR_INVALID_VALUE;
  if (fake.no_maps) return CUDA_ERROR_NOT_SUPPORTED;
  ++fake.n_maps;
  fa_tensor_box x = {.base = base,
                     .swizzle = swizzle == CU_TENSOR_MAP_SWIZZLE_128B ? FA_SWIZZLE_128 : FA_SWIZZLE_NONE,
                     .bf16 = type == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16};
  memcpy(x.size, size, sizeof x.size);
  memcpy(x.bytes, bytes, sizeof x.bytes);
  memcpy(x.box, box, sizeof x.box);
  memcpy(map, &x, sizeof x);
  return CUDA_SUCCESS;
}

void fake_launch_run(const fake_launch *l) {
  fake_memory_flush();
  if (fake.kernel_fault != CUDA_SUCCESS) {
    sticky = fake.kernel_fault; /* reported by the next call */
    return;
  }
  fa_simt_range ranges[FAKE_MAX_ALLOCATIONS + FA_MAX_CAPTURES];
  int n = fake_flex_ranges(ranges);
  for (int i = 0; i < FAKE_MAX_ALLOCATIONS; ++i)
    if (fake_allocations[i].data && !fake_allocations[i].closed)
      ranges[n++] =
          (fa_simt_range){"device memory", fake_allocations[i].data, fake_allocations[i].bytes, true, NULL};
  const fa_simt_launch launch = {.kernel = l->kernel->of->entry,
                                 .params = fake_flex_params(l->kernel->of, l->params),
                                 .name = l->kernel->name,
                                 .grid = {l->grid[0], l->grid[1], l->grid[2]},
                                 .block = {l->block[0], l->block[1], l->block[2]},
                                 .shared_bytes = l->shared,
                                 .cluster = l->kernel->of->cluster > 1 ? (unsigned)l->kernel->of->cluster : 0,
                                 .ranges = ranges,
                                 .n_ranges = n,
                                 .n_threads = 1};
  fa_simt_report report;
  fa_error err;
  FA_ASSERT(fa_simt_run(&launch, &report, &err) == FA_OK);
  if (report.state != FA_SUBJECT_OK) {
    fprintf(stderr, "%s: %s\n", l->kernel->name, report.text);
    sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  if (fake.scribble) fake_memory_scribble();
  if (fake.scribble_mapped) scribble_mapped();
}

static CUresult launch_kernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                              unsigned bz, unsigned shared, CUstream stream, void **arguments, void **extra) {
  (void)extra;
  FAKE_ENTER(true, true);
  const fake_kernel *k = (const fake_kernel *)f;
  fake_graph_note(k->name, stream);
  fake.n_default += !stream;
  if (gx == 0 || gy == 0 || gz == 0 || gy > 65535 || gz > 65535 || (int)shared > k->allowed_shared) {
    fake_misused("launch of %s: grid %u x %u x %u, %u bytes of shared memory, %d allowed", k->name, gx, gy,
                 gz, shared, k->allowed_shared);
    return CUDA_ERROR_INVALID_VALUE;
  }
  ++fake.n_launches;
  snprintf(fake.last_kernel, sizeof fake.last_kernel, "%s", k->name);
  const bool is_rows = strcmp(k->name, "fake_rows") == 0;
  if (!is_rows && (!k->of || !k->of->entry))
    return CUDA_SUCCESS; /* compiled for the device only: nothing is computed */
  if (is_rows) {
    fake_memory_flush();
    if (fake.kernel_fault != CUDA_SUCCESS) {
      sticky = fake.kernel_fault;
      return CUDA_SUCCESS;
    }
    fake_rows((const unsigned[]){gx, gy, gz}, arguments);
    if (fake.scribble) fake_memory_scribble();
    return CUDA_SUCCESS;
  }
  const fake_launch l = {k, {gx, gy, gz}, {bx, by, bz}, shared, arguments[0]};
  if (!fake_graph_keep(&l, k->of->params_bytes)) fake_launch_run(&l);
  return CUDA_SUCCESS;
}

/* Only one attribute is supported: programmatic launch, i.e. starting before the previous kernel is done,
 * which here it always is. */
static CUresult launch_kernel_ex(const CUlaunchConfig *c, CUfunction f, void **arguments, void **extra) {
  if (c->numAttrs > 1 ||
      (c->numAttrs == 1 && c->attrs->id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION))
    fake_misused("launch of %s: an attribute that is not known", ((const fake_kernel *)f)->name);
  if (c->numAttrs == 1 && fake.major < 9)
    fake_misused("launch of %s: no kernels overlap before sm_90", ((const fake_kernel *)f)->name);
  return launch_kernel(f, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ,
                       c->sharedMemBytes, c->hStream, arguments, extra);
}

const fa_cuda_driver *fake_cuda_driver(void) {
  static const fa_cuda_driver functions = {.cuInit = init,
                                           .cuDriverGetVersion = driver_get_version,
                                           .cuGetErrorName = get_error_name,
                                           .cuGetErrorString = get_error_string,
                                           .cuDeviceGetCount = device_get_count,
                                           .cuDeviceGet = device_get,
                                           .cuDeviceGetName = device_get_name,
                                           .cuDeviceGetAttribute = device_get_attribute,
                                           .cuDevicePrimaryCtxRetain = context_retain,
                                           .cuDevicePrimaryCtxRelease = context_release,
                                           .cuDevicePrimaryCtxSetFlags = context_flags,
                                           .cuCtxSetCurrent = context_set,
                                           .cuCtxGetCurrent = context_get,
                                           .cuCtxGetDevice = context_device,
                                           .cuMemAlloc = fake_mem_alloc,
                                           .cuMemFree = fake_mem_free,
                                           .cuMemcpyHtoD = fake_copy_up,
                                           .cuMemcpyDtoH = fake_copy_down,
                                           .cuMemcpyDtoHAsync = fake_copy_down_async,
                                           .cuMemcpyHtoDAsync = fake_copy_up_async,
                                           .cuMemAllocHost = fake_host_alloc,
                                           .cuMemFreeHost = fake_host_free,
                                           .cuMemsetD8Async = fake_memset_async,
                                           .cuMemGetAllocationGranularity = fake_granularity,
                                           .cuMemAddressReserve = fake_address_reserve,
                                           .cuMemAddressFree = fake_address_free,
                                           .cuMemCreate = fake_create,
                                           .cuMemRelease = fake_release,
                                           .cuMemMap = fake_map,
                                           .cuMemUnmap = fake_unmap,
                                           .cuMemSetAccess = fake_set_access,
                                           .cuStreamCreate = fake_stream_create,
                                           .cuStreamDestroy = fake_stream_destroy,
                                           .cuStreamBeginCapture = fake_capture_begin,
                                           .cuStreamEndCapture = fake_capture_end,
                                           .cuGraphInstantiateWithFlags = fake_graph_instantiate,
                                           .cuGraphLaunch = fake_graph_launch,
                                           .cuGraphExecDestroy = fake_graph_exec_destroy,
                                           .cuGraphDestroy = fake_graph_destroy,
                                           .cuStreamIsCapturing = is_capturing,
                                           .cuStreamSynchronize = stream_synchronize,
                                           .cuEventCreate = event_create,
                                           .cuEventRecord = event_record,
                                           .cuEventSynchronize = event_synchronize,
                                           .cuEventElapsedTime = event_elapsed,
                                           .cuEventDestroy = event_destroy,
                                           .cuLibraryLoadData = library_load,
                                           .cuLibraryUnload = library_unload,
                                           .cuLibraryGetKernel = library_get_kernel,
                                           .cuKernelSetAttribute = kernel_set_attribute,
                                           .cuTensorMapEncodeTiled = encode_tiled,
                                           .cuLaunchKernelEx = launch_kernel_ex,
                                           .cuLaunchKernel = launch_kernel};
  return &functions;
}
