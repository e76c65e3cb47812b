/* Those who do what calls want, in the judge's process: threads with a machine each, of which one takes all calls that wait, long
 * ones or short ones, and does them together; what comes meanwhile is the next one's. */
#ifndef FA_FUZZ_JUDGE_PROCESS_LINES_H
#define FA_FUZZ_JUDGE_PROCESS_LINES_H

#include "fuzz/judge_process/together.h"

fa_status fa_judge_lines_start(const fa_judge_machines *machines, fa_error *err);
/* Returns when it is done. c->status not FA_OK: the machine failed. Of several calls for which it did, one hears of it, and the
 * others never return: the process shall end. */
void fa_judge_lines_do(fa_judge_call *c);

#endif
