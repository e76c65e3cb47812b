/* Judges outputs by the reference: shared by live runs and recorded runs. */
#ifndef FA_FUZZ_JUDGING_JUDGE_H
#define FA_FUZZ_JUDGING_JUDGE_H

#include "cases/vocabulary/contract.h"
#include "ref/cuda/machine.h"
#include "report/result.h"

/* What the outputs were compared with, for whoever asks further (fuzz/explain). */
typedef struct fa_judged {
  fa_wants forward;      /* NaN in rows without a key of which the contract says something of its own */
  fa_wants gradients;    /* empty if they were not judged */
  bool from_o, from_lse; /* gradients: from the subject's own */
  fa_tensor lse;         /* the subject's, as its backward is judged from */
  char *lse_copy;        /* owned, if lse needed a copy; or NULL */
} fa_judged;
void fa_judged_free(fa_judged *j);

typedef struct fa_judge_config {
  const fa_profile *profile; /* the arithmetic that the outputs claim */
  int n_threads;
  bool generic;    /* the data allows sqrt(n) bounds */
  bool end_to_end; /* also judge gradients from the reference's forward */
  bool backward;   /* the gradients in got were computed */
  bool foreign;    /* not one of the project's kernels: to be more exact than it claims is a note */
  bool recorded;   /* outputs come from a file: any may be absent, poison has no meaning */
  bool maps;       /* also make a map of every output that fails */
  bool loose; /* by 1e-2, absolute and relative, and nothing else: what a layer of defence is measured by */
  fa_judge_machine
      *machine; /* judges first, and may only say PASS (fuzz/judging/two.h); NULL: the CPU alone */
  bool both;    /* the CPU judges all the same, and the machine twice */
  bool canary; /* every pass of the machine is followed by a canary (fuzz/judging/canary.h), not one in 256 */
  fa_poison poison;
  fa_sample sample;            /* judge only so much, where that can be; not asked: everything */
  uint64_t sample_stream;      /* the case's seed */
  const fa_contract *contract; /* NULL: everything is delivered, in the harness's conventions */
  fa_judged *
      keep; /* set to what was wanted, for whoever explains failures; the caller frees it. NULL: nobody asks */
} fa_judge_config;

/* in: the pristine inputs (with the output tensors' shapes); got: the same call afterwards. Adds a verdict
 * per judged output to r, sets its worst ratio, and raises its state to FAIL or VACUOUS if it is milder.
 *
 * Gradients are judged conditionally: from the subject's own O and LSE, so that errors of the forward do not
 * obscure them. If O or LSE is unusable (NaN or infinity in the wrong place) or absent, they are judged end
 * to end, and the notes say so. Where a contract leaves out one of the two, or the LSE is coarser than f32,
 * or the profile says that its backward does not use it, the reference's stands in for that one.
 *
 * Rows without a visible key are judged as the contract has them (fuzz/judging/empty_rows.h). Gradients of a
 * case with such rows are judged only if their O is 0.
 *
 * A sample (fuzz/judging/sample.h) says in r->sampled what was judged. A call that only makes sense as a whole is judged
 * so, with a note. Where gradients of its strips of keys are not judged from the subject's own forward, the reference's
 * is computed for all rows of their heads.
 *
 * FA_ERR_UNSUPPORTED: the reference cannot do this problem. */
fa_status fa_judge(const fa_problem *p, const fa_tensors *in, const fa_tensors *got,
                   const fa_judge_config *config, fa_result *r, fa_error *err);

/* True if nobody expects the output to be there, nor looks at it: a contract leaves it out, or a recorded run has none. */
bool fa_judge_is_left_out(const fa_judge_config *config, const fa_tensors *got, fa_tensor_id id);

/* Appends to the notes, separated by "; ". */
void fa_result_note(fa_result *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sets the state if the new one outranks the present one: PASS < VACUOUS < NONDETERMINISTIC < FAIL <
 * INPUT_MODIFIED < OOB. The other reason goes to the notes. */
void fa_result_raise(fa_result *r, fa_state state, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
