/* Memory of the fake driver. Asynchronous copies are done as late as the real driver may: when a kernel
 * starts or somebody waits. This catches code that changes the source too early or reads the destination too
 * soon. */
#include "tests/fake_cuda/parts.h"

#include "cases/tensors/set.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PENDING = 64, MAX_HOST = 16 };

fake_allocation fake_allocations[FAKE_MAX_ALLOCATIONS];

/* Pending copies, in order. */
static struct {
  char *to;
  const char *from; /* NULL: a fill */
  unsigned char value;
  size_t bytes;
} pending[MAX_PENDING];
static int n_pending;

static struct {
  char *data; /* NULL: unused */
  size_t bytes;
} host[MAX_HOST]; /* page-locked */

static CUdeviceptr copied_up; /* last */
static size_t copied_up_bytes;

void fake_memory_flush(void) {
  for (int i = 0; i < n_pending; ++i)
    if (pending[i].from)
      memcpy(pending[i].to, pending[i].from, pending[i].bytes);
    else
      memset(pending[i].to, pending[i].value, pending[i].bytes);
  n_pending = 0;
}

void fake_memory_reset(void) {
  n_pending = 0;
  for (int i = 0; i < FAKE_MAX_ALLOCATIONS; ++i) free(fake_allocations[i].data);
  for (int i = 0; i < MAX_HOST; ++i) free(host[i].data);
  memset(fake_allocations, 0, sizeof fake_allocations);
  memset(host, 0, sizeof host);
  copied_up = 0;
}

int fake_allocation_of(CUdeviceptr p, size_t bytes) {
  for (int i = 0; i < FAKE_MAX_ALLOCATIONS; ++i)
    if (fake_allocations[i].data && !fake_allocations[i].closed &&
        p >= (CUdeviceptr)fake_allocations[i].data &&
        p + bytes <= (CUdeviceptr)fake_allocations[i].data + fake_allocations[i].bytes)
      return i;
  return -1;
}

int fake_allocation_unused(void) {
  for (int i = 0; i < FAKE_MAX_ALLOCATIONS; ++i)
    if (!fake_allocations[i].data) return i;
  return -1;
}

/* The real driver's allocations also do this now and then. */
static void wait_for_device(void) {
  fake_graph_no_wait("a copy that waits");
  ++fake.n_waits;
  fake_memory_flush();
}

/* ---- allocations ---- */

CUresult fake_mem_alloc(CUdeviceptr *p, size_t bytes) {
  FAKE_ENTER(true, true);
  const int i = fake_allocation_unused();
  void *data = NULL;
  wait_for_device();
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (i < 0 || fake.bytes_in_use + bytes > fake.memory_bytes || posix_memalign(&data, 512, bytes) != 0)
    return CUDA_ERROR_OUT_OF_MEMORY;
  memset(data, 0xa5, bytes);
  fake_allocations[i].data = data;
  fake_allocations[i].bytes = bytes;
  ++fake.n_allocations;
  fake.bytes_in_use += bytes;
  *p = (CUdeviceptr)data;
  return CUDA_SUCCESS;
}

CUresult fake_mem_free(CUdeviceptr p) {
  FAKE_ENTER(true, true);
  const int i = fake_allocation_of(p, 1);
  wait_for_device();
  if (i < 0 || (CUdeviceptr)fake_allocations[i].data != p || fake_allocations[i].mapped) {
    fake_misused("cuMemFree of what was not allocated");
    return CUDA_ERROR_INVALID_VALUE;
  }
  fake.bytes_in_use -= fake_allocations[i].bytes;
  --fake.n_allocations;
  free(fake_allocations[i].data);
  fake_allocations[i].data = NULL;
  return CUDA_SUCCESS;
}

CUresult fake_host_alloc(void **p, size_t bytes) {
  FAKE_ENTER(true, true);
  int i = 0;
  wait_for_device();
  while (i < MAX_HOST && host[i].data) ++i;
  if (i == MAX_HOST || fake.no_page_locked || !(host[i].data = malloc(bytes)))
    return CUDA_ERROR_OUT_OF_MEMORY;
  memset(host[i].data, 0x5a, bytes);
  host[i].bytes = bytes;
  ++fake.n_allocations;
  *p = host[i].data;
  return CUDA_SUCCESS;
}

CUresult fake_host_free(void *p) {
  FAKE_ENTER(true, true);
  int i = 0;
  if (n_pending) fake_misused("cuMemFreeHost while copies are under way");
  wait_for_device();
  while (i < MAX_HOST && host[i].data != p) ++i;
  if (i == MAX_HOST) {
    fake_misused("cuMemFreeHost of what was not allocated");
    return CUDA_ERROR_INVALID_VALUE;
  }
  free(host[i].data);
  host[i].data = NULL;
  --fake.n_allocations;
  return CUDA_SUCCESS;
}

/* ---- copies ---- */

static CUresult enqueue(void *to, const void *from, unsigned char value, CUdeviceptr device, size_t bytes) {
  if (fake_allocation_of(device, bytes) < 0) {
    fake_misused("%zu bytes leave device memory", bytes);
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (n_pending == MAX_PENDING) fake_memory_flush();
  pending[n_pending].to = to;
  pending[n_pending].from = from;
  pending[n_pending].value = value;
  pending[n_pending++].bytes = bytes;
  return CUDA_SUCCESS;
}

static bool is_page_locked(const void *p, size_t bytes) {
  for (int i = 0; i < MAX_HOST; ++i)
    if (host[i].data && (const char *)p >= host[i].data &&
        (const char *)p + bytes <= host[i].data + host[i].bytes)
      return true;
  return false;
}

/* If the host's memory is not page-locked, the real driver waits too. */
static CUresult copy_async(void *to, const void *from, const void *on_host, CUdeviceptr device,
                           size_t bytes) {
  const CUresult code = enqueue(to, from, 0, device, bytes);
  if (code == CUDA_SUCCESS && !is_page_locked(on_host, bytes)) wait_for_device();
  return code;
}

static void remember_copy_up(CUdeviceptr to, size_t bytes) {
  copied_up = to;
  copied_up_bytes = bytes;
}

CUresult fake_copy_up(CUdeviceptr to, const void *from, size_t bytes) {
  FAKE_ENTER(true, true);
  fake.n_default++;
  fake.copied_in = NULL;
  const CUresult code = enqueue((void *)to, from, 0, to, bytes);
  wait_for_device();
  remember_copy_up(to, bytes);
  return code;
}

CUresult fake_copy_down(void *to, CUdeviceptr from, size_t bytes) {
  FAKE_ENTER(true, true);
  fake.n_default++;
  const CUresult code = enqueue(to, (const void *)from, 0, from, bytes);
  wait_for_device();
  return code;
}

CUresult fake_copy_up_async(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  FAKE_ENTER(true, true);
  fake.n_default += !stream;
  fake.copied_in = stream;
  remember_copy_up(to, bytes);
  return copy_async((void *)to, from, from, to, bytes);
}

CUresult fake_copy_down_async(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  FAKE_ENTER(true, true);
  fake.n_default += !stream;
  return copy_async(to, (const void *)from, to, from, bytes);
}

CUresult fake_memset_async(CUdeviceptr p, unsigned char value, size_t bytes, CUstream stream) {
  FAKE_ENTER(true, true);
  fake.n_default += !stream;
  fake_graph_note("cuMemsetD8Async", stream);
  return enqueue((void *)p, NULL, value, p, bytes);
}

void fake_memory_scribble(void) {
  char *begin = (char *)copied_up + FA_GUARD_BYTES,
       *end = (char *)copied_up + copied_up_bytes - FA_GUARD_BYTES;
  if (copied_up == 0 || fake_allocation_of(copied_up, copied_up_bytes) < 0) return;
  if (fake.scribble < 0) begin[fake.scribble] = 0x11;
  if (fake.scribble > 0) end[fake.scribble] = 0x11;
}
