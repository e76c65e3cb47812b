/* Private to the shrinker: runs proposals in worker processes and finds the first one that fails as
 * wanted. */
#ifndef FA_FUZZ_SHRINK_RUN_H
#define FA_FUZZ_SHRINK_RUN_H

#include "fuzz/shrink/reduce.h"
#include "fuzz/workers/pool.h"

/* When a proposal counts as failing. */
typedef enum fa_trial_rule {
  FA_TRIAL_ONCE,     /* one run, and it fails: the subject is repeatable */
  FA_TRIAL_MAJORITY, /* FA_SHRINK_ENOUGH of FA_SHRINK_TRIES, each with a different schedule */
  FA_TRIAL_ANY,      /* the first of FA_SHRINK_TRIES schedules that fails; it becomes the case's */
  FA_TRIAL_COUNT     /* all tries, each with a different schedule; only counted */
} fa_trial_rule;

/* One proposal of a round. */
typedef struct fa_trial {
  uint64_t hash;       /* of its text */
  size_t at, n_bytes;  /* its text, in the text area */
  int n_given, n_back; /* runs */
  int n_failed;
  int verdict;   /* 1 fails, -1 does not, 0 not known yet */
  uint64_t seed; /* of the first run that failed */
} fa_trial;

#define FA_SHRINK_ROUND 256 /* proposals of one round */

typedef struct fa_shrinker {
  const fa_shrink_config *config;
  fa_pool *pool;
  fa_pool_config pool_config;
  struct fa_shrink_share *share; /* memory shared with the workers */
  void *self;                    /* in a worker: the opened backend */
  bool opened;
  int n_processors;
  /* what counts */
  fa_trial_rule rule;
  bool same_seed; /* FA_TRIAL_COUNT: every run with the same schedule */
  uint64_t seed;
  fa_failure_class failure;
  bool has_failure;
  double started, deadline; /* deadline 0: none */
  /* this round */
  fa_trial trial[FA_SHRINK_ROUND];
  int n_trials;
  int order[FA_SHRINK_ROUND * FA_SHRINK_TRIES]; /* the trial of each run, in the order given */
  int n_order, n_order_back;
  /* known verdicts, by hash */
  struct fa_shrink_known {
    uint64_t hash, seed;
    int verdict;
  } * known;
  int64_t n_known, known_capacity;
  /* seen */
  int64_t total_runs;
  double slowest_s;    /* of the runs that failed as wanted */
  fa_result *last;     /* the latest such run; NULL = none */
  fa_state last_state; /* of the latest run of any kind */
  char last_reason[512];
  int interrupted;
} fa_shrinker;

fa_status fa_shrinker_open(fa_shrinker *s, const fa_shrink_config *config, fa_error *err);
void fa_shrinker_close(fa_shrinker *s);

/* Runs proposals (at most FA_SHRINK_ROUND; name and note "") by s->rule. *winner: the first one that fails,
 * such that none before it is undecided; -1: none does, or the time is over. *seed: its schedule. *n_seen:
 * how many of them fitted into this round. */
fa_status fa_shrinker_try(fa_shrinker *s, const fa_case *v, int n, int *n_seen, int *winner, uint64_t *seed,
                          fa_error *err);

/* Runs c FA_SHRINK_TRIES times. If no class is known yet, it becomes that of the first failure. */
fa_status fa_shrinker_count(fa_shrinker *s, const fa_case *c, bool same_seed, int *n_failed, fa_error *err);

/* Forgets the verdicts, for another rule. */
void fa_shrinker_set_rule(fa_shrinker *s, fa_trial_rule rule);
bool fa_shrinker_time_is_over(const fa_shrinker *s);

#endif
