/* Runs a session: gives items to the pool and receives results. */
#include "cases/codec/json.h"
#include "cases/threads/processors.h"
#include "fuzz/campaign/session.h"

#include "fuzz/coverage/words.h"
#include "fuzz/one/judges.h"
#include "fuzz/one/run_case.h"
#include "fuzz/probe/adopt.h"
#include "fuzz/shrink/report.h"
#include "report/causes/shape.h"
#include "report/maps.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>

fa_item fa_session_item(const fa_session *s, int64_t i) {
  if (s->item) return s->item[i];
  return (fa_item){.case_index = s->shard.index + i / s->n_choices * s->shard.total,
                   .backend = (int)(i % s->n_choices),
                   .schedule_seed = s->cli->schedule_seed,
                   .draw = s->draws ? FA_DRAW_LATER : 0,
                   .sample = s->cli->sample,
                   .number = FA_ITEM_OWN_NUMBER};
}

/* ---- callbacks of the pool ---- */

/* The time of an endless run is over, or a tier has no more cases. */
static bool is_over(const fa_session *s) {
  const fa_tier *tier = s->source.tier;
  const int64_t index = fa_session_item(s, s->next_item).case_index,
                n_laws = s->source.laws.n ? s->source.laws.n : 1;
  int64_t unused;
  fa_case_origin origin;
  if (!tier) return fa_seconds_now() >= s->deadline;
  if (!fa_tier_at(tier, index / n_laws, &unused, &origin)) return true;
  return s->next_item > 0 && /* however long it took to come here, one case is judged */
         fa_tier_is_over(tier, index / n_laws, s->deadline, fa_seconds_now());
}

/* Items that an earlier process had started are finished, regardless of deadline and --fail-fast: only then
 * is the report the same as without the interruption. */
static bool next_item(void *ctx, int64_t *item) {
  fa_session *s = ctx;
  const bool endless = !s->item && s->deadline != 0;
  for (;; ++s->next_item) {
    if (s->status != FA_OK || (!endless && s->next_item >= s->n_items)) return false;
    if (fa_resume_has(&s->resume, s->next_item)) continue;
    if (s->next_item < s->resume.end) break;
    if (s->give_up || (endless && is_over(s))) return false;
    break;
  }
  *item = s->next_item++;
  return true;
}

static void set_case(fa_result *r, const fa_case *c, int64_t index) {
  char number[40];
  snprintf(number, sizeof number, "#%lld", (long long)index);
  free(r->name);
  r->name = strdup(c->name[0] ? c->name : number);
  if (!r->case_line) r->case_line = fa_case_to_line(c);
  fa_words_text(fa_words_of(&c->problem), r->features, sizeof r->features);
  fa_shape_text_of(c, r->shape, sizeof r->shape);
  snprintf(r->place, sizeof r->place, "%s", c->place ? c->place : "");
}

static void set_error(fa_result *r, const fa_error *err) {
  r->state = FA_ERROR;
  snprintf(r->reason, sizeof r->reason, "%s", err->text);
}

/* A hand-written case that judges nothing is its author's mistake. The generator draws some such cases; they
 * are no failure of the subject and count as skipped. */
static void skip_if_vacuous(fa_result *r) {
  if (r->state != FA_VACUOUS) return;
  snprintf(r->reason, sizeof r->reason, "%s", FA_REASON_VACUOUS);
  r->state = FA_SKIP;
}

/* Waiting counts as the case's time, and must not make it look like a hang: a worker that hangs while
 * preparing is killed at its own time limit, which may be that of the waiting ones too. */
static double preparing_patience(const fa_session *s) {
  const double half = s->cli->timeout_s / 2;
  return half > 0 && half < 30 ? half : 30;
}

static bool is_random(const fa_session *s, fa_item item) {
  fa_case_origin unused;
  return fa_session_is_hidden(s, item.case_index) || fa_source_origin(&s->source, item.case_index, &unused);
}

static void run_case(fa_session *s, fa_lane *lane, int64_t number, fa_item item, const fa_case *c,
                     fa_result *out) {
  const fa_choice *choice = &s->choice[item.backend];
  fa_error err = {""};
  const bool alone = s->n_lanes == 1; /* else what goes wrong is run again, and that is the result */
  fa_run_config config = {.backend = choice->backend,
                          .backend_self = lane->self[item.backend],
                          .preparing = &lane->preparing[item.backend],
                          .n_threads = s->n_threads,
                          .schedule_seed = item.schedule_seed,
                          .end_to_end = s->cli->end_to_end,
                          .explain_seconds = s->cli->no_explain || !alone ? 0 : FA_EXPLAIN_SECONDS,
                          .judge = fa_judge_choice_named(s->cli->judge),
                          .sample = item.sample,
                          .maps = alone && (s->cli->report || s->cli->html),
                          .keep_dir = alone ? s->cli->keep : NULL,
                          .rules = s->rules,
                          .number = item.number == FA_ITEM_OWN_NUMBER ? number : item.number};
  if (fa_run_case(c, &config, out, &err) != FA_OK) set_error(out, &err);
  if (is_random(s, item)) skip_if_vacuous(out);
}

/* In a worker: before any backend is open. */
static void begin_lanes(void *ctx, int n_lanes) {
  fa_session *s = ctx;
  s->n_lanes = n_lanes;
  for (int b = 0; b < s->n_choices; ++b)
    if (n_lanes > 1) s->choice[b].backend->lanes(n_lanes);
}

/* Opens the item's backend, unless this process has it, and begins to prepare it. */
static fa_status open_backend(fa_session *s, int lane, int b, fa_error *err) {
  fa_lane *x = &s->lane[lane];
  if (x->opened[b]) return FA_OK;
  const fa_status status = fa_session_open_backend(s, lane, b, err);
  if (status == FA_OK)
    fa_preparing_begin(&x->preparing[b], s->choice[b].backend, x->self[b], &s->preparing_slots,
                       preparing_patience(s));
  return status;
}

/* What is repeated has the data of its run already. */
static void redraw(const fa_session *s, int64_t number, fa_item item, fa_case *c) {
  if (s->rules && item.number == FA_ITEM_OWN_NUMBER) fa_rules_redraw(s->rules, number, c);
}

static void run_item(void *ctx, int lane, int64_t number, fa_result *out) {
  fa_session *s = ctx;
  const fa_item item = fa_session_item(s, number);
  fa_error err = {""};
  fa_case c;
  fa_status opened = open_backend(s, lane, item.backend, &err);
  if (opened == FA_OK) opened = fa_session_draw(s, lane, number, item, &out->draw, &err);
  if (opened != FA_OK) set_error(out, &err);
  if (opened != FA_OK && s->rules && fa_rules_have(s->rules, FA_LAYER_FINAL)) out->state = FA_CRASH;
  if (fa_source_get(&s->source, item.case_index, out->draw, &c, &err) != FA_OK) {
    set_error(out, &err);
  } else {
    redraw(s, number, item, &c);
    if (opened == FA_OK) run_case(s, &s->lane[lane], number, item, &c, out);
    set_case(out, &c, item.case_index);
    fa_case_free(&c);
  }
  out->schedule_seed = item.schedule_seed;
  snprintf(out->backend, sizeof out->backend, "%s", s->choice[item.backend].spec);
}

static bool backends_are_spent(void *ctx, int lane) {
  fa_session *s = ctx;
  const fa_lane *x = &s->lane[lane];
  for (int b = 0; b < s->n_choices; ++b) {
    const fa_backend *backend = s->choice[b].backend;
    if (x->opened[b] && backend->spent && backend->spent(x->self[b])) return true;
  }
  return false;
}

static void identify_item(void *ctx, int64_t number, fa_result *out) {
  fa_session *s = ctx;
  fa_item item = fa_session_item(s, number);
  fa_error err = {""};
  fa_case c;
  out->schedule_seed = item.schedule_seed;
  snprintf(out->backend, sizeof out->backend, "%s", s->choice[item.backend].spec);
  out->draw = item.draw == FA_DRAW_LATER ? fa_session_drawn_last(s, number) : item.draw;
  if (fa_source_get(&s->source, item.case_index, out->draw, &c, &err) != FA_OK) return;
  redraw(s, number, item, &c);
  set_case(out, &c, item.case_index);
  fa_case_free(&c);
}

/* The report keeps the maps of its first failures in the order of items. Results arrive in another order, so that the
 * journal has to have more of them, but not those of every failure. */
#define MAPS_IN_JOURNAL (10 * FA_REPORT_MAPS)
static void drop_late_maps(fa_session *s, fa_result *r) {
  bool any = false;
  for (int i = 0; i < r->n_verdicts; ++i) any |= r->map[i] != NULL;
  s->n_mapped += any;
  r->maps_left_out = any && s->n_mapped > MAPS_IN_JOURNAL;
  if (r->maps_left_out) fa_result_drop_maps(r);
}

static void item_arrived(void *ctx, int64_t number, fa_result *r) {
  fa_session *s = ctx;
  drop_late_maps(s, r);
  if (!s->journal.path) return;
  char *line = fa_report_journal_line(r, number, fa_seconds_now() - s->started);
  if (line)
    fa_journal_append(&s->journal, line);
  else
    s->journal.lost = true;
  free(line);
}

/* A long campaign without a report needs no memory. */
static bool keeps(const fa_cli *cli, const fa_result *r) {
  const bool good = r->state == FA_PASS || r->state == FA_SKIP;
  return cli->report || cli->html || ((cli->shrink || cli->annotations) && !good);
}

static bool item_done(void *ctx, int64_t number, fa_result *r) {
  fa_session *s = ctx;
  fa_error err = {""};
  fa_progress_clear(&s->progress);
  fa_session_judge_known(s, number, r, NULL);
  fa_status status = fa_session_add_resumed(s, number, &err); /* first: they count in the failure's number */
  s->style.number = s->report.n_failures;
  fa_line_print(stdout, r, &s->style);
  fflush(stdout);
  if (status == FA_OK) status = fa_session_note(s, number, r, &err);
  fa_session_count_rules(s, number, r);
  if (keeps(s->cli, r)) {
    const int64_t before = s->report.n_failures;
    if (status == FA_OK) status = fa_report_add(&s->report, r, &err);
    fa_session_number_failure(s, before, number);
  } else {
    fa_summary_add(&s->report.summary, r);
  }
  if (status == FA_OK) status = fa_session_note_cause(s, r, &err);
  if (status == FA_OK && r->judged.broken) status = fa_fail(&err, FA_ERR_DEVICE, "%s", r->reason);
  if (status != FA_OK) {
    s->status = status;
    s->error = err;
  }
  fa_progress_note(&s->progress, r);
  s->dump_failed |= r->dump_failed;
  if (s->cli->fail_fast && fa_state_is_failure(r->state) && !r->waived) s->give_up = true;
  return s->status == FA_OK; /* next_item handles the rest */
}

static void tick(void *ctx) {
  fa_session *s = ctx;
  fa_progress_show(&s->progress, &s->report.summary);
}

static void start_progress(fa_session *s) { /* before results of earlier processes are added */
  fa_progress_init(&s->progress, !s->cli->no_progress, s->cli->verbose);
  s->progress.total = s->item ? s->n_items : -1;
  s->progress.limit = s->source.tier ? s->source.tier->seconds : s->cli->seconds;
  s->progress.profile = s->source.profile;
}

static void say_interrupted(const fa_session *s) {
  fprintf(stderr, "fa-verify: interrupted after %lld cases%s%s%s\n", (long long)s->report.summary.total,
          s->journal.path ? "; the same command with --resume goes on (" : "",
          s->journal.path ? s->journal.path : "", s->journal.path ? ")" : "");
}

/* True if --fail-fast ended the run before its last item. */
static bool has_given_up(const fa_session *s) {
  int64_t i = s->next_item;
  if (!s->give_up) return false;
  if (!s->item && s->deadline != 0) return fa_seconds_now() < s->deadline;
  while (i < s->n_items && fa_resume_has(&s->resume, i)) ++i;
  return i < s->n_items;
}

static void say_given_up(const fa_session *s) {
  if (!s->journal.path) return;
  fprintf(stderr,
          "fa-verify: ended by --fail-fast; the same command without it and with --resume goes on (%s)\n",
          s->journal.path);
}

int fa_session_exit_code(const fa_session *s, const fa_summary *sum, bool over) {
  const bool whole = over && s->shard.total == 1 && !s->cli->filter;
  const bool unneeded = s->waivers && fa_waivers_conclude(s->waivers, whole, stderr);
  const int code = fa_summary_exit_code(sum);
  return unneeded && (code == FA_EXIT_PASSED || code == FA_EXIT_NOTHING_JUDGED) ? FA_EXIT_MISMATCH : code;
}

/* After the last item: prints the summary and writes the report; returns the exit code. */
static int conclude(fa_session *s, fa_status status, fa_error *err, int interrupted) {
  if (status == FA_OK) status = fa_session_add_resumed(s, INT64_MAX, err);
  if (status != FA_OK) fa_cli_fail(status, err);
  const bool given_up = status == FA_OK && !interrupted && has_given_up(s);
  bool over = status == FA_OK && !interrupted && !given_up;
  if (interrupted) say_interrupted(s);
  if (given_up) say_given_up(s);
  const int verdict = fa_session_conclude_rules(s, fa_session_exit_code(s, &s->report.summary, over));
  if (s->run) {
    cJSON_AddItemToObject(s->report.root, "run", cJSON_Duplicate(s->run, 1));
    cJSON_AddBoolToObject(s->report.root, "finished", over);
  }
  if (s->cli->shrink && status == FA_OK && !interrupted)
    status = fa_shrink_failures(s->cli, s->choice, s->n_choices, &s->report, &interrupted, err);
  fa_report_add_sources(&s->report, s->choice, s->n_choices);
  fa_report_add_contracts(&s->report, s->choice, s->n_choices);
  fa_report_add_walls(&s->report, s->choice, s->n_choices);
  if (status == FA_OK) fa_session_cover(s);
  if (status == FA_OK) fa_session_say_tried(s);
  if (s->source.tier) fa_session_say_tier(s);
  int code = fa_report_finish(&s->report, s->causes, s->baseline, s->cli, &s->style,
                              fa_seconds_now() - s->started, interrupted);
  if (code == FA_EXIT_PASSED || code == FA_EXIT_NOTHING_JUDGED) code = verdict;
  if (s->dump_failed) {
    fputs("fa-verify: --keep: not every dump could be written; the notes say why\n", stderr);
    code = FA_EXIT_INFRASTRUCTURE;
  }
  over = over && status == FA_OK && !interrupted &&
         code != FA_EXIT_INFRASTRUCTURE; /* shrinking may have been interrupted */
  fa_status journal_status = fa_journal_close(&s->journal, over, err);
  if (journal_status != FA_OK) code = fa_cli_fail(journal_status, err);
  return status != FA_OK ? FA_EXIT_INFRASTRUCTURE : code;
}

/* The element types (bits) of the cases; those that are drawn may have any. */
static unsigned dtypes_of(const fa_session *s) {
  unsigned dtypes = 0;
  fa_case_origin unused;
  if (!s->source.list || s->source.tier) return ~0u;
  for (int64_t i = 0; i < s->source.list->n; ++i)
    dtypes |= fa_source_origin(&s->source, i, &unused) ? ~0u : 1u << s->source.list->v[i].problem.dtype;
  return dtypes;
}

/* What subjects have not said of themselves is found out now, before workers open them. */
static fa_status probe_choices(fa_session *s, fa_error *err) {
  fa_status status = FA_OK;
  const unsigned dtypes = s->cli->no_probe || s->rules ? 0 : dtypes_of(s); /* a contract says all */
  for (int b = 0; status == FA_OK && b < s->n_choices; ++b)
    status = fa_choice_probe(&s->choice[b], dtypes, s->cli->timeout_s, s->cli->quiet,
                             !s->cli->quiet && !s->cli->no_progress, &s->report, err);
  return status;
}

int fa_session_run(fa_session *s) {
  fa_error err = {""};
  const int jobs = fa_session_jobs(s);
  int code = -1, interrupted = 0;
  s->n_threads = fa_processors() > jobs ? fa_processors() / jobs : 1;
  s->started = fa_seconds_now();
  fa_status status = fa_report_start(&s->report, s->cli, s->n_choices ? &s->choice[0] : NULL, &err);
  s->causes = fa_causes_make();
  if (status == FA_OK && !s->causes) status = fa_fail(&err, FA_ERR_MEMORY, "out of memory");
  if (s->causes) fa_causes_set_mode(s->causes, s->mode);
  start_progress(s);
  if (status == FA_OK && s->cli->report) status = fa_session_open_journal(s, &code, &err);
  if (status != FA_OK) return fa_cli_fail(status, &err);
  if (code >= 0) return code;
  if (s->rules && !s->cli->quiet) fa_rules_print_begin(s->rules, stdout);
  if (!s->cli->no_isolate) s->preparing_slots = fa_process_slots_make(FA_PREPARING_AT_ONCE);
  status = fa_judges_start(fa_judge_choice_named(s->cli->judge), s->cli->timeout_s,
                           s->cli->no_isolate ? NULL : &s->preparing_slots, &err);
  if (status == FA_OK && probe_choices(s, &err) != FA_OK) status = FA_ERR_DEVICE;
  if (status != FA_OK) return fa_cli_fail(status, &err);
  s->progress.spent = s->resume.spent;
  s->progress.n_resumed = s->resume.n;
  fa_pool_config pool = {.n_workers = jobs,
                         .timeout_s = s->cli->timeout_s,
                         .lanes = fa_session_lanes(s, jobs),
                         .in_process = s->cli->no_isolate,
                         .one_try = s->rules && fa_rules_have(s->rules, FA_LAYER_FINAL),
                         .ctx = s,
                         .next = next_item,
                         .begin = begin_lanes,
                         .run = run_item,
                         .spent = backends_are_spent,
                         .identify = identify_item,
                         .arrived = item_arrived,
                         .done = item_done,
                         .tick = tick};
  status = fa_pool_run(&pool, &interrupted, &err);
  fa_judges_stop();
  fa_progress_clear(&s->progress);
  if (status == FA_OK && s->status != FA_OK) {
    status = s->status;
    err = s->error;
  }
  return conclude(s, status, &err, interrupted);
}
