#include "fuzz/device/machine.h"

fa_status fa_device_machine_open(size_t most_bytes, fa_judge_machine **out, fa_error *err) {
  (void)most_bytes;
  *out = NULL;
  return fa_fail(err, FA_ERR_UNSUPPORTED,
                 "this build was made without nvcc, and has no kernels of the judge");
}
