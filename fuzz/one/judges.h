/* The judge on a GPU, for whoever runs cases. */
#ifndef FA_FUZZ_ONE_JUDGES_H
#define FA_FUZZ_ONE_JUDGES_H

#include "fuzz/judging/judge.h"
#include "fuzz/judging/run_config.h"
#include "fuzz/one/turns.h"

/* Starts its process, if the choice needs it: before this process has threads or a device, and before it forks workers.
 * timeout_s: of a case, of which its answer may take a half; <= 0: none. turns: NULL, or those in which workers open the
 * device (fuzz/one/preparing.h): the process has one too. FA_ERR_INPUT: a variable of the environment has no value that it may have. */
fa_status fa_judges_start(fa_judge_choice choice, double timeout_s, const fa_process_slots *turns,
                          fa_error *err);
void fa_judges_stop(void);

/* Sets config's machine, where the choice wants it and there is one. Where its process has just ended, the case is the
 * CPU's, and r says so. FA_ERR_DEVICE: there is none and there must be. */
fa_status fa_judges_ask(fa_judge_choice choice, fa_judge_config *config, fa_result *r, fa_error *err);

#endif
