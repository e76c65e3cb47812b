/* shrink: reduces failing cases to minimal ones that fail in the same way. */
#include "cases/base/atomic_file.h"
#include "cases/codec/file.h"
#include "fuzz/campaign/session.h"
#include "fuzz/cli/commands.h"
#include "fuzz/cli/repeat.h"
#include "fuzz/generate/draw.h"
#include "fuzz/one/failure_word.h"
#include "fuzz/options/cases_select.h"
#include "fuzz/options/untrusted.h"
#include "fuzz/probe/adopt.h"
#include "fuzz/shrink/report.h"
#include "fuzz/untrusted/mode.h"
#include "report/sampling/record.h"
#include "report/unfinished.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct target {
  fa_case c;
  uint64_t schedule_seed;
  fa_sample sample;
  fa_failure_class known;
  bool has_known;
  int64_t number;                                /* that the failure had in its run */
  char backend[sizeof((fa_choice *)NULL)->spec]; /* "": the default */
} target;

typedef struct command {
  const fa_cli *cli;
  target *v;
  int64_t n;
  bool other_backend; /* --backend names it, and not the report */
  fa_choice choice;
  fa_repeat repeat;
  fa_wall_terms of_wall;
  const fa_wall_terms *terms; /* NULL: the candidate is trusted; else by these rules: */
  fa_rules rules;
  char *mode;        /* owned */
  fa_case_list done; /* for --out */
  fa_line_style style;
  int64_t n_failing, n_passing;
  int interrupted;
} command;

/* Takes ownership of the case. */
static fa_status push_target(command *x, const target *t, fa_error *err) {
  target *bigger = realloc(x->v, (size_t)(x->n + 1) * sizeof *bigger);
  if (!bigger) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  x->v = bigger;
  x->v[x->n++] = *t;
  return FA_OK;
}

static fa_status add_failure(void *ctx, const cJSON *failure, bool shrunk, fa_error *err) {
  command *x = ctx;
  target t = {.schedule_seed = 0};
  fa_status status = fa_sampled_read(failure, &t.sample, err);
  if (status == FA_OK) status = fa_failure_read(failure, shrunk, &t.c, &t.schedule_seed, err);
  if (status != FA_OK) return status;
  /* The failure on another backend is unknown. */
  t.has_known = !x->other_backend && fa_failure_class_from_json(failure, &t.known);
  t.number = fa_repeat_number(failure);
  snprintf(t.backend, sizeof t.backend, "%s", fa_failure_backend(failure));
  status = push_target(x, &t, err);
  if (status != FA_OK) fa_case_free(&t.c);
  return status;
}

static bool is_report(const char *path) {
  char *text = NULL;
  size_t n = 0;
  fa_error ignored;
  if (strcmp(path, "-") == 0 || fa_file_read(path, &text, &n, &ignored) != FA_OK) return false;
  cJSON *root = cJSON_ParseWithLength(text, n);
  const bool found = cJSON_GetObjectItemCaseSensitive(root, "fa_report") != NULL;
  cJSON_Delete(root);
  free(text);
  return found;
}

/* Adds the cases of a list, or only number k. */
static fa_status add_cases(command *x, fa_case_list *list, const char *word, int64_t k, fa_error *err) {
  fa_status status = FA_OK;
  if (k >= list->n)
    return fa_fail(err, FA_ERR_INPUT, "%s: there are %lld cases, counted from 0", word, (long long)list->n);
  for (int64_t i = 0; status == FA_OK && i < list->n; ++i) {
    if (k >= 0 && i != k) continue;
    target t = {.c = list->v[i]};
    status = push_target(x, &t, err);
    if (status == FA_OK) list->v[i] = (fa_case){0};
  }
  return status;
}

static fa_status add_word(command *x, const char *word, fa_error *err) {
  fa_failure_word w;
  fa_status status = fa_failure_word_read(word, &w, err);
  if (status != FA_OK) return status;
  if (w.shrunk || fa_report_is_unfinished(w.path) || is_report(w.path))
    return fa_failures_visit(word, add_failure, x, err);
  fa_case_list list = {0};
  status = fa_case_file_load(w.path, fa_generate, &list, err);
  if (status == FA_ERR_IO) status = FA_ERR_INPUT; /* the user named it */
  if (status == FA_OK) status = add_cases(x, &list, word, w.k, err);
  fa_case_list_free(&list);
  return status;
}

static fa_status find_targets(command *x, fa_error *err) {
  const fa_cli *cli = x->cli;
  fa_case_list list = {0};
  fa_status status = FA_OK;
  for (int i = 0; status == FA_OK && i < cli->words.n; ++i) status = add_word(x, cli->words.v[i], err);
  if (status == FA_OK) status = fa_cli_load_cases(cli, &list, NULL, err);
  if (status == FA_OK) status = add_cases(x, &list, "--case", -1, err);
  fa_case_list_free(&list);
  for (int64_t i = 0; i < x->n; ++i)
    if (cli->schedule_seed) x->v[i].schedule_seed = cli->schedule_seed;
  return status;
}

/* ---- who fails ---- */

/* What is fixed about a candidate that nobody trusts: as in the report, or drawn now. */
static fa_status begin_rules(command *x, fa_error *err) {
  char layers[400];
  fa_status status =
      fa_rules_init(&x->rules, x->choice.layers, x->choice.said.contract, x->cli->arithmetic, err);
  if (status == FA_OK && x->repeat.root && fa_rules_have(&x->rules, FA_LAYER_CONTRACT))
    status = fa_repeat_check_contract(&x->repeat, x->rules.contract_sha256, err);
  if (status == FA_OK) status = fa_rules_begin(&x->rules, x->cli->secret, "", err);
  if (status != FA_OK) return status;
  x->rules.n_items = 1; /* every run ends with a new process, so that none remembers the one before */
  x->style.mode = x->mode = fa_rules_mode(&x->rules, x->terms);
  if (!x->mode) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  fa_layers_text(x->rules.layers, layers, sizeof layers);
  if (!x->cli->quiet) printf("untrusted: %s\nuntrusted: layers in force: %s\n", x->choice.info.wall, layers);
  return FA_OK;
}

static fa_status choose_untrusted(command *x, const target *t, fa_error *err) {
  const char *spec = x->cli->backend.v[0];
  if (x->repeat.root && strcmp(t->backend, spec) != 0)
    return fa_fail(err, FA_ERR_INPUT, "one candidate at a time, where it is not trusted: %s is another",
                   t->backend);
  if (x->choice.backend) return FA_OK;
  const fa_status status = fa_choose_untrusted(x->cli->backends, spec, x->terms, &x->choice, err);
  return status == FA_OK ? begin_rules(x, err) : status;
}

/* --backend, else the failure's backend, else the default. */
static fa_status choose(command *x, const target *t, fa_error *err) {
  const fa_cli *cli = x->cli;
  if (x->terms) return choose_untrusted(x, t, err);
  const char *spec = cli->backend.n ? cli->backend.v[0] : t->backend;
  if (x->choice.backend && (strcmp(x->choice.spec, spec) == 0 || !spec[0])) return FA_OK;
  if (spec[0]) {
    const fa_status status = fa_choose_backend(cli->backends, spec, &x->choice, err);
    return status == FA_OK ? fa_choice_probe(&x->choice, cli->no_probe ? 0 : ~0u, cli->timeout_s, cli->quiet,
                                             !cli->quiet && !cli->no_progress, NULL, err)
                           : status;
  }
  return fa_choose_default(cli->backends, cli->quiet, &x->choice, err);
}

static fa_status keep_for_file(command *x, const fa_shrink_result *r, fa_error *err) {
  char text[128], note[256];
  fa_case c;
  fa_failure_class_text(&r->failure, text, sizeof text);
  snprintf(note, sizeof note, "shrunk; %s in %d of %d runs on %s", text, r->n_failed, r->n_runs,
           x->choice.spec);
  size_t n = strlen(note);
  if (r->schedule_seed)
    snprintf(note + n, sizeof note - n, ", --schedule-seed %llu", (unsigned long long)r->schedule_seed);
  fa_status status = fa_case_copy(&c, &r->c);
  if (status == FA_OK) {
    free(c.note);
    c.note = strdup(note);
    status = c.note ? fa_case_list_push(&x->done, &c) : FA_ERR_MEMORY;
    if (status != FA_OK) fa_case_free(&c);
  }
  return status == FA_OK ? FA_OK : fa_fail(err, status, "out of memory");
}

static fa_status shrink_target(command *x, const target *t, fa_error *err) {
  fa_shrink_config config = fa_shrink_config_from_cli(x->cli, &x->choice);
  config.schedule_seed = t->schedule_seed;
  if (!fa_sample_is_asked(&x->cli->sample)) config.sample = t->sample;
  config.known = t->has_known ? &t->known : NULL;
  config.rules = x->terms ? &x->rules : NULL;
  config.number = t->number;
  fa_shrink_result r;
  fa_status status = fa_shrink(&t->c, &config, &r, err);
  if (status != FA_OK) return status;
  fa_shrink_print(stdout, t->c.name, x->choice.spec, &r, &x->style);
  fflush(stdout);
  x->n_failing += r.outcome == FA_SHRINK_DONE || r.outcome == FA_SHRINK_FLAKY;
  x->n_passing += r.outcome == FA_SHRINK_PASSES;
  x->interrupted = r.interrupted;
  if (r.outcome == FA_SHRINK_DONE) status = keep_for_file(x, &r, err);
  fa_shrink_result_free(&r);
  return status;
}

/* n_left: how many were not started. */
static void say_interrupted(const command *x, int64_t n_left) {
  const bool saved = x->cli->out && x->done.n > 0;
  fprintf(stderr, "fa-verify: interrupted; the smallest case so far is %s%s: shrink goes on from it",
          saved ? "in " : "printed", saved ? x->cli->out : "");
  if (n_left > 0) fprintf(stderr, "; %lld more were not begun", (long long)n_left);
  fputc('\n', stderr);
}

/* Reads what is to be shrunk, and on what terms. */
static fa_status prepare(command *x, fa_error *err) {
  const fa_cli *cli = x->cli;
  x->other_backend = cli->backend.n > 0;
  fa_status status = cli->out ? fa_file_check_writable(cli->out, err) : FA_OK;
  if (status == FA_OK) status = fa_repeat_open(cli, &x->repeat, err);
  if (status != FA_OK) return status;
  x->cli = cli = &x->repeat.cli;
  if (!cli->untrusted && (cli->secret || cli->arithmetic))
    return fa_fail(err, FA_ERR_INPUT, "--%s goes with --untrusted", cli->secret ? "secret" : "arithmetic");
  status = fa_cli_terms(cli, &x->of_wall, &x->terms, err);
  return status == FA_OK ? find_targets(x, err) : status;
}

static void command_free(command *x) {
  for (int64_t i = 0; i < x->n; ++i) fa_case_free(&x->v[i].c);
  free(x->v);
  free(x->mode);
  fa_case_list_free(&x->done);
  fa_repeat_free(&x->repeat);
}

int fa_command_shrink(const fa_cli *cli) {
  fa_error err = {""};
  static command x; /* the rules are large */
  x = (command){.cli = cli};
  if (cli->words.n == 0 && cli->case_text.n == 0)
    return fa_cli_usage_error("shrink: REPORT.json[:K], CASE.json or --case JSON is needed");
  if (cli->backend.n > 1) return fa_cli_usage_error("shrink: one --backend at a time");
  fa_line_style_from_cli(&x.style, cli);
  fa_status status = prepare(&x, &err);
  int64_t i = 0;
  for (; status == FA_OK && i < x.n && !x.interrupted; ++i) {
    status = choose(&x, &x.v[i], &err);
    if (status == FA_OK) status = shrink_target(&x, &x.v[i], &err);
  }
  if (status == FA_OK && cli->out && x.done.n > 0)
    status = fa_case_file_save(cli->out, x.done.v, x.done.n, &err);
  if (status == FA_OK && x.interrupted) say_interrupted(&x, x.n - i);
  const int64_t n = x.n;
  command_free(&x);
  if (status != FA_OK) return fa_cli_fail(status, &err);
  if (n == 0) fputs("fa-verify: there is no failure to shrink\n", stderr);
  if (x.interrupted) return 128 + x.interrupted;
  return x.n_failing ? FA_EXIT_MISMATCH : x.n_passing ? FA_EXIT_PASSED : FA_EXIT_NOTHING_JUDGED;
}
