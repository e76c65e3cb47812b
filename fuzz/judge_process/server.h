/* What runs in the judge's process. */
#ifndef FA_FUZZ_JUDGE_PROCESS_SERVER_H
#define FA_FUZZ_JUDGE_PROCESS_SERVER_H

#include "ref/cuda/machine.h"

/* Answers all who come through the door, each in a thread and with a machine of its own, until nobody has the door's other end
 * any more. Returns the process's exit code: 0, or not if it should be started again. */
int fa_judge_serve(const fa_judge_machines *machines, int door);

#endif
