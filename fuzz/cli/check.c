/* check: judges recorded runs (outputs and gradients made elsewhere) by the reference. */
#include "cases/base/atomic_file.h"
#include "cases/codec/json.h"
#include "fuzz/campaign/session.h"
#include "fuzz/cli/commands.h"
#include "fuzz/coverage/words.h"
#include "fuzz/explain/run.h"
#include "fuzz/judging/judge.h"
#include "fuzz/judging/run_config.h"
#include "fuzz/one/judges.h"
#include "fuzz/one/recorded.h"
#include "fuzz/options/filter.h"
#include "report/causes/shape.h"

#include <stdlib.h>
#include <string.h>

typedef struct recorded_file {
  const char *path;
  fa_safetensors f;
  char **group; /* owned */
  int64_t n_groups;
} recorded_file;

typedef struct checker {
  const fa_cli *cli;
  recorded_file *file;
  int n_files;
  fa_shard shard;
  fa_filter filter;
  int64_t n_asked; /* groups of this shard */
  fa_line_style style;
  fa_report report;
  fa_causes *causes;     /* owned */
  fa_baseline *baseline; /* owned; or NULL */
  fa_result r;           /* of the current group */
} checker;

static bool is_wanted(checker *x, const char *group, int64_t number) {
  if (number % x->shard.total != x->shard.index) return false;
  ++x->n_asked;
  return fa_filter_passes(&x->filter, group);
}

/* Opens every file and reads every group once, so that nothing runs if something is malformed. */
static fa_status open_files(checker *x, fa_error *err) {
  fa_status status = FA_OK;
  for (int i = 0; status == FA_OK && i < x->n_files; ++i) {
    recorded_file *f = &x->file[i];
    f->path = x->cli->words.v[i];
    status = fa_safetensors_open(f->path, &f->f, err);
    if (status == FA_ERR_IO) status = FA_ERR_INPUT; /* the user named it */
    if (status == FA_OK) status = fa_recorded_groups(&f->f, f->path, &f->group, &f->n_groups, err);
    for (int64_t g = 0; status == FA_OK && g < f->n_groups; ++g) {
      fa_recorded recorded;
      status = fa_recorded_load(&f->f, f->path, f->group[g], &recorded, err);
      if (status == FA_OK)
        fa_recorded_free(&recorded);
      else if (status == FA_ERR_UNSUPPORTED)
        status = FA_OK; /* skipped later */
    }
  }
  return status;
}

static void close_files(checker *x) {
  for (int i = 0; x->file && i < x->n_files; ++i) {
    for (int64_t g = 0; g < x->file[i].n_groups; ++g) free(x->file[i].group[g]);
    free(x->file[i].group);
    fa_safetensors_close(&x->file[i].f);
  }
  free(x->file);
}

/* Memory-efficient kernels round P before they form dS; the others do not. */
static const char *profile_of(const fa_problem *p) {
  return p->family == FA_MEMEFF && fa_profile_exists("recorded-memeff") ? "recorded-memeff" : "recorded";
}

/* Judges, and explains what fails. */
static fa_status judge_and_explain(const checker *x, const fa_recorded *recorded, fa_judge_config *config,
                                   fa_result *r, fa_error *err) {
  const fa_status opened = fa_judges_ask(fa_judge_choice_named(x->cli->judge), config, r, err);
  if (opened != FA_OK) return opened;
  const fa_explain_options explain = {.seconds = FA_EXPLAIN_SECONDS};
  const fa_problem *p = &recorded->c.problem;
  fa_judged judged = {.from_o = false};
  const double start = fa_seconds_now();
  if (!x->cli->no_explain) config->keep = &judged;
  fa_status status = fa_judge(p, &recorded->in, &recorded->got, config, r, err);
  r->seconds_reference = fa_seconds_now() - start;
  if (status == FA_OK && config->keep && !fa_sample_is_asked(&r->sampled.asked))
    status = fa_explain(p, &recorded->in, &recorded->got, config, &judged, &explain, r, err);
  fa_judged_free(&judged);
  return status;
}

static void judge_group(checker *x, const recorded_file *f, const char *group) {
  fa_recorded recorded;
  fa_error err = {""};
  fa_result *r = &x->r;
  double start = fa_seconds_now();
  fa_status status = fa_recorded_load(&f->f, f->path, group, &recorded, &err);
  if (status == FA_OK) {
    fa_profile profile = fa_profile_get(profile_of(&recorded.c.problem), recorded.c.problem.dtype);
    fa_judge_config config = {.profile = &profile,
                              .n_threads = 0,
                              .generic = fa_case_is_generic(&recorded.c),
                              .end_to_end = x->cli->end_to_end,
                              .backward = recorded.backward,
                              .recorded = true,
                              .sample = x->cli->sample,
                              .sample_stream = recorded.c.data_seed,
                              .maps = x->cli->report || x->cli->html};
    snprintf(r->profile, sizeof r->profile, "%s", profile.name);
    bool forward = recorded.got.t[FA_T_O].data || recorded.got.t[FA_T_LSE].data;
    r->passes = (forward ? FA_PASS_FORWARD : 0) | (recorded.backward ? FA_PASS_BACKWARD : 0);
    r->case_line = fa_case_to_line(&recorded.c);
    fa_words_text(fa_words_of(&recorded.c.problem), r->features, sizeof r->features);
    fa_shape_text_of(&recorded.c, r->shape, sizeof r->shape);
    status = judge_and_explain(x, &recorded, &config, r, &err);
    fa_recorded_free(&recorded);
  }
  if (status != FA_OK) {
    r->state = status == FA_ERR_UNSUPPORTED ? FA_SKIP : FA_ERROR;
    r->malformed = status == FA_ERR_INPUT;
    snprintf(r->reason, sizeof r->reason, "%s", err.text);
  } else if (r->state == FA_UNTESTED && r->n_verdicts > 0) {
    r->state = FA_PASS;
  }
  r->name = strdup(group);
  snprintf(r->backend, sizeof r->backend, "recorded");
  snprintf(r->file, sizeof r->file, "%s", f->path);
  r->seconds = fa_seconds_now() - start;
}

static fa_status judge_files(checker *x, fa_error *err) {
  fa_status status = FA_OK;
  int64_t number = 0;
  for (int i = 0; i < x->n_files; ++i) {
    for (int64_t g = 0; status == FA_OK && g < x->file[i].n_groups; ++g) {
      const char *group = x->file[i].group[g];
      if (!is_wanted(x, group, number++)) continue;
      fa_result_init(&x->r);
      judge_group(x, &x->file[i], group);
      if (x->baseline) fa_baseline_judge(x->baseline, &x->r, NULL);
      fa_line_print(stdout, &x->r, &x->style);
      fflush(stdout);
      if (x->report.require) fa_require_note(x->report.require, &x->r);
      status = fa_report_add(&x->report, &x->r, err);
      const bool failed = fa_state_is_failure(x->r.state);
      if (status == FA_OK)
        status = fa_causes_note(x->causes, &x->r, failed ? fa_report_last_failure(&x->report) : NULL, err);
      const bool stop = x->cli->fail_fast && failed && !x->r.waived;
      if (status == FA_OK && x->r.judged.broken) status = fa_fail(err, FA_ERR_DEVICE, "%s", x->r.reason);
      fa_result_free(&x->r);
      if (stop) return status;
    }
  }
  return status;
}

int fa_command_check(const fa_cli *cli) {
  if (cli->words.n == 0) return fa_cli_usage_error("check: FILE.safetensors... is needed");
  fa_error err = {""};
  double start = fa_seconds_now();
  int code;
  checker *x = calloc(1, sizeof *x);
  if (!x) return fa_cli_fail(FA_ERR_MEMORY, &(fa_error){"out of memory"});
  x->cli = cli;
  x->n_files = cli->words.n;
  fa_line_style_from_cli(&x->style, cli);
  x->file = calloc((size_t)x->n_files, sizeof *x->file);
  x->causes = fa_causes_make();
  fa_status status = x->file && x->causes ? FA_OK : fa_fail(&err, FA_ERR_MEMORY, "out of memory");
  if (status == FA_OK && cli->report) status = fa_file_check_writable(cli->report, &err);
  if (status == FA_OK && cli->html) status = fa_file_check_writable(cli->html, &err);
  if (status == FA_OK) status = fa_shard_read(cli->shard, &x->shard, &err);
  if (status == FA_OK) status = fa_filter_compile(cli, &x->filter, &err);
  if (status == FA_OK) status = fa_report_open_baseline(cli, NULL, 1, &x->baseline, &err);
  if (status == FA_OK) status = open_files(x, &err);
  if (status == FA_OK) status = fa_report_start(&x->report, cli, NULL, &err);
  if (status == FA_OK)
    status = fa_judges_start(fa_judge_choice_named(cli->judge), cli->timeout_s, NULL, &err);
  if (status == FA_OK) status = judge_files(x, &err);
  if (status == FA_OK) fa_filter_report(&x->filter, x->n_asked, x->shard.total);
  code = status == FA_OK ? fa_report_finish(&x->report, x->causes, x->baseline, cli, &x->style,
                                            fa_seconds_now() - start, 0)
                         : fa_cli_fail(status, &err);
  fa_judges_stop();
  fa_filter_free(&x->filter);
  fa_causes_free(x->causes);
  fa_baseline_free(x->baseline);
  fa_report_free(&x->report);
  close_files(x);
  free(x);
  return code;
}
