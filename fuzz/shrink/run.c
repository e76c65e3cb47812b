#include "fuzz/shrink/run.h"
#include "cases/codec/json.h"

#include "cases/threads/processors.h"
#include "fuzz/one/run_case.h"
#include "report/text/progress.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Shared with the workers, which were forked before the proposals were made: an item is the number of a
 * run. */
#define TEXT_BYTES ((size_t)64 << 20)
typedef struct fa_shrink_share {
  struct {
    size_t at; /* of the case's text */
    uint64_t seed;
    int n_threads;
  } run[FA_SHRINK_ROUND * FA_SHRINK_TRIES];
  char text[TEXT_BYTES]; /* unwritten pages take no memory */
} fa_shrink_share;

/* ---- known verdicts ---- */

static uint64_t hash_text(const char *text, size_t n) {
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < n; ++i) {
    h = (h ^ (unsigned char)text[i]) * 0x100000001b3u;
    h ^= h >> 29;
  }
  return h ? h : 1; /* 0 marks an empty place */
}

static struct fa_shrink_known *find_known(const fa_shrinker *s, uint64_t hash) {
  for (int64_t i = 0; i < s->n_known; ++i)
    if (s->known[i].hash == hash) return &s->known[i];
  return NULL;
}

/* If it cannot be remembered, it is only run again. */
static void remember(fa_shrinker *s, const fa_trial *t) {
  if (find_known(s, t->hash)) return;
  if (s->n_known == s->known_capacity) {
    const int64_t capacity = s->known_capacity ? 2 * s->known_capacity : 256;
    void *bigger = realloc(s->known, (size_t)capacity * sizeof *s->known);
    if (!bigger) return;
    s->known = bigger;
    s->known_capacity = capacity;
  }
  s->known[s->n_known++] = (struct fa_shrink_known){t->hash, t->seed, t->verdict};
}

/* ---- rules ---- */

static int n_tries(const fa_shrinker *s) {
  return s->rule == FA_TRIAL_ONCE ? 1 : FA_SHRINK_TRIES;
}

static uint64_t seed_of_try(const fa_shrinker *s, int i) {
  return s->same_seed ? s->seed : s->seed + 2 * (uint64_t)i; /* a case's second run takes the next one */
}

static void decide(const fa_shrinker *s, fa_trial *t) {
  static const int needed[] = {1, FA_SHRINK_ENOUGH, 1, FA_SHRINK_TRIES + 1};
  const int left = n_tries(s) - t->n_back;
  if (t->n_failed >= needed[s->rule])
    t->verdict = 1;
  else if (t->n_failed + left < needed[s->rule] && (s->rule != FA_TRIAL_COUNT || left == 0))
    t->verdict = -1;
}

/* How many trials can still matter: up to the first one that fails. */
static int n_relevant(const fa_shrinker *s) {
  for (int i = 0; i < s->n_trials; ++i)
    if (s->trial[i].verdict == 1) return i;
  return s->n_trials;
}

bool fa_shrinker_time_is_over(const fa_shrinker *s) {
  return s->interrupted || (s->deadline > 0 && fa_seconds_now() >= s->deadline);
}

/* ---- callbacks of the pool ---- */

static bool next_run(void *ctx, int64_t *item) {
  fa_shrinker *s = ctx;
  if (fa_shrinker_time_is_over(s)) return false;
  for (int i = 0, n = n_relevant(s); i < n; ++i) {
    fa_trial *t = &s->trial[i];
    if (t->verdict || t->n_given == n_tries(s)) continue;
    const bool alone = s->n_trials == 1 && n_tries(s) == 1;
    *item = s->n_order;
    s->share->run[*item].at = t->at;
    s->share->run[*item].seed = seed_of_try(s, t->n_given);
    s->share->run[*item].n_threads =
        alone || s->config->jobs >= s->n_processors ? 1 : s->n_processors / s->config->jobs;
    if (alone) s->share->run[*item].n_threads = s->n_processors;
    s->order[s->n_order++] = i;
    t->n_given++;
    return true;
  }
  return false;
}

static fa_status open_subject(fa_shrinker *s, fa_error *err) {
  const fa_choice *choice = s->config->choice;
  const fa_status status = fa_choice_open(choice, &s->self, err);
  s->opened = status == FA_OK;
  return status == FA_OK ? fa_rules_hold(s->config->rules, choice->backend, s->self, err) : status;
}

static void run_item(void *ctx, int lane, int64_t item, fa_result *out) {
  fa_shrinker *s = ctx;
  (void)lane;
  const fa_choice *choice = s->config->choice;
  fa_error err = {""};
  fa_case c;
  const uint64_t seed = s->share->run[item].seed;
  fa_status status = fa_case_from_text(s->share->text + s->share->run[item].at, &c, &err);
  if (status == FA_OK) {
    if (!s->opened) status = open_subject(s, &err);
    const fa_run_config config = {.backend = choice->backend,
                                  .backend_self = s->self,
                                  .n_threads = s->share->run[item].n_threads,
                                  .schedule_seed = seed,
                                  .end_to_end = s->config->end_to_end,
                                  .sample = s->config->sample,
                                  .rules = s->config->rules,
                                  .number = s->config->number};
    if (status == FA_OK) status = fa_run_case(&c, &config, out, &err);
    fa_case_free(&c);
  }
  if (status != FA_OK) {
    out->state = FA_ERROR;
    snprintf(out->reason, sizeof out->reason, "%s", err.text);
  }
  out->schedule_seed = seed;
  snprintf(out->backend, sizeof out->backend, "%s", choice->spec);
}

static bool is_spent(void *ctx, int lane) {
  fa_shrinker *s = ctx;
  (void)lane;
  const fa_backend *b = s->config->choice->backend;
  return s->opened && b->spent && b->spent(s->self);
}

static void identify(void *ctx, int64_t item, fa_result *out) {
  fa_shrinker *s = ctx;
  out->schedule_seed = s->share->run[item].seed;
  snprintf(out->backend, sizeof out->backend, "%s", s->config->choice->spec);
}

/* Takes ownership of the result, which is left empty. */
static void keep_result(fa_shrinker *s, fa_result *r) {
  if (s->last)
    fa_result_free(s->last);
  else
    s->last = malloc(sizeof *s->last);
  if (!s->last) return;
  *s->last = *r;
  r->name = r->case_line = NULL;
}

static bool run_done(void *ctx, int64_t item, fa_result *r) {
  fa_shrinker *s = ctx;
  (void)item;
  fa_trial *t = &s->trial[s->order[s->n_order_back++]];
  t->n_back++;
  s->total_runs++;
  s->last_state = r->state;
  snprintf(s->last_reason, sizeof s->last_reason, "%s", r->reason);
  const fa_failure_class class = fa_failure_class_of(r);
  if (fa_state_is_failure(r->state) && !s->has_failure) {
    s->failure = class;
    s->has_failure = true;
  }
  if (s->has_failure && fa_failure_class_equal(&class, &s->failure)) {
    if (t->n_failed++ == 0) {
      t->seed = r->schedule_seed;
      if (s->rule == FA_TRIAL_COUNT || s->n_trials == 1) {
        s->slowest_s = r->seconds > s->slowest_s ? r->seconds : s->slowest_s;
        keep_result(s, r);
      }
    }
  }
  if (!t->verdict) decide(s, t);
  return true;
}

static void tick(void *ctx) {
  (void)ctx;
}

/* ---- rounds ---- */

fa_status fa_shrinker_open(fa_shrinker *s, const fa_shrink_config *config, fa_error *err) {
  memset(s, 0, sizeof *s);
  s->config = config;
  s->n_processors = fa_processors();
  s->seed = config->schedule_seed;
  s->started = fa_seconds_now();
  s->deadline = config->seconds > 0 ? s->started + config->seconds : 0;
  void *share =
      mmap(NULL, sizeof *s->share, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (share == MAP_FAILED) return fa_fail(err, FA_ERR_MEMORY, "shrink: out of memory");
  s->share = share;
  s->pool_config = (fa_pool_config){.n_workers = config->jobs,
                                    .timeout_s = config->timeout_s,
                                    .in_process = config->in_process,
                                    .one_try = config->rules && fa_rules_have(config->rules, FA_LAYER_FINAL),
                                    .ctx = s,
                                    .next = next_run,
                                    .run = run_item,
                                    .spent = is_spent,
                                    .identify = identify,
                                    .done = run_done,
                                    .tick = tick};
  return fa_pool_open(&s->pool_config, &s->pool, err);
}

void fa_shrinker_close(fa_shrinker *s) {
  fa_pool_close(s->pool);
  if (s->opened && s->config->in_process) s->config->choice->backend->close(s->self);
  if (s->share) munmap(s->share, sizeof *s->share);
  if (s->last) fa_result_free(s->last);
  free(s->last);
  free(s->known);
  memset(s, 0, sizeof *s);
}

void fa_shrinker_set_rule(fa_shrinker *s, fa_trial_rule rule) {
  s->rule = rule;
  s->n_known = 0;
}

/* Writes the proposals' texts; *n_seen of n fit. */
static fa_status write_texts(fa_shrinker *s, const fa_case *v, int n, int *n_seen, fa_error *err) {
  size_t used = 0;
  s->n_trials = s->n_order = s->n_order_back = 0;
  for (int i = 0; i < n && i < FA_SHRINK_ROUND; ++i) {
    char *line = fa_case_to_line(&v[i]);
    if (!line) return fa_fail(err, FA_ERR_MEMORY, "shrink: out of memory");
    const size_t bytes = strlen(line) + 1;
    const bool fits = bytes <= TEXT_BYTES - used;
    if (fits) {
      memcpy(s->share->text + used, line, bytes);
      s->trial[s->n_trials++] = (fa_trial){.hash = hash_text(line, bytes), .at = used, .n_bytes = bytes};
      used += bytes;
    }
    free(line);
    if (!fits) break;
  }
  *n_seen = s->n_trials;
  return s->n_trials > 0 ? FA_OK : fa_fail(err, FA_ERR_UNSUPPORTED, "shrink: the case's text is too long");
}

/* A run that takes ten times as long as the failing ones is no smaller version of them. A hang is always
 * late, so a small case of it must hang within a shorter time. */
static double time_limit(const fa_shrinker *s) {
  const double all = s->config->timeout_s;
  double limit = s->slowest_s > 0 ? 10 * s->slowest_s : 60;
  if (s->rule == FA_TRIAL_COUNT || !s->has_failure) return all;
  if (s->failure.state == FA_HANG) limit = 20;
  if (limit < 10) limit = 10;
  return all > 0 && all < limit ? all : limit;
}

static fa_status run_round(fa_shrinker *s, fa_error *err) {
  s->pool_config.timeout_s = time_limit(s);
  return fa_pool_drain(s->pool, &s->interrupted, err);
}

fa_status fa_shrinker_try(fa_shrinker *s, const fa_case *v, int n, int *n_seen, int *winner, uint64_t *seed,
                          fa_error *err) {
  *winner = -1;
  fa_status status = write_texts(s, v, n, n_seen, err);
  if (status != FA_OK) return status;
  for (int i = 0; i < s->n_trials; ++i) {
    const struct fa_shrink_known *k = find_known(s, s->trial[i].hash);
    if (!k) continue;
    s->trial[i].verdict = k->verdict;
    s->trial[i].seed = k->seed;
  }
  status = run_round(s, err);
  if (status != FA_OK) return status;
  for (int i = 0; i < s->n_trials; ++i)
    if (s->trial[i].verdict) remember(s, &s->trial[i]);
  for (int i = 0; i < s->n_trials && s->trial[i].verdict; ++i) {
    if (s->trial[i].verdict != 1) continue;
    *winner = i;
    *seed = s->trial[i].seed;
    break;
  }
  return FA_OK;
}

fa_status fa_shrinker_count(fa_shrinker *s, const fa_case *c, bool same_seed, int *n_failed, fa_error *err) {
  const fa_trial_rule rule = s->rule;
  const double deadline = s->deadline; /* is about shrinking; how a case fails must be known in any case */
  int n_seen;
  fa_status status = write_texts(s, c, 1, &n_seen, err);
  if (status != FA_OK) return status;
  s->deadline = 0;
  s->rule = FA_TRIAL_COUNT;
  s->same_seed = same_seed;
  status = run_round(s, err);
  s->rule = rule;
  s->deadline = deadline;
  s->same_seed = false;
  *n_failed = s->trial[0].n_failed;
  return status;
}
