#include "gpu/cuda/memory.h"

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
