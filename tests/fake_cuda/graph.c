#include "tests/fake_cuda/parts.h"

#include <stdlib.h>
#include <string.h>

static CUstream capturing; /* NULL: nothing is captured */
static int n_noted;
/* Streams and graphs, each with its number of kernels. They die with their context, which a kernel may
 * destroy, so that nobody can be required to free them. */
static int objects[64], n_objects;
static fake_launch kept[64];
static int n_kept;

static int *new_object(int n) {
  int *x = &objects[n_objects++ % 64];
  *x = n;
  return x;
}

static void drop_kept(void) {
  for (int i = 0; i < n_kept; ++i) free((void *)kept[i].params);
  n_kept = 0;
}

void fake_graph_reset(void) {
  capturing = NULL;
  n_noted = 0;
  drop_kept();
}

bool fake_graph_keep(const fake_launch *l, size_t params_bytes) {
  if (!capturing) return false;
  void *params = NULL;
  FA_ASSERT(n_kept < (int)(sizeof kept / sizeof *kept));
  FA_ASSERT(posix_memalign(&params, 64, params_bytes + 1) == 0); /* tensor maps are aligned */
  memcpy(params, l->params, params_bytes);
  kept[n_kept] = *l;
  kept[n_kept++].params = params;
  return true;
}

CUresult fake_stream_create(CUstream *stream, unsigned flags) {
  FAKE_ENTER(true, true);
  if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  *stream = (CUstream)new_object(0);
  ++fake.n_streams;
  return CUDA_SUCCESS;
}

CUresult fake_stream_destroy(CUstream stream) {
  if (stream == capturing) fake_misused("a stream is destroyed while it is captured");
  --fake.n_streams;
  return CUDA_SUCCESS;
}

CUresult fake_capture_begin(CUstream stream, CUstreamCaptureMode mode) {
  FAKE_ENTER(true, true);
  if (!stream || capturing || mode != CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_ILLEGAL_STATE;
  capturing = stream;
  n_noted = 0;
  drop_kept();
  return CUDA_SUCCESS;
}

CUresult fake_capture_end(CUstream stream, CUgraph *graph) {
  if (!stream || stream != capturing) return CUDA_ERROR_ILLEGAL_STATE;
  capturing = NULL;
  FAKE_ENTER(true, true);
  *graph = (CUgraph)new_object(n_noted);
  return CUDA_SUCCESS;
}

CUresult fake_graph_instantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
  FAKE_ENTER(true, true);
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  *exec = (CUgraphExec)new_object(*(int *)graph);
  ++fake.n_graphs;
  return CUDA_SUCCESS;
}

CUresult fake_graph_launch(CUgraphExec exec, CUstream stream) {
  FAKE_ENTER(true, true);
  if (stream != fake.copied_in) fake_misused("a graph does not go where the tensors do");
  fake.n_default += !stream;
  fake.n_graph_launches += *(int *)exec > 0;
  for (int i = 0; i < n_kept; ++i) fake_launch_run(&kept[i]);
  return CUDA_SUCCESS;
}

CUresult fake_graph_exec_destroy(CUgraphExec exec) {
  (void)exec;
  --fake.n_graphs;
  return CUDA_SUCCESS;
}

CUresult fake_graph_destroy(CUgraph graph) {
  (void)graph;
  return CUDA_SUCCESS;
}

void fake_graph_note(const char *what, CUstream stream) {
  if (capturing && stream != capturing)
    fake_misused("%s in another stream than the one that is captured", what);
  n_noted += capturing != NULL;
  fake.n_concurrent_writes += stream && !capturing;
}

void fake_graph_no_wait(const char *what) {
  if (capturing) fake_misused("%s while a graph is captured", what);
}
