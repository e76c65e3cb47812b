#include "tests/fake_cuda_parts.h"

#include <stdlib.h>

static CUstream capturing; /* NULL: nothing is captured */
static int n_noted;

void fake_graph_reset(void) {
  capturing = NULL;
  n_noted = 0;
}

CUresult fake_stream_create(CUstream *stream, unsigned flags) {
  FAKE_ENTER(true, true);
  if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  *stream = (CUstream)malloc(1);
  fake.n_streams += *stream != NULL;
  return *stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult fake_stream_destroy(CUstream stream) {
  if (stream == capturing) fake_misused("a stream is destroyed while it is captured");
  free(stream);
  --fake.n_streams;
  return CUDA_SUCCESS;
}

CUresult fake_capture_begin(CUstream stream, CUstreamCaptureMode mode) {
  FAKE_ENTER(true, true);
  if (!stream || capturing || mode != CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_ILLEGAL_STATE;
  capturing = stream;
  n_noted = 0;
  return CUDA_SUCCESS;
}

CUresult fake_capture_end(CUstream stream, CUgraph *graph) {
  if (!stream || stream != capturing) return CUDA_ERROR_ILLEGAL_STATE;
  capturing = NULL;
  FAKE_ENTER(true, true);
  *graph = (CUgraph)malloc(sizeof n_noted);
  if (!*graph) return CUDA_ERROR_OUT_OF_MEMORY;
  *(int *)*graph = n_noted;
  return CUDA_SUCCESS;
}

CUresult fake_graph_instantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
  FAKE_ENTER(true, true);
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  *exec = (CUgraphExec)malloc(sizeof(int));
  if (!*exec) return CUDA_ERROR_OUT_OF_MEMORY;
  *(int *)*exec = *(int *)graph;
  ++fake.n_graphs;
  return CUDA_SUCCESS;
}

CUresult fake_graph_launch(CUgraphExec exec, CUstream stream) {
  FAKE_ENTER(true, true);
  if (stream) fake_misused("a graph does not go where the tensors do");
  fake.n_graph_launches += *(int *)exec > 0;
  return CUDA_SUCCESS;
}

CUresult fake_graph_exec_destroy(CUgraphExec exec) {
  free(exec);
  --fake.n_graphs;
  return CUDA_SUCCESS;
}

CUresult fake_graph_destroy(CUgraph graph) {
  free(graph);
  return CUDA_SUCCESS;
}

void fake_graph_note(const char *what, CUstream stream) {
  if (capturing && stream != capturing)
    fake_misused("%s in another stream than the one that is captured", what);
  n_noted += capturing != NULL;
  fake.n_company += stream && !capturing;
}

void fake_graph_no_wait(const char *what) {
  if (capturing) fake_misused("%s while a graph is captured", what);
}
