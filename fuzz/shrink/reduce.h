/* Reduces a failing case to a minimal one that fails in the same way.
 *
 * Passes (fuzz/shrink/passes.c, fuzz/shrink/numbers.c, fuzz/shrink/expr.c, fuzz/shrink/data.c) propose
 * simpler cases, the boldest first. The first one that still fails in the same class (failure_class.h)
 * becomes the case that the next proposals start from, until none helps. The order in which processes answer
 * does not matter: the same failing case gives the same minimal one with any --jobs, as long as the subject
 * itself is repeatable. */
#ifndef FA_FUZZ_SHRINK_REDUCE_H
#define FA_FUZZ_SHRINK_REDUCE_H

#include "fuzz/options/choose_backend.h"
#include "fuzz/untrusted/rules.h"
#include "report/failure_class.h"

#include <stdio.h>

/* How often a case is run to measure how reliably it fails, and how often it must fail. */
#define FA_SHRINK_TRIES 5
#define FA_SHRINK_ENOUGH 3

typedef struct fa_shrink_config {
  const fa_choice *choice; /* the backend */
  uint64_t schedule_seed;  /* of the reported failure */
  int jobs;
  double timeout_s; /* of one run; later runs get less, based on the time of the first ones */
  double seconds;   /* in total; <= 0: no limit */
  bool in_process, end_to_end;
  fa_sample sample;              /* that it fails in; what is small enough is judged whole */
  const fa_failure_class *known; /* from a report: saves running the large case; or NULL */
  const fa_rules *rules;         /* of a candidate that nobody trusts; NULL: it is trusted */
  int64_t number;                /* with rules: of the failure in its run, for what the secret says of it */
  FILE *progress;                /* receives a line about every step; NULL = silent */
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
  uint64_t schedule_seed; /* with which c fails */
  fa_failure_class failure;
  int n_failed, n_runs; /* of the last tries: "fails in 5 of 5 runs" */
  fa_result *last;      /* owned: of c; NULL if time ran out before */
  int64_t total_runs, steps;
  double seconds;
  bool out_of_time;
  int interrupted; /* the signal, or 0: c is the smallest so far */
  char reason[512];
} fa_shrink_result;

/* FA_ERR_*: an error of the world (the backend cannot be opened, no memory). After FA_OK, *out needs
 * fa_shrink_result_free. */
fa_status fa_shrink(const fa_case *c, const fa_shrink_config *config, fa_shrink_result *out, fa_error *err);
void fa_shrink_result_free(fa_shrink_result *r);

/* ---- private to the shrinker ---- */

/* What passes may know besides the case. */
typedef struct fa_shrink_goal {
  fa_failure_class failure;
  bool default_scale; /* the scale follows head_dim */
  bool keep_schedule; /* it fails rarely, but always with a known schedule */
} fa_shrink_goal;

/* A number of a case that a pass tries smaller values for, such as the length of each sequence. */
typedef struct fa_shrink_knob {
  int64_t least;
  int64_t (*count)(const fa_case *c); /* how many of them; NULL = one */
  int64_t (*get)(const fa_case *c, int64_t which);
  void (*set)(fa_case *c, int64_t which, int64_t value);
} fa_shrink_knob;

/* A pass proposes up to count(c) cases from c. edit turns a copy of c into proposal i; false: there is no
 * such proposal, or it would not be simpler. Proposals need not be valid: fa_shrink_mend and fa_case_validate
 * are applied. After a success at i the pass continues at i + 1 from the new case. A knob replaces both
 * functions. */
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

/* Chunk i of n things, the largest first: one of n, two of n/2, ... n of 1. False past the last. */
bool fa_shrink_chunk(int64_t n, int64_t i, int64_t *from, int64_t *length);
/* Removes sequences [from, from + n) from the batch. */
void fa_shrink_delete_sequences(fa_case *c, int64_t from, int64_t n);
/* Lengths of a variable-length case: 0 for q, 1 for k. */
void fa_shrink_set_sequence_length(fa_case *c, int side, int64_t entry, int64_t length);

/* Updates what follows from other fields after an edit: per-sequence arrays, ranges of rows, the default
 * scale, strides of tensors that are gone. */
void fa_shrink_mend(fa_case *c, const fa_shrink_goal *goal);

/* Smaller values to try instead of n, ascending, each >= least: 1, 2, both sides of tile edges, then n/2, n -
 * n/4, ..., n - 1. Returns their number; the array holds FA_SHRINK_VALUES. */
#define FA_SHRINK_VALUES 100
int fa_shrink_values(int64_t n, int64_t least, int64_t value[FA_SHRINK_VALUES]);

#endif
