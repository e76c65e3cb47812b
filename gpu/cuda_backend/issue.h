/* Ways to issue the kernels of a call that a correct call does not notice: as a graph, and while another
 * stream works. */
#ifndef FA_GPU_CUDA_BACKEND_ISSUE_H
#define FA_GPU_CUDA_BACKEND_ISSUE_H

#include "gpu/driver/libcuda.h"

/* Of one context; all zero: nothing was made yet. */
typedef struct fa_cuda_issue {
  CUstream captured, beside;
  CUgraphExec graph; /* the last one: it may still run */
  CUdeviceptr work;  /* what the other stream writes */
} fa_cuda_issue;

/* From here on kernels that go to *stream are only noted. */
CUresult fa_cuda_graph_begin(const fa_cuda_driver *d, fa_cuda_issue *x, CUstream *stream);
/* Ends that. launch: what was noted runs once, in the NULL stream, behind everything there; the graph before
 * must have ended. */
CUresult fa_cuda_graph_end(const fa_cuda_driver *d, fa_cuda_issue *x, bool launch);

/* Some 100 us of writes to memory of its own, in a stream that waits for no other. */
CUresult fa_cuda_concurrent_writer(const fa_cuda_driver *d, fa_cuda_issue *x);

/* Waits for the other stream. */
void fa_cuda_issue_free(const fa_cuda_driver *d, fa_cuda_issue *x);

#endif
