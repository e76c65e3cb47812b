/* How a subject that misbehaves is told from one that does not: the executor's word for it, and every
 * backend's. */
#ifndef FA_GPU_SIMT_OUTCOME_H
#define FA_GPU_SIMT_OUTCOME_H

typedef enum fa_subject_state {
  FA_SUBJECT_OK,
  FA_SUBJECT_REJECTED, /* refused the arguments, with a message */
  FA_SUBJECT_OOB,      /* access outside its buffers, seen while running */
  FA_SUBJECT_RACE,     /* unordered shared-memory accesses; scratch memory read before anybody wrote it */
  FA_SUBJECT_DEADLOCK, /* barrier divergence, or nobody can go on */
  FA_SUBJECT_CRASH
} fa_subject_state;

#endif
