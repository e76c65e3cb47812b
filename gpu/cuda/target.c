#include "gpu/cuda/target.h"

#include "gpu/modules/kernel.h"

#include <stdlib.h>
#include <string.h>

fa_status fa_cuda_hopper_policy(bool *off, fa_error *err) {
  const char *text = getenv("FA_HOPPER");
  *off = text && strcmp(text, "off") == 0;
  if (*off || !text || !*text || strcmp(text, "auto") == 0) return FA_OK;
  return fa_fail(err, FA_ERR_INPUT, "FA_HOPPER=%s: off or auto", text);
}

fa_status fa_cuda_target(const fa_cuda_device *device, fa_kernel_device *out, fa_error *err) {
  bool off = false;
  fa_status status = fa_cuda_kernel_device(device, out, err);
  if (status == FA_OK) status = fa_cuda_hopper_policy(&off, err);
  if (status != FA_OK) return status;
  out->hopper = !off && device->major == 9 && device->minor == 0 ? device->n_processors : 0;
  return FA_OK;
}
