#include "gpu/cuda/launch_hopper.h"

#include "gpu/cuda/launch.h"
#include "gpu/modules/kernel.h"
#include "gpu/plan/hopper.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

fa_status fa_cuda_hopper_policy(bool *off, fa_error *err) {
  const char *text = getenv("FA_HOPPER");
  *off = text && strcmp(text, "off") == 0;
  if (*off || !text || !*text || strcmp(text, "auto") == 0) return FA_OK;
  return fa_fail(err, FA_ERR_INPUT, "FA_HOPPER=%s: off or auto", text);
}

fa_status fa_cuda_hopper_target(const fa_cuda_device *device, fa_kernel_device *out, fa_error *err) {
  bool off = false;
  fa_status status = fa_cuda_kernel_device(device, out, err);
  if (status == FA_OK) status = fa_cuda_hopper_policy(&off, err);
  if (status != FA_OK) return status;
  out->hopper = !off && device->major == 9 && device->minor == 0 ? device->n_processors : 0;
  return FA_OK;
}

bool fa_cuda_hopper_is_chosen(const fa_cuda_device *device, const fa_attention *a) {
  fa_kernel_device target;
  fa_hopper_plan plan;
  return fa_cuda_hopper_target(device, &target, NULL) == FA_OK && fa_hopper_plan_make(a, &target, &plan);
}

static _Thread_local bool has_run;

void fa_cuda_hopper_note(void) {
  has_run = true;
}

bool fa_cuda_hopper_ran(void) {
  const bool was = has_run;
  has_run = false;
  return was;
}

CUresult fa_cuda_hopper_encode(const fa_cuda_driver *d, const fa_tensor_box *x, fa_tensor_map *to) {
  static const CUtensorMapSwizzle swizzle[] = {CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                               CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_SWIZZLE_32B};
  const cuuint32_t steps[4] = {1, 1, 1, 1};
  CUtensorMap map;
  _Static_assert(sizeof map == sizeof *to, "a kernel takes it as bytes");
  const CUresult code = d->cuTensorMapEncodeTiled(
      &map, x->bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4,
      (void *)(uintptr_t)x->base, x->size, x->bytes, x->box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      swizzle[x->swizzle], CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  memcpy(to, &map, sizeof map);
  return code;
}

/* NULL and FA_OK: it could not be compiled. */
static fa_status find_kernel(const fa_cuda_driver *d, const fa_cuda_device *device, const fa_kernel *k,
                             CUkernel *out, fa_error *err) {
  fa_error own = {""};
  const fa_status status = fa_cuda_kernel(d, device, k->name, &k->recipe, k->shared_bytes, out, &own);
  if (status == FA_OK) return FA_OK;
  *out = NULL;
  if (status == FA_ERR_UNSUPPORTED) return FA_OK;
  if (err) *err = own;
  return status;
}

int fa_cuda_hopper_counter(const fa_cuda_driver *d, CUstream stream) {
  static atomic_uint n;
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  if (d->cuStreamIsCapturing(stream, &capture) != CUDA_SUCCESS || capture != CU_STREAM_CAPTURE_STATUS_NONE)
    return -1;
  return (int)(atomic_fetch_add(&n, 1) % FA_HOPPER_COUNTERS);
}

fa_status fa_cuda_hopper_forward(const fa_cuda_driver *d, const fa_cuda_device *device, const fa_attention *a,
                                 CUstream stream, bool *launched, fa_error *err) {
  fa_kernel_device target;
  fa_hopper_plan plan;
  CUkernel kernel = NULL;
  *launched = false;
  fa_status status = fa_cuda_hopper_target(device, &target, err);
  if (status != FA_OK || !fa_hopper_plan_make(a, &target, &plan)) return status;
  const fa_kernel *k = plan.kernel;
  status = find_kernel(d, device, k, &kernel, err);
  if (status != FA_OK || !kernel) return status;
  for (int i = 0; i < 4; ++i)
    if (fa_cuda_hopper_encode(d, &plan.box[i], fa_hopper_map(&plan, i)) != CUDA_SUCCESS) return FA_OK;
  const unsigned grid[3] = {plan.n_blocks, 1, 1};
  plan.params.tiles.counter = fa_cuda_hopper_counter(d, stream);
  *launched = true;
  fa_cuda_hopper_note();
  return fa_cuda_launch(d, kernel, k->name, k->shared_bytes, grid, (unsigned)k->n_threads, &plan.params,
                        stream, err);
}

fa_status fa_cuda_hopper_backward_find(const fa_cuda_driver *d, const fa_cuda_device *device,
                                       const fa_attention *a, const fa_gradients *g,
                                       const fa_backward_plan *whole, fa_hopper_backward_plan *out,
                                       CUkernel *kernel, fa_error *err) {
  fa_kernel_device target;
  CUkernel found = NULL;
  *kernel = NULL;
  fa_status status = fa_cuda_hopper_target(device, &target, err);
  if (status != FA_OK || !fa_hopper_backward_make(a, g, whole, &target, out)) return status;
  status = find_kernel(d, device, out->kernel, &found, err);
  if (status != FA_OK || !found) return status;
  for (int i = 0; i < FA_HOPPER_BACKWARD_MAPS; ++i)
    if (fa_cuda_hopper_encode(d, &out->box[i], fa_hopper_backward_map(out, i)) != CUDA_SUCCESS) return FA_OK;
  *kernel = found;
  return FA_OK;
}

fa_status fa_cuda_hopper_backward(const fa_cuda_driver *d, const fa_hopper_backward_plan *plan,
                                  CUkernel kernel, CUstream stream, fa_error *err) {
  const fa_kernel *k = plan->kernel;
  fa_cuda_hopper_note();
  return fa_cuda_launch(d, kernel, k->name, k->shared_bytes, plan->grid, (unsigned)k->n_threads,
                        &plan->params, stream, err);
}
