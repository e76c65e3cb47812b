#include "gpu/cuda/memory.h"

#include "cases/tensor_guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t whole_bytes(const fa_buffer *b) {
  return b->bytes + 2 * FA_GUARD_BYTES;
}

static fa_status buffer_up(const fa_cuda_driver *d, const fa_buffer *b, CUdeviceptr *base,
                           fa_cuda_virtual *sparse, CUresult *code, fa_error *err) {
  if (fa_buffer_is_virtual(b)) {
    const fa_status status = fa_cuda_virtual_up(d, b, sparse, code, err);
    *base = sparse->base;
    return status;
  }
  *code = d->cuMemAlloc(base, whole_bytes(b));
  if (*code != CUDA_SUCCESS) *base = 0;
  if (*code == CUDA_SUCCESS) *code = d->cuMemcpyHtoD(*base, b->base, whole_bytes(b));
  return *code == CUDA_SUCCESS ? FA_OK : fa_cuda_fail(d, *code, "copying tensors to the device", err);
}

fa_status fa_cuda_tensors_up(const fa_cuda_driver *d, const fa_tensors *host, fa_cuda_tensors *out,
                             CUresult *code, fa_error *err) {
  memset(out, 0, sizeof *out);
  memcpy(out->set.t, host->t, sizeof host->t);
  memcpy(out->set.owner, host->owner, sizeof host->owner);
  for (int i = 0; i < FA_T_COUNT; ++i) {
    if (!host->buffer[i].base) continue;
    const fa_status status = buffer_up(d, &host->buffer[i], &out->base[i], &out->sparse[i], code, err);
    if (status == FA_OK) continue;
    fa_cuda_tensors_free(d, out);
    return status;
  }
  for (int i = 0; i < FA_T_COUNT; ++i) {
    const fa_tensor *t = &host->t[i];
    const int owner = host->owner[i];
    if (t->data) out->set.t[i].data = (char *)out->base[owner] + (t->data - host->buffer[owner].base);
  }
  return FA_OK;
}

fa_status fa_cuda_tensors_down(const fa_cuda_driver *d, const fa_cuda_tensors *from, fa_tensors *host,
                               bool *intact, char *where, size_t where_size, CUresult *code, fa_error *err) {
  *intact = true;
  for (int i = 0; i < FA_T_COUNT; ++i) {
    const fa_buffer *b = &host->buffer[i];
    if (!from->base[i]) continue;
    if (fa_buffer_is_virtual(b)) {
      bool kept = true;
      char what[128];
      const fa_status status =
          fa_cuda_virtual_down(d, &from->sparse[i], b, &kept, what, sizeof what, code, err);
      if (status != FA_OK) return status;
      if (!kept && *intact) snprintf(where, where_size, "%s: %s", fa_tensor_id_name((fa_tensor_id)i), what);
      *intact = *intact && kept;
    } else {
      *code = d->cuMemcpyDtoH(b->base, from->base[i], whole_bytes(b));
      if (*code != CUDA_SUCCESS) return fa_cuda_fail(d, *code, "copying tensors back", err);
    }
  }
  return FA_OK;
}

void fa_cuda_tensors_free(const fa_cuda_driver *d, fa_cuda_tensors *t) {
  for (int i = 0; i < FA_T_COUNT; ++i) {
    if (t->base[i] && !t->sparse[i].base) d->cuMemFree(t->base[i]);
    fa_cuda_virtual_free(d, &t->sparse[i]);
  }
  memset(t->base, 0, sizeof t->base);
}

/* ---- scratch ---- */

enum { NAN_BYTE = 0xff };

fa_status fa_cuda_scratch_make(const fa_cuda_driver *d, size_t bytes, fa_cuda_scratch *out, CUresult *code,
                               fa_error *err) {
  *out = (fa_cuda_scratch){.bytes = bytes};
  if (bytes == 0) return FA_OK;
  *code = d->cuMemAlloc(&out->base, bytes + 2 * FA_GUARD_BYTES);
  if (*code != CUDA_SUCCESS) out->base = 0;
  if (*code == CUDA_SUCCESS)
    *code = d->cuMemsetD8Async(out->base, NAN_BYTE, bytes + 2 * FA_GUARD_BYTES, NULL);
  if (*code == CUDA_SUCCESS) return FA_OK;
  fa_cuda_scratch_free(d, out);
  return fa_cuda_fail(d, *code, "the workspace", err);
}

void *fa_cuda_scratch_payload(const fa_cuda_scratch *s) {
  return s->base ? (void *)(s->base + FA_GUARD_BYTES) : NULL;
}

fa_status fa_cuda_scratch_check(const fa_cuda_driver *d, const fa_cuda_scratch *s, bool *intact, char *where,
                                size_t where_size, CUresult *code, fa_error *err) {
  *intact = true;
  if (!s->base) return FA_OK;
  unsigned char *guard = malloc(FA_GUARD_BYTES);
  if (!guard) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  for (int back = 0; back < 2 && *intact; ++back) {
    *code = d->cuMemcpyDtoH(guard, s->base + (back ? FA_GUARD_BYTES + s->bytes : 0), FA_GUARD_BYTES);
    if (*code != CUDA_SUCCESS) break;
    size_t changed = 0;
    for (size_t i = 0; i < FA_GUARD_BYTES; ++i) changed += guard[i] != NAN_BYTE;
    *intact = changed == 0;
    if (changed)
      snprintf(where, where_size, "%s guard of the workspace: %zu bytes changed", back ? "back" : "front",
               changed);
  }
  free(guard);
  return *code == CUDA_SUCCESS ? FA_OK : fa_cuda_fail(d, *code, "reading the workspace's guards", err);
}

void fa_cuda_scratch_free(const fa_cuda_driver *d, fa_cuda_scratch *s) {
  if (s->base) d->cuMemFree(s->base);
  s->base = 0;
}
