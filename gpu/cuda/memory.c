#include "gpu/cuda/memory.h"

#include "cases/tensor_guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t whole_bytes(const fa_buffer *b) {
  return b->bytes + 2 * FA_GUARD_BYTES;
}

fa_status fa_cuda_tensors_up(const fa_cuda_driver *d, const fa_tensors *host, fa_cuda_tensors *out,
                             CUresult *code, fa_error *err) {
  memset(out, 0, sizeof *out);
  memcpy(out->set.t, host->t, sizeof host->t);
  memcpy(out->set.owner, host->owner, sizeof host->owner);
  for (int i = 0; i < FA_T_COUNT; ++i) {
    const fa_buffer *b = &host->buffer[i];
    if (!b->base) continue;
    if (fa_buffer_is_virtual(b)) {
      *code = CUDA_SUCCESS;
      fa_cuda_tensors_free(d, out);
      return fa_fail(err, FA_ERR_UNSUPPORTED, "%s needs virtual memory, which this backend cannot give yet",
                     fa_tensor_id_name((fa_tensor_id)i));
    }
    *code = d->cuMemAlloc(&out->base[i], whole_bytes(b));
    if (*code != CUDA_SUCCESS) out->base[i] = 0;
    if (*code == CUDA_SUCCESS) *code = d->cuMemcpyHtoD(out->base[i], b->base, whole_bytes(b));
    if (*code != CUDA_SUCCESS) {
      fa_cuda_tensors_free(d, out);
      return fa_cuda_fail(d, *code, "copying tensors to the device", err);
    }
  }
  for (int i = 0; i < FA_T_COUNT; ++i) {
    const fa_tensor *t = &host->t[i];
    const int owner = host->owner[i];
    if (t->data) out->set.t[i].data = (char *)out->base[owner] + (t->data - host->buffer[owner].base);
  }
  return FA_OK;
}

fa_status fa_cuda_tensors_down(const fa_cuda_driver *d, const fa_cuda_tensors *from, fa_tensors *host,
                               CUresult *code, fa_error *err) {
  for (int i = 0; i < FA_T_COUNT; ++i) {
    const fa_buffer *b = &host->buffer[i];
    if (!from->base[i]) continue;
    *code = d->cuMemcpyDtoH(b->base, from->base[i], whole_bytes(b));
    if (*code != CUDA_SUCCESS) return fa_cuda_fail(d, *code, "copying tensors back", err);
  }
  return FA_OK;
}

void fa_cuda_tensors_free(const fa_cuda_driver *d, fa_cuda_tensors *t) {
  for (int i = 0; i < FA_T_COUNT; ++i)
    if (t->base[i]) d->cuMemFree(t->base[i]);
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
