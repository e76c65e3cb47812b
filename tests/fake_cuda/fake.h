/* A CUDA driver for machines without a GPU: device memory is host memory, and kernels run on the host
 * executor. It enforces the real driver's rules, and fails on demand. */
#ifndef FA_TESTS_FAKE_CUDA_FAKE_H
#define FA_TESTS_FAKE_CUDA_FAKE_H

#include "gpu/driver/libcuda.h"
#include "gpu/modules/kernel.h"

typedef struct fake_cuda {
  /* inputs */
  int n_devices, major, minor, max_shared_bytes;
  size_t memory_bytes; /* of the device: allocations beyond it fail */
  int fail_at;         /* the call of this number, from 1, returns fail_with; 0: none */
  CUresult fail_with;
  CUresult kernel_fault; /* how every kernel ends, and with it the context; CUDA_SUCCESS: no fault */
  bool kernel_hangs;     /* synchronising never returns */
  bool no_context;       /* the thread has no context */
  ptrdiff_t scribble; /* != 0: every kernel writes a byte this far before (after) the payload last copied to
                         the device, whose guards are the first and last bytes of that copy */
  size_t scribble_mapped; /* != 0: every kernel changes this byte of the last mapped allocation */
  bool no_virtual_memory, no_page_locked, no_maps;
  void (*opening)(void); /* called while a context is created, to make that slow; NULL: nothing */
  /* outputs */
  int n_calls, n_launches, n_maps, n_allocations, n_contexts, n_libraries;
  int n_waits;        /* calls that wait for the device: allocations, copies that are not asynchronous, ... */
  int n_streams;      /* created and not destroyed */
  CUstream copied_in; /* the last copy to the device */
  int n_default;      /* calls in the default stream, in which all others are waited for */
  int n_graphs;       /* executable ones that are not destroyed */
  int n_graph_launches;    /* of graphs with a kernel */
  int n_concurrent_writes; /* writes in streams other than the NULL stream, outside of a capture */
  char last_kernel[96];    /* launched */
  size_t bytes_in_use;
  char misuse[200]; /* the first violated rule; "" = none */
} fake_cuda;

extern fake_cuda fake;

/* Resets to an H100 without faults or counted calls. */
void fake_cuda_reset(void);
/* The driver's functions. */
const fa_cuda_driver *fake_cuda_driver(void);
/* Stands for the code of every kernel, for sm_80 and sm_90a, in builds without the real code. */
extern const fa_cubin fake_cubins[2];

#endif
