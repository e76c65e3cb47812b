/* The requests of docs/reference/protocol.md with which a child computes many problems in one go: tensors lie where its kernel
 * wants them before the clock starts, and outputs are fetched after it has stopped. */
#ifndef FA_FUZZ_TIMING_REQUESTS_H
#define FA_FUZZ_TIMING_REQUESTS_H

#include "cases/tensors/set.h"
#include "gpu/backends/exec_subject.h"

#define FA_MOST_PROBLEMS 64 /* of one request */

/* One problem: which place each tensor is taken from, and the scale. */
typedef struct fa_time_problem {
  double scale;
  int place[FA_T_COUNT];
} fa_time_problem;

/* What a child answered to "time". */
typedef struct fa_time_answer {
  double wall;  /* seconds by our clock, from the request to its answer */
  double claim; /* by its own, for all problems; < 0: none */
  uint64_t sum[FA_MOST_PROBLEMS];
} fa_time_answer;

/* What the other side did wrong; "" = nothing. */
typedef char fa_time_fault[512];

/* True for inputs that move between places one by one: those that are filled with data. */
bool fa_time_moves(const fa_tensors *t, fa_tensor_id id);

/* Hands over the inputs of one place of n_places, and says which outputs there are. */
fa_status fa_time_stage(fa_exec_subject *x, const fa_problem *p, fa_tensors *t, unsigned passes, int place,
                        int n_places, fa_time_fault fault, fa_error *err);
/* Lets it compute n problems, 1 <= n <= FA_MOST_PROBLEMS. t: any place, for which tensors there are. */
fa_status fa_time_ask(fa_exec_subject *x, const fa_problem *p, const fa_tensors *t, unsigned passes,
                      int n_threads, const fa_time_problem *problem, int n, fa_time_answer *out,
                      fa_time_fault fault, fa_error *err);
/* Copies the outputs of problem i of the last request into t, whose outputs are poisoned. */
fa_status fa_time_fetch(fa_exec_subject *x, const fa_problem *p, fa_tensors *t, unsigned passes, int i,
                        fa_time_fault fault, fa_error *err);

/* The sum that a child must have answered for these outputs of these passes. */
uint64_t fa_time_sum(const fa_tensors *t, unsigned passes);

#endif
