/* gpu/fa.h on the GPU. */
#include "gpu/cuda/run.h"
#include "gpu/modules/kernel.h"

#include <stdio.h>

fa_status fa_describe(char *text, size_t size, fa_error *err) {
  fa_cuda_device device;
  char kernels[1600];
  if (size) text[0] = 0;
  const fa_cuda_driver *d = fa_cuda_driver_get(err);
  if (!d) return FA_ERR_DEVICE;
  fa_status status = fa_cuda_device_current(d, &device, err);
  if (status == FA_OK) status = fa_cuda_kernels_exist(&device, err);
  if (status != FA_OK) return status;
  fa_cuda_kernels_describe(&device, kernels, sizeof kernels);
  snprintf(text, size, "%s, sm_%d%d, CUDA %s; %s", device.name, device.major, device.minor, device.driver,
           kernels);
  return FA_OK;
}

fa_status fa_forward(const fa_attention *a, void *workspace, size_t workspace_bytes, void *stream,
                     fa_error *err) {
  const fa_call call = {
      .kind = FA_CALL_FORWARD, .a = a, .n_processors = FA_PLAN_PROCESSORS, .workspace = workspace};
  return fa_cuda_run(&call, workspace_bytes, (CUstream)stream, NULL, err);
}

fa_status fa_backward(const fa_attention *a, const fa_gradients *g, void *workspace, size_t workspace_bytes,
                      void *stream, fa_error *err) {
  const fa_call call = {
      .kind = FA_CALL_BACKWARD, .a = a, .g = g, .n_processors = FA_PLAN_PROCESSORS, .workspace = workspace};
  return fa_cuda_run(&call, workspace_bytes, (CUstream)stream, NULL, err);
}

fa_status fa_forward_kvcache(const fa_attention *a, const fa_inference *kv, void *workspace,
                             size_t workspace_bytes, void *stream, fa_error *err) {
  const fa_call call = {
      .kind = FA_CALL_CACHE, .a = a, .cache = kv, .n_processors = FA_PLAN_PROCESSORS, .workspace = workspace};
  return fa_cuda_run(&call, workspace_bytes, (CUstream)stream, NULL, err);
}

fa_status fa_merge(const fa_states *s, void *workspace, size_t workspace_bytes, void *stream, fa_error *err) {
  const fa_call call = {
      .kind = FA_CALL_MERGE, .states = s, .n_processors = FA_PLAN_PROCESSORS, .workspace = workspace};
  return fa_cuda_run(&call, workspace_bytes, (CUstream)stream, NULL, err);
}

fa_status fa_merge_backward(const fa_states *s, const fa_states_gradients *g, void *workspace,
                            size_t workspace_bytes, void *stream, fa_error *err) {
  const fa_call call = {.kind = FA_CALL_MERGE_BACKWARD,
                        .states = s,
                        .states_g = g,
                        .n_processors = FA_PLAN_PROCESSORS,
                        .workspace = workspace};
  return fa_cuda_run(&call, workspace_bytes, (CUstream)stream, NULL, err);
}

fa_status fa_flex_blocks(const fa_attention *a, const fa_flex_block_lists *out, void *workspace,
                         size_t workspace_bytes, void *stream, fa_error *err) {
  const fa_call call = {.kind = FA_CALL_BLOCKS, .a = a, .lists = out, .workspace = workspace};
  if (!out) return fa_fail(err, FA_ERR_INPUT, "out is NULL");
  return fa_cuda_run(&call, workspace_bytes, (CUstream)stream, NULL, err);
}
