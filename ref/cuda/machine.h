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

/* One job of a launch for several, n items of it; job is in the machine's memory. */
typedef struct fa_judge_task {
  const fa_judge_job *job;
  int64_t n;
} fa_judge_task;

/* Every function may fail with FA_ERR_DEVICE or FA_ERR_MEMORY; after that only free_all may be called. One thread at a time. */
typedef struct fa_judge_machine {
  void *self;
  size_t most_bytes; /* of memory that one call may have */
  int64_t wide_from; /* pairs of a wave whose products are in large tiles; 0: as many as pay on a device */
  size_t turns_from; /* bytes of tensors from which on inputs come with their turns; 0: half of most_bytes */
  size_t kept_bytes; /* that the next `reserve` need not be asked for, and where it stays; 0: it has to be */
  /* Memory for one call, 256-byte aligned, content undefined; what the call before had is gone. */
  fa_status (*reserve)(void *self, size_t bytes, char **memory, fa_error *err);
  /* Memory of the host to upload from, valid until the next call of it. NULL: the caller has memory for that. */
  fa_status (*stage)(void *self, size_t bytes, char **memory, fa_error *err);
  fa_status (*upload)(void *self, void *to, const void *from, size_t bytes, fa_error *err);
  /* Waits for all launches before it, and says if one of them failed. */
  fa_status (*download)(void *self, void *to, const void *from, size_t bytes, fa_error *err);
  fa_status (*clear)(void *self, void *at, size_t bytes, fa_error *err);
  /* job->n items; none: does nothing. */
  fa_status (*launch)(void *self, fa_judge_kernel kernel, const fa_judge_job *job, fa_error *err);

  /* Of a machine in the judge's process (below), which has no other launch; NULL where only the others are there. No more than
   * FA_JUDGE_MOST_TASKS, which may run in any order. */
  fa_status (*launch_all)(void *self, fa_judge_kernel kernel, const fa_judge_task *tasks, int n,
                          fa_error *err);
  /* As download, but it is there after `wait`. */
  fa_status (*fetch)(void *self, void *to, const void *from, size_t bytes, fa_error *err);
  fa_status (*wait)(void *self, fa_error *err);
} fa_judge_machine;

/* Of the tasks' blocks of threads, all in all; 0: there are too many for one launch. */
uint32_t fa_judge_batch_of(fa_judge_kernel kernel, const fa_judge_task *tasks, int n, fa_judge_batch *out);

/* Where machines come from. */
typedef struct fa_judge_machines {
  /* Once in a process, before the others. FA_ERR_UNSUPPORTED: there are none here. */
  fa_status (*begin)(fa_error *err);
  int lines; /* how many do several calls' work side by side, of long ones and of short ones; 0: as many as processors */
  /* One more, for one thread at a time; machines of several threads work side by side, on memory of one another too. */
  fa_status (*open)(fa_judge_machine **out, fa_error *err);
  void (*close)(fa_judge_machine *m);
  /* What will be uploaded from and downloaded to lies in these bytes of the host: the machine may prepare for that. In place of
   * those that it was told before. 0 bytes: nowhere in particular. */
  void (*pin)(fa_judge_machine *m, void *memory, size_t bytes);
} fa_judge_machines;

extern const fa_judge_machines fa_judge_machines_host; /* with the kernels of this program */

/* functions NULL: those of this program, which tests replace; most_bytes 0: 1 GiB. NULL: out of memory. */
fa_judge_machine *fa_judge_machine_host_new(const fa_judge_function *functions, size_t most_bytes);
void fa_judge_machine_host_free(fa_judge_machine *m);

#endif
