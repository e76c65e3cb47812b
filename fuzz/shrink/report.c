#include "fuzz/shrink/report.h"
#include "cases/codec/json.h"

#include "cases/threads/processors.h"
#include "fuzz/one/failure_word.h"
#include "report/sampling/record.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

fa_shrink_config fa_shrink_config_from_cli(const fa_cli *cli, const fa_choice *choice) {
  const bool show = !cli->quiet && !cli->no_progress && (cli->verbose || isatty(STDERR_FILENO));
  fa_shrink_config config = {.choice = choice,
                             .schedule_seed = cli->schedule_seed,
                             .jobs = cli->jobs ? (int)cli->jobs : fa_processors(),
                             .timeout_s = cli->timeout_s,
                             .seconds = cli->seconds,
                             .in_process = cli->no_isolate,
                             .end_to_end = cli->end_to_end,
                             .sample = cli->sample,
                             .progress = show ? stderr : NULL};
  if (config.jobs > 256) config.jobs = 256;
  return config;
}

/* Prints nothing if there was no time for it. */
static void print_reliability(FILE *out, const fa_shrink_result *r) {
  if (r->n_runs) fprintf(out, "%d of %d runs", r->n_failed, r->n_runs);
}

void fa_shrink_print(FILE *out, const char *name, const char *backend, const fa_shrink_result *r,
                     const fa_line_style *style) {
  char text[128];
  const char *shown = name[0] ? name : "(unnamed)";
  fa_failure_class_text(&r->failure, text, sizeof text);
  if (r->outcome == FA_SHRINK_SKIPPED) fprintf(out, "SKIP %s  %s  %s\n", shown, backend, r->reason);
  if (r->outcome == FA_SHRINK_PASSES)
    fprintf(out, "PASS %s  %s  it does not fail (%d of %d runs)\n", shown, backend, r->n_failed, r->n_runs);
  if (r->outcome == FA_SHRINK_FLAKY)
    fprintf(out, "FLAKY %s  %s  flaky: %d of %d runs fail (%s); not shrunk\n", shown, backend, r->n_failed,
            r->n_runs, text);
  if (r->outcome != FA_SHRINK_DONE) return;
  if (style->verbosity >= 0) {
    fprintf(out, "SHRUNK %s  %s  %s  ", shown, backend, text);
    print_reliability(out, r);
    fprintf(out, "  %lld steps, %lld runs, %.1f s%s%s\n", (long long)r->steps, (long long)r->total_runs,
            r->seconds, r->out_of_time ? "  (the time was over)" : "",
            r->interrupted ? "  (interrupted: the smallest so far)" : "");
    if (r->last) fa_line_print(out, r->last, style);
  }
  char *line = fa_case_to_line(&r->c);
  fprintf(out, "%s\n", line ? line : "{}");
  free(line);
}

/* ---- failures of a run ---- */

#define SECONDS_EACH 60
#define MAX_OF_A_CLASS 3

static cJSON *shrunk_to_json(const fa_shrink_result *r) {
  char text[128];
  cJSON *o = cJSON_CreateObject();
  char *line = fa_case_to_line(&r->c);
  cJSON_AddItemToObject(o, "case", line ? cJSON_Parse(line) : cJSON_CreateObject());
  free(line);
  snprintf(text, sizeof text, "%llu", (unsigned long long)r->schedule_seed);
  cJSON_AddStringToObject(o, "schedule_seed", text);
  fa_failure_class_text(&r->failure, text, sizeof text);
  cJSON_AddStringToObject(o, "failure", text);
  snprintf(text, sizeof text, "%d of %d", r->n_failed, r->n_runs);
  cJSON_AddStringToObject(o, "reproduced", text);
  cJSON_AddNumberToObject(o, "steps", (double)r->steps);
  cJSON_AddNumberToObject(o, "runs", (double)r->total_runs);
  snprintf(text, sizeof text, "%.3f", r->seconds);
  cJSON_AddRawToObject(o, "seconds", text);
  return o;
}

static void say(const cJSON *failure, int64_t k, const fa_shrink_result *r) {
  static const char *const what[] = {[FA_SHRINK_PASSES] = "it did not fail again",
                                     [FA_SHRINK_FLAKY] = "it fails too rarely",
                                     [FA_SHRINK_SKIPPED] = "it was skipped"};
  const cJSON *name = cJSON_GetObjectItemCaseSensitive(failure, "name");
  printf("shrunk failure %lld, %s: ", (long long)k, cJSON_IsString(name) ? name->valuestring : "");
  if (r->outcome != FA_SHRINK_DONE) {
    printf("no: %s (%d of %d runs)\n", what[r->outcome], r->n_failed, r->n_runs);
    return;
  }
  char *line = fa_case_to_line(&r->c);
  if (r->interrupted) fputs("interrupted, the smallest so far", stdout);
  print_reliability(stdout, r);
  printf(", %lld runs, %.1f s: --backend %s ", (long long)r->total_runs, r->seconds,
         fa_failure_backend(failure));
  if (r->schedule_seed) printf("--schedule-seed %llu ", (unsigned long long)r->schedule_seed);
  fputs("--case ", stdout);
  fa_print_shell_word(stdout, line ? line : "{}");
  putchar('\n');
  free(line);
}

/* True if enough failures of this class were shrunk; counts this one. */
static bool had_enough(fa_failure_class *seen, int *n_seen, int capacity, const fa_failure_class *class) {
  int n = 0;
  for (int i = 0; i < *n_seen; ++i) n += fa_failure_class_equal(&seen[i], class);
  if (n >= MAX_OF_A_CLASS || *n_seen == capacity) return true;
  seen[(*n_seen)++] = *class;
  return false;
}

static fa_status shrink_one(const fa_cli *cli, const fa_choice *choice, cJSON *failure, int64_t k,
                            const fa_failure_class *class, int *interrupted, fa_error *err) {
  fa_shrink_config config = fa_shrink_config_from_cli(cli, choice);
  fa_shrink_result r;
  fa_case c;
  fa_sampled_read(failure, &config.sample, NULL); /* of a report of its own */
  fa_status status = fa_failure_read(failure, false, &c, &config.schedule_seed, err);
  if (status != FA_OK) return status;
  config.seconds = SECONDS_EACH;
  config.known = class;
  status = fa_shrink(&c, &config, &r, err);
  fa_case_free(&c);
  if (status != FA_OK) return status;
  if (r.outcome == FA_SHRINK_DONE) {
    cJSON_DeleteItemFromObjectCaseSensitive(failure, "shrunk");
    if (!cJSON_AddItemToObject(failure, "shrunk", shrunk_to_json(&r)))
      status = fa_fail(err, FA_ERR_MEMORY, "report: out of memory");
  }
  if (!cli->quiet || !cli->report) say(failure, k, &r); /* otherwise it would be lost */
  *interrupted = r.interrupted;
  fa_shrink_result_free(&r);
  return status;
}

static void say_interrupted(const fa_cli *cli) {
  fputs("fa-verify: interrupted while shrinking; ", stderr);
  if (cli->report)
    fprintf(stderr, "%s has all results and what was shrunk; fa-verify shrink %s shrinks its failures\n",
            cli->report, cli->report);
  else
    fputs("fa-verify shrink --case JSON goes on from a printed case\n", stderr);
}

fa_status fa_shrink_failures(const fa_cli *cli, const fa_choice *choice, int n_choices, fa_report *report,
                             int *interrupted, fa_error *err) {
  enum { CAPACITY = 300 };
  fa_failure_class seen[CAPACITY];
  int n_seen = 0;
  int64_t k = -1, n_left = 0;
  cJSON *failure;
  cJSON_ArrayForEach(failure, report->failures) {
    fa_failure_class class;
    int b = 0;
    ++k;
    while (b < n_choices && strcmp(choice[b].spec, fa_failure_backend(failure)) != 0) ++b;
    if (b == n_choices || !fa_failure_class_from_json(failure, &class) || *interrupted) continue;
    if (had_enough(seen, &n_seen, CAPACITY, &class)) {
      ++n_left;
      continue;
    }
    fa_status status = shrink_one(cli, &choice[b], failure, k, &class, interrupted, err);
    if (status == FA_ERR_MEMORY) return status;
    if (status != FA_OK) fprintf(stderr, "fa-verify: failure %lld not shrunk: %s\n", (long long)k, err->text);
  }
  if (*interrupted) say_interrupted(cli);
  if (n_left)
    fprintf(stderr, "fa-verify: %lld failures not shrunk: %d of their class were\n", (long long)n_left,
            MAX_OF_A_CLASS);
  return FA_OK;
}
