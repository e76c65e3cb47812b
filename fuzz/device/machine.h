/* A GPU as the machine of the judge on a device (ref/cuda/machine.h): the driver's part, which the judge itself must not
 * know. The judge shares no code with the kernels that it judges; both call the same driver. */
#ifndef FA_FUZZ_DEVICE_MACHINE_H
#define FA_FUZZ_DEVICE_MACHINE_H

#include "ref/cuda/machine.h"

/* The first device, in this process; opened at most once. FA_ERR_UNSUPPORTED: this build, or this device, has no kernels of
 * the judge for it (float64 must have half the rate of float32: compute capability 8.0 or 9.0). most_bytes 0: 40 GiB,
 * taken as they are needed. */
fa_status fa_device_machine_open(size_t most_bytes, fa_judge_machine **out, fa_error *err);

#endif
