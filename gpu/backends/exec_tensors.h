/* The tensors of a call as a child sees them: which there are, what they are called, and where they are. */
#ifndef FA_GPU_BACKENDS_EXEC_TENSORS_H
#define FA_GPU_BACKENDS_EXEC_TENSORS_H

#include "gpu/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* UPDATE: a cache that the call appends to. */
typedef enum fa_exec_access { FA_EXEC_READ, FA_EXEC_WRITE, FA_EXEC_UPDATE } fa_exec_access;

/* The object of a request that has it: "tensors", "buffers", "dbuffers". */
typedef enum fa_exec_group {
  FA_EXEC_TENSORS,
  FA_EXEC_BUFFERS,
  FA_EXEC_DBUFFERS,
  FA_EXEC_N_GROUPS
} fa_exec_group;

typedef struct fa_exec_tensor {
  const char *name;      /* in its group: "q", "k_after" never; a captured buffer's own name */
  const char *file_name; /* in files: as in recorded runs, "buffer_0" */
  fa_exec_group group;
  fa_exec_access access;
  const fa_tensor *tensor;
  const fa_buffer *buffer; /* the guarded memory that it is in */
} fa_exec_tensor;

#define FA_EXEC_MAX_TENSORS (FA_T_COUNT + 8)

typedef struct fa_exec_tensors {
  int n;
  fa_exec_tensor at[FA_EXEC_MAX_TENSORS];
  fa_tensors own; /* what a call does not have: the LSE in the child's conventions, lists by key block */
} fa_exec_tensors;

/* All tensors of these passes, without outputs that the contract leaves out. The LSE is the child's own, poisoned as
 * the call's is, if the contract's conventions are not ours. own_lists: with lists by key block. Valid as long as
 * p and t are; free it. */
fa_status fa_exec_tensors_make(const fa_problem *p, const fa_tensors *t, const fa_contract *contract,
                               unsigned passes, bool own_lists, fa_exec_tensors *out, fa_error *err);
void fa_exec_tensors_free(fa_exec_tensors *x);

/* After the child has written: what is in the child's own LSE becomes the call's. */
fa_status fa_exec_tensors_take(const fa_exec_tensors *x, const fa_problem *p, const fa_contract *contract,
                               fa_tensors *t, fa_error *err);

#ifdef __cplusplus
}
#endif

#endif
