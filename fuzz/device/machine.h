/* A GPU as the machine of the judge on a device (ref/cuda/machine.h): the driver's part, which the judge itself must not
 * know. The judge shares no code with the kernels that it judges; both call the same driver. */
#ifndef FA_FUZZ_DEVICE_MACHINE_H
#define FA_FUZZ_DEVICE_MACHINE_H

#include "ref/cuda/machine.h"

/* Machines on the first device, all in one context of this process, each with a stream and memory of its own. begin:
 * FA_ERR_UNSUPPORTED: this build, or this device, has no kernels of the judge for it (float64 must have half the rate of
 * float32: compute capability 8.0 or 9.0). A call may have 35 GiB, taken as they are needed. */
extern const fa_judge_machines fa_device_machines;

#endif
