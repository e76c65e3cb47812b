/* What the judge on a device runs on: memory of its own, and kernels. machine_host.c is the processor itself, with the same
 * kernels compiled as C++; machine_device.c a GPU. */
#ifndef FA_REF_CUDA_MACHINE_H
#define FA_REF_CUDA_MACHINE_H

#include "cases/base/status.h"
#include "ref/cuda/host.h"

typedef enum fa_judge_kernel {
#define FA_JUDGE_KERNEL(name, kind) FA_JUDGE_KERNEL_##name,
#include "ref/cuda/kernels.def"
#undef FA_JUDGE_KERNEL
  FA_JUDGE_N_KERNELS
} fa_judge_kernel;

/* Every function may fail with FA_ERR_DEVICE or FA_ERR_MEMORY; after that only free_all may be called. One thread at a time. */
typedef struct fa_judge_machine {
  void *self;
  size_t most_bytes; /* of memory that one call may have */
  /* Memory for one call, 256-byte aligned, content undefined; what the call before had is gone. */
  fa_status (*reserve)(void *self, size_t bytes, char **memory, fa_error *err);
  /* Memory of the host to upload from, valid until the next call of it. */
  fa_status (*stage)(void *self, size_t bytes, char **memory, fa_error *err);
  fa_status (*upload)(void *self, void *to, const void *from, size_t bytes, fa_error *err);
  /* Waits for all launches before it, and says if one of them failed. */
  fa_status (*download)(void *self, void *to, const void *from, size_t bytes, fa_error *err);
  fa_status (*clear)(void *self, void *at, size_t bytes, fa_error *err);
  /* job->n items; none: does nothing. */
  fa_status (*launch)(void *self, fa_judge_kernel kernel, const fa_judge_job *job, fa_error *err);
} fa_judge_machine;

/* functions NULL: those of this program, which tests replace; most_bytes 0: 1 GiB. NULL: out of memory. */
fa_judge_machine *fa_judge_machine_host_new(const fa_judge_function *functions, size_t most_bytes);
void fa_judge_machine_host_free(fa_judge_machine *m);
/* One for the whole process, made when it is first asked for. */
fa_status fa_judge_machine_host_open(fa_judge_machine **out, fa_error *err);

#endif
