#include "gpu/cuda_backend/issue.h"

#include "gpu/cuda_backend/copy.h"

#include <string.h>

/* More than half of an H100's L2 cache, so that a call's data do not stay in it. */
enum { WORK_BYTES = 32 << 20, WORK_TIMES = 8 };

static CUresult ensure_stream(const fa_cuda_driver *d, CUstream *stream) {
  return *stream ? CUDA_SUCCESS : d->cuStreamCreate(stream, CU_STREAM_NON_BLOCKING);
}

CUresult fa_cuda_own_stream(const fa_cuda_driver *d, fa_cuda_issue *x) {
  return ensure_stream(d, &x->own);
}

CUresult fa_cuda_graph_begin(const fa_cuda_driver *d, fa_cuda_issue *x, CUstream *stream) {
  CUresult code = ensure_stream(d, &x->captured);
  *stream = x->captured;
  /* Relaxed: a call may load a kernel, which the other modes forbid. */
  return code == CUDA_SUCCESS ? d->cuStreamBeginCapture(x->captured, CU_STREAM_CAPTURE_MODE_RELAXED) : code;
}

static void drop_graph(const fa_cuda_driver *d, fa_cuda_issue *x) {
  if (x->graph) d->cuGraphExecDestroy(x->graph);
  x->graph = NULL;
}

CUresult fa_cuda_graph_end(const fa_cuda_driver *d, fa_cuda_issue *x, bool launch) {
  CUgraph noted = NULL;
  CUresult code = d->cuStreamEndCapture(x->captured, &noted);
  drop_graph(d, x);
  if (code == CUDA_SUCCESS && launch) code = d->cuGraphInstantiateWithFlags(&x->graph, noted, 0);
  if (code == CUDA_SUCCESS && launch) code = d->cuGraphLaunch(x->graph, x->own);
  if (noted) d->cuGraphDestroy(noted);
  return code;
}

CUresult fa_cuda_graph_again(const fa_cuda_driver *d, fa_cuda_issue *x) {
  return d->cuGraphLaunch(x->graph, x->own);
}

CUresult fa_cuda_small_write(const fa_cuda_driver *d, fa_cuda_issue *x, const void *data, size_t bytes) {
  CUresult code = CUDA_SUCCESS;
  if (!x->small) code = d->cuMemAlloc(&x->small, FA_CUDA_SMALL);
  return code == CUDA_SUCCESS ? fa_cuda_copy_up(d, x->small, data, bytes, x->own) : code;
}

CUresult fa_cuda_concurrent_writer(const fa_cuda_driver *d, fa_cuda_issue *x) {
  CUresult code = ensure_stream(d, &x->beside);
  if (code == CUDA_SUCCESS && !x->work) code = d->cuMemAlloc(&x->work, WORK_BYTES);
  for (int i = 0; i < WORK_TIMES && code == CUDA_SUCCESS; ++i)
    code = d->cuMemsetD8Async(x->work, (unsigned char)i, WORK_BYTES, x->beside);
  return code;
}

void fa_cuda_issue_free(const fa_cuda_driver *d, fa_cuda_issue *x) {
  if (x->beside) d->cuStreamSynchronize(x->beside);
  drop_graph(d, x);
  if (x->beside) d->cuStreamDestroy(x->beside);
  if (x->captured) d->cuStreamDestroy(x->captured);
  if (x->own) d->cuStreamDestroy(x->own);
  if (x->work) d->cuMemFree(x->work);
  if (x->small) d->cuMemFree(x->small);
  memset(x, 0, sizeof *x);
}
