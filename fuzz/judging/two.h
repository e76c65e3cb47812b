/* Two judges: one on a machine of its own (ref/cuda), and the one on the CPU, whose word every report is.
 *
 * The machine may say PASS and nothing else, and only where every element is inside a zone narrower than its bounds by
 * what the machine's sums may be off. Everything else the CPU judges again. Of a thousand such passes one is audited: the
 * CPU judges it too. Where the two contradict each other, that is an error of the harness, and never settled silently. */
#ifndef FA_FUZZ_JUDGING_TWO_H
#define FA_FUZZ_JUDGING_TWO_H

#include "fuzz/judging/judge.h"

/* How far a bound that a machine computed may be off, relative: sums in float32 of at most 2^18 terms
 * (docs/guide/gpu-judge.md). */
#define FA_MACHINE_DOUBT 0x1p-12

/* fa_judge by config->machine first; sets r->judged. FA_ERR_DEVICE: the judges disagree, or the
 * machine failed. */
fa_status fa_judge_by_two(const fa_problem *p, const fa_tensors *in, const fa_tensors *got,
                          const fa_judge_config *config, fa_result *r, fa_error *err);

/* fa_judge by the CPU alone. */
fa_status fa_judge_on_cpu(const fa_problem *p, const fa_tensors *in, const fa_tensors *got,
                          const fa_judge_config *config, fa_result *r, fa_error *err);

#endif
