/* A CUDA driver for machines without a GPU: device memory is host memory, and kernels run on the host
 * executor. It holds its callers to the real one's rules, and fails on demand. */
#ifndef FA_TESTS_FAKE_CUDA_FAKE_H
#define FA_TESTS_FAKE_CUDA_FAKE_H

#include "gpu/driver/libcuda.h"
#include "gpu/modules/kernel.h"

typedef struct fake_cuda {
  /* to be set */
  int n_devices, major, minor, max_shared_bytes;
  size_t memory_bytes; /* of the device: allocations beyond it fail */
  int fail_at;         /* the call of this number, from 1, returns fail_with; 0: none */
  CUresult fail_with;
  CUresult kernel_fault; /* every kernel ends like this, and with it the context; CUDA_SUCCESS: no fault */
  bool kernel_hangs;     /* synchronising never returns */
  bool no_context;       /* the thread has none */
  ptrdiff_t scribble; /* != 0: every kernel writes a byte so far before (after) the payload of what was copied
                         up last: its guards are the first and the last bytes of that copy */
  size_t scribble_mapped; /* != 0: every kernel changes this byte of the last mapped allocation */
  bool no_virtual_memory, no_page_locked, no_maps;
  void (*opening)(void); /* what creating a context takes long for; NULL: nothing */
  /* to be looked at */
  int n_calls, n_launches, n_maps, n_allocations, n_contexts, n_libraries;
  int n_waits;   /* calls that wait for the device: allocations, copies that are not asynchronous, ... */
  int n_streams; /* created and not destroyed */
  int n_graphs;  /* executable ones, not destroyed */
  int n_graph_launches; /* of graphs that hold a kernel */
  int n_concurrent_writes;        /* writes in streams other than the NULL stream, outside of a capture */
  char last_kernel[96]; /* launched */
  size_t bytes_in_use;
  char misuse[200]; /* the first rule that was broken; "" = none */
} fake_cuda;

extern fake_cuda fake;

/* An H100 with nothing wrong, no calls counted. */
void fake_cuda_reset(void);
/* The functions. */
const fa_cuda_driver *fake_cuda_driver(void);
/* What stands for the code of every kernel, for sm_80 and sm_90a: for builds without the real one. */
extern const fa_cubin fake_cubins[2];

#endif
