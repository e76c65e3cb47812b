/* What stands in for gpu/cuda/launch.c where the build had no CUDA toolkit. */
#include "gpu/fa.h"

static const char why[] = "this build was made without the CUDA toolkit";

fa_status fa_forward(const fa_attention *a, void *workspace, size_t workspace_bytes, void *stream,
                     fa_error *err) {
  (void)workspace, (void)workspace_bytes, (void)stream;
  const fa_status status = fa_forward_check(a, err);
  return status != FA_OK ? status : fa_fail(err, FA_ERR_UNSUPPORTED, "%s", why);
}

fa_status fa_backward(const fa_attention *a, const fa_gradients *g, void *workspace, size_t workspace_bytes,
                      void *stream, fa_error *err) {
  (void)workspace, (void)workspace_bytes, (void)stream;
  const fa_status status = fa_backward_check(a, g, err);
  return status != FA_OK ? status : fa_fail(err, FA_ERR_UNSUPPORTED, "%s", why);
}

fa_status fa_forward_kvcache(const fa_attention *a, const fa_inference *kv, void *workspace,
                             size_t workspace_bytes, void *stream, fa_error *err) {
  (void)workspace, (void)workspace_bytes, (void)stream;
  const fa_status status = fa_forward_kvcache_check(a, kv, err);
  return status != FA_OK ? status : fa_fail(err, FA_ERR_UNSUPPORTED, "%s", why);
}

fa_status fa_merge(const fa_states *s, void *workspace, size_t workspace_bytes, void *stream, fa_error *err) {
  (void)workspace, (void)workspace_bytes, (void)stream;
  const fa_status status = fa_merge_check(s, err);
  return status != FA_OK ? status : fa_fail(err, FA_ERR_UNSUPPORTED, "%s", why);
}

fa_status fa_merge_backward(const fa_states *s, const fa_states_gradients *g, void *workspace,
                            size_t workspace_bytes, void *stream, fa_error *err) {
  (void)workspace, (void)workspace_bytes, (void)stream;
  const fa_status status = fa_merge_backward_check(s, g, err);
  return status != FA_OK ? status : fa_fail(err, FA_ERR_UNSUPPORTED, "%s", why);
}

fa_status fa_flex_blocks(const fa_attention *a, const fa_flex_block_lists *out, void *workspace,
                         size_t workspace_bytes, void *stream, fa_error *err) {
  (void)out, (void)workspace, (void)workspace_bytes, (void)stream;
  size_t ignored;
  const fa_status status = fa_flex_blocks_workspace(a, &ignored, err);
  return status != FA_OK ? status : fa_fail(err, FA_ERR_UNSUPPORTED, "%s", why);
}

fa_status fa_describe(char *text, size_t size, fa_error *err) {
  if (size) text[0] = 0;
  return fa_fail(err, FA_ERR_UNSUPPORTED, "%s", why);
}
