/* The settings for running a case, whatever judges it. */
#ifndef FA_FUZZ_JUDGING_RUN_CONFIG_H
#define FA_FUZZ_JUDGING_RUN_CONFIG_H

#include "cases/vocabulary/sample.h"
#include "gpu/backend.h"

struct fa_rules;
struct fa_preparing; /* fuzz/one/preparing.h */

/* explain_seconds, unless it is switched off: with the last try, which may take longer, two. */
#define FA_EXPLAIN_SECONDS 1.9

/* Who judges: the reference on the CPU; the one on a GPU first, which may only say PASS (fuzz/judging/two.h); the same
 * where there is such a GPU; both; both, where the GPU's is compiled for the processor. */
typedef enum fa_judge_choice {
  FA_JUDGE_BY_CPU,
  FA_JUDGE_BY_CUDA,
  FA_JUDGE_BY_AUTO,
  FA_JUDGE_BY_BOTH,
  FA_JUDGE_BY_HOST
} fa_judge_choice;
/* "cpu", "cuda", "auto", "both", "host"; NULL: the CPU. */
fa_judge_choice fa_judge_choice_named(const char *name);

typedef struct fa_run_config {
  const fa_backend *backend;
  void *backend_self;             /* from backend->open */
  struct fa_preparing *preparing; /* waited for before the device is needed; NULL: nothing to wait for */
  int n_threads;                  /* for the reference and the backend */
  uint64_t schedule_seed;         /* of the first run; the second one takes the next */
  bool end_to_end;                /* judge gradients end to end too, not only conditionally */
  double explain_seconds;         /* for a failure's explanation (fuzz/explain); 0: none is looked for */
  fa_judge_choice judge;          /* who judges */
  fa_sample sample;               /* judge only so much of a case; not asked: everything */
  bool maps;                      /* a result gets maps of where it is wrong: they take time, and memory */
  const char *keep_dir;           /* dump tensors of failures here; NULL = do not */
  const struct fa_rules
      *rules;     /* of a candidate that nobody trusts (fuzz/untrusted/rules.h); NULL: it is trusted */
  int64_t number; /* with rules: of the item, for what the secret says of it */
} fa_run_config;

#endif
