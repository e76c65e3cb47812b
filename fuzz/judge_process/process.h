/* The judge on a machine in a process of its own, whatever the machine is (ref/cuda/machine.h). A kernel that is judged runs
 * in another process and in another context of the device, so that it cannot write into what judges it; and the calls of
 * several workers run side by side in one context.
 *
 * A keeper, which does nothing else, starts the process, and starts it again when it has ended. */
#ifndef FA_FUZZ_JUDGE_PROCESS_PROCESS_H
#define FA_FUZZ_JUDGE_PROCESS_PROCESS_H

#include "ref/cuda/machine.h"

/* Before this process has threads or a device, and before it forks those that will ask. patience_s: how long one of them waits
 * for an answer, <= 0: as long as it takes. Started already: nothing. */
fa_status fa_judge_process_start(const fa_judge_machines *machines, double patience_s, fa_error *err);
/* Ends it. Nothing if it was not started by this process. */
void fa_judge_process_stop(void);

/* The machine there, for this thread. *is_new: this thread has asked nothing of it since it was started.
 *
 * FA_ERR_IO, here and from the machine's functions: the process has ended, or does not answer and was ended; err says so in
 * words that can be counted. The next call of this finds the one that was started instead. FA_ERR_UNSUPPORTED,
 * FA_ERR_DEVICE: there is no such machine. */
fa_status fa_judge_process_machine(fa_judge_machine **out, bool *is_new, fa_error *err);

#endif
