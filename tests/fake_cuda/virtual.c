/* Virtual memory of the fake driver: address space is inaccessible pages until memory is mapped. */
#include "tests/fake_cuda/parts.h"

#include <string.h>
#include <sys/mman.h>

enum { GRANULE = 2 << 20, MAX_RESERVED = 64, MAX_HANDLES = 256 };

static struct {
  char *data;         /* NULL: unused */
  size_t bytes;       /* as asked for */
  char *pages;        /* of the system */
  size_t pages_bytes; /* with room to align */
} reserved[MAX_RESERVED];

static struct {
  size_t bytes;      /* 0: unused */
  bool held, mapped; /* freed when neither */
} handles[MAX_HANDLES];

static void handle_changed(CUmemGenericAllocationHandle handle) {
  if (handles[handle - 1].held || handles[handle - 1].mapped) return;
  fake.bytes_in_use -= handles[handle - 1].bytes;
  --fake.n_allocations;
  handles[handle - 1].bytes = 0;
}

static bool is_whole(size_t bytes) {
  return bytes > 0 && bytes % GRANULE == 0;
}

CUresult fake_granularity(size_t *granule, const CUmemAllocationProp *prop,
                          CUmemAllocationGranularity_flags option) {
  FAKE_ENTER(true, false);
  if (fake.no_virtual_memory) return CUDA_ERROR_NOT_SUPPORTED;
  *granule = GRANULE;
  return prop->type == CU_MEM_ALLOCATION_TYPE_PINNED && option == CU_MEM_ALLOC_GRANULARITY_MINIMUM
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

CUresult fake_address_reserve(CUdeviceptr *p, size_t bytes, size_t alignment, CUdeviceptr wish,
                              unsigned long long flags) {
  FAKE_ENTER(true, true);
  int i = 0;
  while (i < MAX_RESERVED && reserved[i].data) ++i;
  if (!is_whole(bytes) || alignment || wish || flags) {
    fake_misused("cuMemAddressReserve of %zu bytes", bytes);
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (i == MAX_RESERVED) return CUDA_ERROR_OUT_OF_MEMORY;
  char *pages = mmap(NULL, bytes + GRANULE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  reserved[i].pages = pages;
  reserved[i].pages_bytes = bytes + GRANULE;
  reserved[i].data = pages + (GRANULE - (CUdeviceptr)pages % GRANULE);
  reserved[i].bytes = bytes;
  ++fake.n_allocations;
  *p = (CUdeviceptr)reserved[i].data;
  return CUDA_SUCCESS;
}

static bool overlaps(const fake_allocation *a, CUdeviceptr p, size_t bytes) {
  return a->data && (CUdeviceptr)a->data < p + bytes && p < (CUdeviceptr)a->data + a->bytes;
}

CUresult fake_address_free(CUdeviceptr p, size_t bytes) {
  FAKE_ENTER(true, true);
  int i = 0;
  while (i < MAX_RESERVED && ((CUdeviceptr)reserved[i].data != p || reserved[i].bytes != bytes)) ++i;
  if (i == MAX_RESERVED) {
    fake_misused("cuMemAddressFree of what was not reserved");
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (int k = 0; k < FAKE_MAX_ALLOCATIONS; ++k)
    if (overlaps(&fake_allocations[k], p, bytes)) fake_misused("cuMemAddressFree below mapped memory");
  munmap(reserved[i].pages, reserved[i].pages_bytes);
  reserved[i].data = NULL;
  --fake.n_allocations;
  return CUDA_SUCCESS;
}

CUresult fake_create(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *prop,
                     unsigned long long flags) {
  FAKE_ENTER(true, true);
  int i = 0;
  while (i < MAX_HANDLES && handles[i].bytes) ++i;
  if (!is_whole(bytes) || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED || flags) {
    fake_misused("cuMemCreate of %zu bytes", bytes);
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (i == MAX_HANDLES || fake.bytes_in_use + bytes > fake.memory_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  handles[i].bytes = bytes;
  handles[i].held = true;
  handles[i].mapped = false;
  fake.bytes_in_use += bytes;
  ++fake.n_allocations;
  *handle = (CUmemGenericAllocationHandle)(i + 1);
  return CUDA_SUCCESS;
}

CUresult fake_release(CUmemGenericAllocationHandle handle) {
  FAKE_ENTER(true, false);
  if (handle == 0 || handle > MAX_HANDLES || !handles[handle - 1].held) {
    fake_misused("cuMemRelease of no handle");
    return CUDA_ERROR_INVALID_VALUE;
  }
  handles[handle - 1].held = false;
  handle_changed(handle);
  return CUDA_SUCCESS;
}

CUresult fake_map(CUdeviceptr p, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  FAKE_ENTER(true, true);
  bool ok = p % GRANULE == 0 && offset == 0 && flags == 0 && handle >= 1 && handle <= MAX_HANDLES &&
            handles[handle - 1].held && handles[handle - 1].bytes == bytes,
       inside = false;
  for (int i = 0; i < FAKE_MAX_ALLOCATIONS; ++i) ok = ok && !overlaps(&fake_allocations[i], p, bytes);
  for (int i = 0; i < MAX_RESERVED; ++i)
    inside = inside || (reserved[i].data && p >= (CUdeviceptr)reserved[i].data &&
                        p + bytes <= (CUdeviceptr)reserved[i].data + reserved[i].bytes);
  if (!ok || !inside) {
    fake_misused("cuMemMap of %zu bytes where they cannot be", bytes);
    return CUDA_ERROR_INVALID_VALUE;
  }
  const int i = fake_allocation_unused();
  if (i < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  fake_allocations[i] = (fake_allocation){(char *)p, bytes, handle, true};
  handles[handle - 1].mapped = true;
  return CUDA_SUCCESS;
}

/* The mapping of exactly these bytes, or -1. */
static int mapping_of(CUdeviceptr p, size_t bytes) {
  for (int i = 0; i < FAKE_MAX_ALLOCATIONS; ++i) {
    const fake_allocation *a = &fake_allocations[i];
    if (a->mapped && a->data == (char *)p && a->bytes == bytes) return i;
  }
  return -1;
}

CUresult fake_set_access(CUdeviceptr p, size_t bytes, const CUmemAccessDesc *access, size_t n) {
  FAKE_ENTER(true, true);
  const int i = mapping_of(p, bytes);
  if (i < 0 || n != 1 || access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE ||
      access->location.type != CU_MEM_LOCATION_TYPE_DEVICE || access->location.id != 0) {
    fake_misused("cuMemSetAccess of %zu bytes", bytes);
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (mprotect((void *)p, bytes, PROT_READ | PROT_WRITE) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  memset((void *)p, 0xa5, bytes);
  fake_allocations[i].closed = false;
  return CUDA_SUCCESS;
}

static void drop_mapping(int i) {
  fake_allocation *a = &fake_allocations[i];
  const CUmemGenericAllocationHandle handle = a->mapped;
  mprotect(a->data, a->bytes, PROT_NONE);
  madvise(a->data, a->bytes, MADV_DONTNEED);
  *a = (fake_allocation){0};
  handles[handle - 1].mapped = false;
  handle_changed(handle);
}

CUresult fake_unmap(CUdeviceptr p, size_t bytes) {
  FAKE_ENTER(true, true);
  const int i = mapping_of(p, bytes);
  if (i < 0) {
    fake_misused("cuMemUnmap of what is not mapped");
    return CUDA_ERROR_INVALID_VALUE;
  }
  drop_mapping(i);
  return CUDA_SUCCESS;
}

void fake_virtual_reset(void) {
  for (int i = 0; i < FAKE_MAX_ALLOCATIONS; ++i)
    if (fake_allocations[i].mapped) drop_mapping(i);
  memset(handles, 0, sizeof handles);
  for (int i = 0; i < MAX_RESERVED; ++i)
    if (reserved[i].data) munmap(reserved[i].pages, reserved[i].pages_bytes);
  memset(reserved, 0, sizeof reserved);
}
