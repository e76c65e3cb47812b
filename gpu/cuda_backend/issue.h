/* Ways to issue the kernels of a call that must not affect a correct one: as a graph, and while another
 * stream works. */
#ifndef FA_GPU_CUDA_BACKEND_ISSUE_H
#define FA_GPU_CUDA_BACKEND_ISSUE_H

#include "gpu/driver/libcuda.h"

/* State of one context. Zeroed: nothing was created yet. */
typedef struct fa_cuda_issue {
  CUstream own; /* in which everything is done but what is beside; NULL: the default stream */
  CUstream captured, beside;
  CUgraphExec graph; /* the last one: it may still run */
  CUdeviceptr work;  /* what the other stream writes to */
  CUdeviceptr small; /* what a graph reads anew each time; 0: nothing asked for it yet */
} fa_cuda_issue;

/* From here on, kernels launched in *stream are only captured. */
CUresult fa_cuda_graph_begin(const fa_cuda_driver *d, fa_cuda_issue *x, CUstream *stream);
/* Ends the capture. launch: launches the graph once in x->own, after everything there; the previous graph must
 * have ended. */
CUresult fa_cuda_graph_end(const fa_cuda_driver *d, fa_cuda_issue *x, bool launch);

/* Launches the last graph once more. */
CUresult fa_cuda_graph_again(const fa_cuda_driver *d, fa_cuda_issue *x);

/* Copies so many bytes, at most FA_CUDA_SMALL, to x->small, after everything in x->own. */
enum { FA_CUDA_SMALL = 64 };
CUresult fa_cuda_small_write(const fa_cuda_driver *d, fa_cuda_issue *x, const void *data, size_t bytes);

/* Gives x a stream of its own, which waits for no other. */
CUresult fa_cuda_own_stream(const fa_cuda_driver *d, fa_cuda_issue *x);

/* Starts about 100 us of writes to private memory, in a stream that waits for no other. */
CUresult fa_cuda_concurrent_writer(const fa_cuda_driver *d, fa_cuda_issue *x);

/* Waits for the stream beside. */
void fa_cuda_issue_free(const fa_cuda_driver *d, fa_cuda_issue *x);

#endif
