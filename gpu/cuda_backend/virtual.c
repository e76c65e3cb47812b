#include "gpu/cuda_backend/virtual.h"

#include "gpu/cuda_backend/copy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parts of the buffer that are backed by memory on the host, in order: front guard, islands, back guard. */
static int n_parts(const fa_buffer *b) {
  return fa_buffer_n_spans(b) + 2;
}

static fa_span part(const fa_buffer *b, int i) {
  if (i == 0) return (fa_span){0, FA_GUARD_BYTES};
  if (i == n_parts(b) - 1) return (fa_span){FA_GUARD_BYTES + b->bytes, 2 * FA_GUARD_BYTES + b->bytes};
  const fa_span s = fa_buffer_span(b, i - 1);
  return (fa_span){FA_GUARD_BYTES + s.begin, FA_GUARD_BYTES + s.end};
}

/* ---- address space ---- */

static CUmemAllocationProp memory_of(CUdevice device) {
  return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
}

/* The granules under all parts; adjacent ones are merged. */
static fa_status find_mapped(const fa_buffer *host, fa_cuda_virtual *v, fa_error *err) {
  const int n = n_parts(host);
  v->mapped = malloc((size_t)n * sizeof *v->mapped);
  if (!v->mapped) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  for (int i = 0; i < n; ++i) {
    const fa_span p = part(host, i);
    const fa_span whole = {p.begin / v->granule * v->granule,
                           (p.end + v->granule - 1) / v->granule * v->granule};
    if (v->n > 0 && whole.begin <= v->mapped[v->n - 1].end) {
      if (whole.end > v->mapped[v->n - 1].end) v->mapped[v->n - 1].end = whole.end;
    } else {
      v->mapped[v->n++] = whole;
    }
  }
  return FA_OK;
}

/* The mapping keeps the memory alive, so its handle can be released. */
static CUresult map_one(const fa_cuda_driver *d, CUdevice device, CUdeviceptr at, size_t bytes) {
  const CUmemAllocationProp memory = memory_of(device);
  const CUmemAccessDesc access = {.location = memory.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle handle;
  CUresult code = d->cuMemCreate(&handle, bytes, &memory, 0);
  if (code != CUDA_SUCCESS) return code;
  code = d->cuMemMap(at, bytes, 0, handle, 0);
  const CUresult released = d->cuMemRelease(handle);
  if (code != CUDA_SUCCESS) return code;
  code = d->cuMemSetAccess(at, bytes, &access, 1);
  if (code == CUDA_SUCCESS) code = released;
  if (code != CUDA_SUCCESS) d->cuMemUnmap(at, bytes);
  return code;
}

static CUresult reserve(const fa_cuda_driver *d, CUdevice device, fa_cuda_virtual *v) {
  CUresult code = d->cuMemAddressReserve(&v->base, v->reserved, 0, 0, 0);
  if (code != CUDA_SUCCESS) {
    v->base = 0;
    return code;
  }
  const int n = v->n;
  for (v->n = 0; v->n < n; ++v->n) { /* v->n counts what must be freed */
    const fa_span s = v->mapped[v->n];
    code = map_one(d, device, v->base + s.begin, s.end - s.begin);
    if (code != CUDA_SUCCESS) return code;
  }
  return CUDA_SUCCESS;
}

/* ---- copies ---- */

/* Makes part of a granule what the granule was filled with, whose words a part of odd bytes begins amid. */
static void fill_guard(char *granule, size_t begin, size_t bytes) {
  const uint32_t word = FA_PATTERN_WORD(FA_PATTERN_GUARD), turn = 8 * (begin % sizeof word);
  fa_pattern_fill(granule + begin, bytes, turn ? word >> turn | word << (32 - turn) : word);
}

/* Copies the intersection of the granule at `begins` with the host's parts, from the host or to it. *first:
 * the first part that may reach into the granule; it advances. */
static void exchange(const fa_buffer *host, size_t at, size_t granule, char *stage, bool to_host,
                     int *first) {
  while (*first < n_parts(host) && part(host, *first).end <= at) ++*first;
  for (int i = *first; i < n_parts(host) && part(host, i).begin < at + granule; ++i) {
    const fa_span p = part(host, i);
    const size_t begin = p.begin > at ? p.begin : at, end = p.end < at + granule ? p.end : at + granule;
    if (to_host) {
      memcpy(host->base + begin, stage + (begin - at), end - begin);
      fill_guard(stage, begin - at, end - begin);
    } else {
      memcpy(stage + (begin - at), host->base + begin, end - begin);
    }
  }
}

static CUresult copy_up(const fa_cuda_driver *d, const fa_buffer *host, const fa_cuda_virtual *v,
                        CUstream stream, char *stage) {
  int first = 0;
  for (int i = 0; i < v->n; ++i)
    for (size_t at = v->mapped[i].begin; at < v->mapped[i].end; at += v->granule) {
      fa_pattern_fill(stage, v->granule, FA_PATTERN_WORD(FA_PATTERN_GUARD));
      exchange(host, at, v->granule, stage, false, &first);
      const CUresult code = fa_cuda_copy_up(d, v->base + at, stage, v->granule, stream);
      if (code != CUDA_SUCCESS) return code;
    }
  return CUDA_SUCCESS;
}

fa_status fa_cuda_virtual_down(const fa_cuda_driver *d, const fa_cuda_virtual *from, const fa_buffer *host,
                               CUstream stream, bool *intact, char *where, size_t where_size, CUresult *code,
                               fa_error *err) {
  char *stage = malloc(from->granule);
  int first = 0;
  *intact = true;
  *code = CUDA_SUCCESS;
  if (!stage) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  for (int i = 0; i < from->n && *code == CUDA_SUCCESS; ++i)
    for (size_t at = from->mapped[i].begin; at < from->mapped[i].end; at += from->granule) {
      *code = fa_cuda_copy_down(d, stage, from->base + at, from->granule, stream);
      if (*code != CUDA_SUCCESS) break;
      exchange(host, at, from->granule, stage, true, &first);
      const size_t changed =
          fa_pattern_first_difference(stage, from->granule, FA_PATTERN_WORD(FA_PATTERN_GUARD));
      if (changed == from->granule || !*intact) continue;
      *intact = false;
      snprintf(where, where_size,
               "byte %" PRId64 " of the buffer was written, a page or more from any element",
               (int64_t)(at + changed) - FA_GUARD_BYTES);
    }
  free(stage);
  return *code == CUDA_SUCCESS ? FA_OK : fa_cuda_fail(d, *code, "copying tensors back", err);
}

/* ---- whole buffers ---- */

fa_status fa_cuda_virtual_up(const fa_cuda_driver *d, const fa_buffer *host, CUstream stream,
                             fa_cuda_virtual *out, CUresult *code, fa_error *err) {
  CUdevice device = 0;
  *out = (fa_cuda_virtual){0};
  *code = d->cuCtxGetDevice(&device);
  if (*code != CUDA_SUCCESS) return fa_cuda_fail(d, *code, "the device", err);
  const CUmemAllocationProp memory = memory_of(device);
  *code = d->cuMemGetAllocationGranularity(&out->granule, &memory, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  if (*code == CUDA_ERROR_NOT_SUPPORTED) {
    *code = CUDA_SUCCESS;
    return fa_fail(err, FA_ERR_UNSUPPORTED, "strides so large need virtual memory, which the device has not");
  }
  if (*code != CUDA_SUCCESS) return fa_cuda_fail(d, *code, "the granularity of memory", err);
  fa_status status = find_mapped(host, out, err);
  if (status != FA_OK) return status;
  out->reserved = out->mapped[out->n - 1].end;
  char *stage = malloc(out->granule);
  if (stage) {
    *code = reserve(d, device, out);
    if (*code == CUDA_SUCCESS) *code = copy_up(d, host, out, stream, stage);
    if (*code != CUDA_SUCCESS) status = fa_cuda_fail(d, *code, "virtual memory on the device", err);
  } else {
    status = fa_fail(err, FA_ERR_MEMORY, "out of memory");
  }
  free(stage);
  if (status != FA_OK) fa_cuda_virtual_free(d, out);
  return status;
}

void fa_cuda_virtual_free(const fa_cuda_driver *d, fa_cuda_virtual *v) {
  bool empty = true; /* address space cannot be freed while memory is mapped in it */
  for (int i = 0; v->base && i < v->n; ++i)
    if (d->cuMemUnmap(v->base + v->mapped[i].begin, v->mapped[i].end - v->mapped[i].begin) != CUDA_SUCCESS)
      empty = false;
  if (v->base && empty) d->cuMemAddressFree(v->base, v->reserved);
  free(v->mapped);
  *v = (fa_cuda_virtual){0};
}
