/* From a failing case to a minimal one that fails in the same way.
 *
 * Passes (fuzz/shrink/passes.c, fuzz/shrink/numbers.c, fuzz/shrink/expr.c, fuzz/shrink/data.c) propose simpler cases, the boldest
 * first; the first one that still fails in the same class (failure_class.h) becomes the case that the next
 * proposals start from, until none helps. Which of several processes answers first decides nothing: the same
 * failing case gives the same minimal one, with any --jobs, as long as the subject itself repeats. */
#ifndef FA_FUZZ_SHRINK_REDUCE_H
#define FA_FUZZ_SHRINK_REDUCE_H

#include "fuzz/options/choose_backend.h"
#include "fuzz/one/failure_class.h"

#include <stdio.h>

/* How often a case is run to see how reliably it fails, and how often it must. */
#define FA_SHRINK_TRIES 5
#define FA_SHRINK_ENOUGH 3

typedef struct fa_shrink_config {
  const fa_choice *choice; /* the backend */
  uint64_t schedule_seed;  /* that the failure was seen with */
  int jobs;
  double timeout_s; /* of one run; later runs get less, from how long the first ones took */
  double seconds;   /* for the whole; <= 0: no limit */
  bool in_process, end_to_end;
  const fa_failure_class *known; /* from a report: saves running the large case; or NULL */
  FILE *progress;                /* a line about every step; NULL = silent */
} fa_shrink_config;

typedef enum fa_shrink_outcome {
  FA_SHRINK_DONE,   /* c is the smallest found */
  FA_SHRINK_PASSES, /* the case does not fail */
  FA_SHRINK_FLAKY,  /* it fails, but in fewer than FA_SHRINK_ENOUGH of FA_SHRINK_TRIES runs */
  FA_SHRINK_SKIPPED /* the backend cannot run it; reason */
} fa_shrink_outcome;

typedef struct fa_shrink_result {
  fa_shrink_outcome outcome;
  fa_case c;              /* owned */
  uint64_t schedule_seed; /* that c fails with */
  fa_failure_class failure;
  int n_failed, n_runs; /* of the last tries: "fails in 5 of 5 runs" */
  fa_result *last;      /* owned: of c; NULL when the time was over before */
  int64_t total_runs, steps;
  double seconds;
  bool out_of_time;
  int interrupted; /* the signal, or 0: c is the smallest so far */
  char reason[512];
} fa_shrink_result;

/* FA_ERR_*: the world failed (the backend cannot be opened, no memory). *out needs fa_shrink_result_free
 * after FA_OK. */
fa_status fa_shrink(const fa_case *c, const fa_shrink_config *config, fa_shrink_result *out, fa_error *err);
void fa_shrink_result_free(fa_shrink_result *r);

/* ---- inside the shrinker ---- */

/* What passes may know besides the case itself. */
typedef struct fa_shrink_goal {
  fa_failure_class failure;
  bool default_scale; /* the scale follows head_dim */
  bool keep_schedule; /* it fails rarely, but always with a schedule that is known */
} fa_shrink_goal;

/* Numbers of a case that a pass tries smaller values for, e.g. the length of each entry. */
typedef struct fa_shrink_knob {
  int64_t least;
  int64_t (*count)(const fa_case *c); /* how many there are; NULL = one */
  int64_t (*get)(const fa_case *c, int64_t which);
  void (*set)(fa_case *c, int64_t which, int64_t value);
} fa_shrink_knob;

/* A pass proposes up to count(c) cases from c; edit turns a copy of c into proposal i, false: there is no
 * such one, or it would not be simpler. Proposals need not be valid: fa_shrink_mend and fa_case_validate see
 * to it. After a success at i the pass goes on at i + 1 from the new case. A knob stands for both functions.
 */
typedef struct fa_shrink_pass {
  const char *name;
  int64_t (*count)(const fa_case *c);
  bool (*edit)(fa_case *c, int64_t i, const fa_shrink_goal *goal);
  const fa_shrink_knob *knob;
} fa_shrink_pass;
int64_t fa_shrink_pass_count(const fa_shrink_pass *pass, const fa_case *c);
bool fa_shrink_pass_edit(const fa_shrink_pass *pass, fa_case *c, int64_t i, const fa_shrink_goal *goal);

/* In the order in which they are tried; ends with a NULL name. */
extern const fa_shrink_pass fa_shrink_bold[]; /* from anything to something small in one step */
extern const fa_shrink_pass fa_shrink_features[];
extern const fa_shrink_pass fa_shrink_numbers[];
extern const fa_shrink_pass fa_shrink_expressions[];
extern const fa_shrink_pass fa_shrink_fills[];
extern const fa_shrink_pass fa_shrink_data[]; /* which rows of q, k, v and do are needed */

/* Chunk i of n things, the largest first: one of n, two of n/2, ... n of 1. False behind the last. */
bool fa_shrink_chunk(int64_t n, int64_t i, int64_t *from, int64_t *length);
/* Takes entries [from, from + n) of the batch out. */
void fa_shrink_delete_sequences(fa_case *c, int64_t from, int64_t n);
/* Lengths of a variable-length case: 0 for q, 1 for k. */
void fa_shrink_set_sequence_length(fa_case *c, int side, int64_t entry, int64_t length);

/* Brings what follows from other fields into line after an edit: arrays for each entry, ranges of rows, the
 * default scale, strides of tensors that are gone. */
void fa_shrink_mend(fa_case *c, const fa_shrink_goal *goal);

/* Smaller values to try instead of n, ascending, each >= least: 1, 2, both sides of tile edges, then n/2, n -
 * n/4, ..., n - 1. Returns how many; the array holds FA_SHRINK_VALUES. */
#define FA_SHRINK_VALUES 100
int fa_shrink_values(int64_t n, int64_t least, int64_t value[FA_SHRINK_VALUES]);

#endif
