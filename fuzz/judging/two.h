/* Two judges: one on a machine of its own (ref/cuda), and the one on the CPU, whose word every report is.
 *
 * The machine may say PASS and nothing else, and only where every element is inside a zone narrower than its bounds by
 * what the machine's sums may be off. Everything else the CPU judges again. Of a thousand such passes one is audited: the
 * CPU judges it too. Where the two contradict each other, that is an error of the harness, and never settled silently. */
#ifndef FA_FUZZ_JUDGING_TWO_H
#define FA_FUZZ_JUDGING_TWO_H

#include "fuzz/judging/judge.h"
#include "ref/cuda/try.h"

/* How far a bound that a machine computed may be off, relative: sums in float32 of at most 2^18 terms
 * (docs/guide/gpu-judge.md). */
#define FA_MACHINE_DOUBT 0x1p-12

/* fa_judge by config->machine first; sets r->judged. FA_ERR_DEVICE: the judges disagree, or the
 * machine failed. */
fa_status fa_judge_by_two(const fa_problem *p, const fa_tensors *in, const fa_tensors *got,
                          const fa_judge_config *config, fa_result *r, fa_error *err);

/* How far the largest ratios of a tensor may differ, relative to the larger one: bounds may by FA_MACHINE_DOUBT. */
#define FA_RATIOS_APART 0x1p-10
/* Ratios below are what sums of float64 in another order leave of an exact 0. They count as this. */
#define FA_RATIO_NOISE 0x1p-20
/* Ratios to bounds below are not compared: of terms that small sums of float32 lose whole numbers of the smallest. */
#define FA_RATIO_COARSE 0x1p-120

/* t: what the machine says; cpu: what the CPU does. What the machine passes, the CPU must pass, with the same ratios: then
 * cpu->judged.apart is the largest difference, if it was not larger before. What the machine finds wrong beyond every bound, the CPU
 * must not pass. FA_ERR_DEVICE: they disagree. */
fa_status fa_judges_agree(const fa_judge_trial *t, fa_result *cpu, fa_error *err);

/* fa_judge by the CPU alone. */
fa_status fa_judge_on_cpu(const fa_problem *p, const fa_tensors *in, const fa_tensors *got,
                          const fa_judge_config *config, fa_result *r, fa_error *err);

#endif
