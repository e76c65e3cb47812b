/* A region of memory that the child maps too. Whole guarded buffers are laid out in it, so that what the child writes
 * outside a tensor, into its gaps or into an input is found as it is for kernels in this process.
 *
 * Payloads are copied in and out. Guards, which of small tensors are most of the bytes, are not: the region has its own,
 * which are written where a layout needs them anew, read after every run, and copied out only if the child has changed
 * them. */
#ifndef FA_GPU_BACKENDS_EXEC_MEMORY_H
#define FA_GPU_BACKENDS_EXEC_MEMORY_H

#include "gpu/backends/exec_tensors.h"

/* Zeroed: there is none yet. */
typedef struct fa_exec_memory {
  char *map;
  size_t bytes;
  int fd; /* meaningless without map */
  /* By which the other process opens it: /proc/PID/fd/N, or /proc/self/fd/N if it inherits it. */
  char path[64];
  bool inherited; /* it does, because it must not look into this process */
  bool sealed;    /* nobody may change its size: a larger one is another region */
  /* There is another region, which the child does not have yet; for the caller to take note of. */
  bool renewed;
  /* Byte where layouts begin from now on: a multiple of 4096, 0 unless somebody moves tensors about. */
  size_t first;
  int n_parts;
  struct fa_exec_part {
    const fa_buffer *buffer;
    size_t at;    /* byte of the region where its front guard begins */
    size_t bytes; /* of its payload */
    bool guarded; /* its guards were seen to be intact after the last run of this layout */
  } part[FA_EXEC_MAX_TENSORS];
} fa_exec_memory;

/* Before the child starts: a region that it inherits as this descriptor. FA_ERR_MEMORY. */
fa_status fa_exec_memory_inherit(fa_exec_memory *m, int as, bool sealed, fa_error *err);
/* Gives every buffer of the list a place, and makes the region large enough. */
fa_status fa_exec_memory_place(fa_exec_memory *m, const fa_exec_tensors *x, fa_error *err);
/* Byte of the region that holds element 0 of a tensor of the placed list. */
size_t fa_exec_memory_offset(const fa_exec_memory *m, const fa_exec_tensor *e);
/* Before a run: writes what it is to find. After it: reads what it has left. The region's guards must not be trusted in
 * between, nor after a run whose outcome was not copied out. */
void fa_exec_memory_copy_in(fa_exec_memory *m);
void fa_exec_memory_copy_out(fa_exec_memory *m);
/* True if the child has changed a buffer, guards included. */
bool fa_exec_memory_differs(const fa_exec_memory *m, const fa_buffer *b);
void fa_exec_memory_close(fa_exec_memory *m);

#endif
