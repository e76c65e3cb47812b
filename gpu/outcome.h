/* How a run of a subject ended: in the host executor, and in every backend. */
#ifndef FA_GPU_OUTCOME_H
#define FA_GPU_OUTCOME_H

typedef enum fa_subject_state {
  FA_SUBJECT_OK,
  FA_SUBJECT_REJECTED, /* refused the arguments, with a message */
  FA_SUBJECT_OOB,      /* access outside its buffers, detected during the run */
  FA_SUBJECT_RACE,     /* unordered shared-memory accesses, or a read of unwritten scratch memory */
  FA_SUBJECT_DEADLOCK, /* barrier divergence, or no thread can proceed */
  FA_SUBJECT_CRASH
} fa_subject_state;

#endif
