/* The session's use of the journal: the identity of the run, and adding its results to the report. */
#include "cases/codec/json.h"
#include "fuzz/campaign/session.h"

#include "cases/base/sha256.h"
#include "fuzz/options/version.h"
#include "report/unfinished.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- identity of the run ---- */

/* Hashes every case of a list and every item: which case on which backend, with which schedule. */
static bool hash_items(const fa_session *s, char hex[65]) {
  fa_sha256 sha;
  fa_sha256_init(&sha);
  for (int64_t i = 0; s->source.list && i < s->source.list->n; ++i) {
    char *line = fa_case_to_line(&s->source.list->v[i]);
    if (!line) return false;
    fa_sha256_add(&sha, line, strlen(line) + 1);
    free(line);
  }
  for (int64_t i = 0; i < s->n_items; ++i) {
    const int64_t fields[3] = {s->item[i].case_index, s->item[i].backend, (int64_t)s->item[i].schedule_seed};
    const fa_sample *sample = &s->item[i].sample;
    const int64_t sampled[3] = {sample->rows, sample->strips, (int64_t)sample->seed};
    fa_sha256_add(&sha, fields, sizeof fields);
    if (fa_sample_is_asked(sample)) fa_sha256_add(&sha, sampled, sizeof sampled);
  }
  fa_sha256_hex(&sha, hex);
  return true;
}

static void add_u64(cJSON *o, const char *key, uint64_t n) {
  char text[24];
  snprintf(text, sizeof text, "%llu", (unsigned long long)n);
  cJSON_AddStringToObject(o, key, text);
}

/* Environment variables that affect the choice of GPU kernels; nothing is added if none is set. */
static void add_environment(cJSON *o) {
  static const char *const names[] = {"FA_HOPPER", "FA_NVRTC", "FA_FLEX_COMPILE"};
  cJSON *set = NULL;
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    const char *value = getenv(names[i]);
    if (!value || !*value) continue;
    if (!set) set = cJSON_AddObjectToObject(o, "environment");
    cJSON_AddStringToObject(set, names[i], value);
  }
}

static void add_sample(cJSON *o, const fa_sample *sample) {
  char text[FA_SAMPLE_TEXT];
  fa_sample_text(sample, text);
  cJSON_AddStringToObject(o, "sample", text);
}

/* Everything that affects the results, as an object: equal for runs that may resume each other. NULL when out
 * of memory. */
static cJSON *identity_of(const fa_session *s) {
  char hash[65], shard[64];
  cJSON *o = cJSON_CreateObject();
  if (!o || !hash_items(s, hash)) {
    cJSON_Delete(o);
    return NULL;
  }
  snprintf(shard, sizeof shard, "%lld/%lld", (long long)s->shard.index, (long long)s->shard.total);
  cJSON_AddStringToObject(o, "command", s->cli->command);
  cJSON_AddStringToObject(o, "version", fa_version());
  cJSON_AddStringToObject(o, "git", fa_git_revision());
  if (s->source.profile) {
    cJSON_AddStringToObject(o, "profile", s->source.profile);
    add_u64(o, "seed", s->source.seed);
    cJSON_AddNumberToObject(o, "count", (double)s->cli->count);
    cJSON_AddNumberToObject(o, "seconds", s->cli->seconds);
  }
  if (s->source.tier) {
    cJSON_AddStringToObject(o, "tier", s->source.tier->name);
    add_u64(o, "seed", s->source.tier->seed);
    cJSON_AddNumberToObject(o, "seconds", s->source.tier->seconds);
  }
  if (s->draws) cJSON_AddBoolToObject(o, "draws", true);
  cJSON_AddStringToObject(o, "shard", shard);
  cJSON_AddStringToObject(o, "filter", s->cli->filter ? s->cli->filter : "");
  cJSON *laws = s->source.laws.n ? cJSON_AddArrayToObject(o, "laws") : NULL;
  for (int k = 0; k < s->source.laws.n; ++k)
    cJSON_AddItemToArray(laws, cJSON_CreateString(fa_law_describe(s->source.laws.v[k])->name));
  cJSON *backends = cJSON_AddArrayToObject(o, "backends"), *devices = cJSON_AddArrayToObject(o, "devices");
  for (int b = 0; b < s->n_choices; ++b) {
    cJSON_AddItemToArray(backends, cJSON_CreateString(s->choice[b].spec));
    cJSON_AddItemToArray(devices, cJSON_CreateString(s->choice[b].info.device));
  }
  add_u64(o, "schedule_seed", s->cli->schedule_seed);
  cJSON_AddBoolToObject(o, "end_to_end", s->cli->end_to_end);
  if (fa_sample_is_asked(&s->cli->sample)) add_sample(o, &s->cli->sample);
  add_environment(o);
  fa_session_add_rules_identity(s, o);
  cJSON_AddStringToObject(o, "cases_sha256", hash);
  return o;
}

/* ---- opening ---- */

static fa_status check_number(const fa_session *s, int64_t number, const char *path, fa_error *err) {
  const bool endless = !s->item && s->deadline != 0;
  if (endless || number < s->n_items) return FA_OK;
  return fa_fail(err, FA_ERR_INPUT, "%s: has item %lld of a run of %lld", path, (long long)number,
                 (long long)s->n_items);
}

/* Judges a finished report by today's waivers, which are not part of the run's identity. The report has the
 * items in order, and all details of those that did not pass. */
static fa_status judge_finished(fa_session *s, const cJSON *root, fa_summary *sum, fa_error *err) {
  const cJSON *entry, *failure = cJSON_GetObjectItemCaseSensitive(root, "failures");
  fa_status status = FA_OK;
  int64_t number = 0;
  failure = failure->child;
  memset(sum, 0, sizeof *sum);
  cJSON_ArrayForEach(entry, cJSON_GetObjectItemCaseSensitive(root, "cases")) {
    fa_report_line line;
    status = check_number(s, number, s->cli->report, err);
    if (status != FA_OK) return status;
    status = fa_report_line_from_report(entry, failure, number, &line, err);
    if (status != FA_OK) {
      fa_error_prefix(err, "%s: $.cases[%lld]", s->cli->report, (long long)number);
      return status;
    }
    if (line.failure) failure = failure->next;
    fa_session_judge_known(s, number++, line.brief, line.failure);
    fa_summary_add(sum, line.brief);
    if (s->report.require) fa_require_note(s->report.require, line.brief);
    fa_report_line_free(&line);
  }
  return FA_OK;
}

/* The run was killed after the report was written and the journal removed, or resumed once too often: *code
 * is the run's exit code. */
static fa_status find_finished_report(fa_session *s, int *code, fa_error *err) {
  cJSON *root = NULL;
  if (access(s->cli->report, F_OK) != 0) return FA_OK;
  fa_status status = fa_report_load(s->cli->report, &root, err);
  if (status != FA_OK) return status;
  status = fa_resume_compare(cJSON_GetObjectItemCaseSensitive(root, "run"), s->run, s->cli->report, err);
  if (status == FA_OK && cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(root, "finished"))) {
    fa_summary sum;
    status = judge_finished(s, root, &sum, err);
    if (status == FA_OK) {
      fprintf(stderr, "%s: the run is over; nothing to resume\n", s->cli->report);
      fa_report_print_causes(cJSON_GetObjectItemCaseSensitive(root, "groups"), s->cli);
      fa_line_summary(stdout, &sum, &s->style);
      *code = fa_report_conclude_required(&s->report, sum.total, fa_session_exit_code(s, &sum, true));
      if (s->baseline && !fa_baseline_is_met(s->baseline) && *code == FA_EXIT_PASSED)
        *code = FA_EXIT_MISMATCH;
    }
  }
  cJSON_Delete(root);
  return status;
}

/* The report's description of the run comes from the first process. */
static void take_over_head(fa_session *s) {
  cJSON *root = s->report.root;
  cJSON_ReplaceItemInObjectCaseSensitive(root, "started", cJSON_CreateString(s->resume.started));
  cJSON_ReplaceItemInObjectCaseSensitive(root, "command", cJSON_CreateString(s->resume.command));
  s->started -= s->resume.spent;
  if (s->deadline != 0) s->deadline -= s->resume.spent;
  if (s->cli->quiet) return;
  fprintf(stderr, "resumed: %lld results of the last %.0f s are there\n", (long long)s->resume.n,
          s->resume.spent);
}

static fa_status write_header(fa_session *s, fa_error *err) {
  const char *command = cJSON_GetObjectItemCaseSensitive(s->report.root, "command")->valuestring;
  const char *started = cJSON_GetObjectItemCaseSensitive(s->report.root, "started")->valuestring;
  char *line = fa_resume_header(s->run, command, started);
  if (!line) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  fa_journal_append(&s->journal, line);
  free(line);
  return FA_OK;
}

fa_status fa_session_open_journal(fa_session *s, int *code, fa_error *err) {
  char path[4200], *text = NULL;
  fa_report_journal_of(s->cli->report, path, sizeof path);
  s->run = identity_of(s);
  if (!s->run) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  if (s->cli->resume && access(path, F_OK) != 0) {
    fa_status status = find_finished_report(s, code, err);
    if (status != FA_OK || *code >= 0) return status;
  }
  fa_status status = fa_journal_open(&s->journal, path, s->cli->resume, &text, err);
  if (status == FA_OK && s->rules) fchmod(s->journal.fd, 0600); /* it has the secret */
  if (status == FA_OK) status = fa_resume_read(&s->resume, text, path, s->run, err);
  if (status == FA_OK && s->resume.n) status = check_number(s, s->resume.end - 1, path, err);
  if (status == FA_OK) {
    if (s->resume.command)
      take_over_head(s);
    else
      status = write_header(s, err);
  }
  /* Adds the results before the first missing item: --fail-fast may end the run there. */
  int64_t first = 0;
  while (fa_resume_has(&s->resume, first)) ++first;
  if (status == FA_OK) status = fa_session_add_resumed(s, first, err);
  if (status != FA_OK) fa_journal_close(&s->journal, false, NULL);
  return status;
}

/* ---- results ---- */

static void judge_waivers(fa_session *s, int64_t number, fa_result *r) {
  fa_item item = fa_session_item(s, number);
  fa_case c;
  if (!s->waivers || fa_source_get(&s->source, item.case_index, r->draw, &c, NULL) != FA_OK) return;
  fa_waivers_apply(s->waivers, &c.problem, s->choice[item.backend].info.device, r);
  fa_case_free(&c);
}

void fa_session_judge_known(fa_session *s, int64_t number, fa_result *r, const cJSON *failure) {
  r->waived = r->known = false;
  r->waiver[0] = 0;
  judge_waivers(s, number, r);
  if (s->baseline) fa_baseline_judge(s->baseline, r, failure);
}

fa_status fa_session_add_resumed(fa_session *s, int64_t item, fa_error *err) {
  fa_status status = FA_OK;
  for (; status == FA_OK && s->resume.next < s->resume.n; ++s->resume.next) {
    fa_report_line line;
    const fa_resume_line *at = &s->resume.line[s->resume.next];
    if (at->item >= item) break;
    status = fa_report_line_parse(at->text, &line, err);
    if (status != FA_OK) break;
    fa_session_judge_known(s, line.item, line.brief, line.failure);
    status = fa_session_note(s, line.item, line.brief, err);
    fa_session_count_rules(s, line.item, line.brief);
    bool failed = fa_state_is_failure(line.brief->state) && !line.brief->waived;
    if (s->cli->fail_fast && failed) s->give_up = true;
    fa_progress_note(&s->progress, line.brief);
    const int64_t before = s->report.n_failures;
    if (status == FA_OK) status = fa_report_add_line(&s->report, &line, err);
    fa_session_number_failure(s, before, line.item);
    if (status == FA_OK) status = fa_session_note_cause_again(s, line.entry, err);
    fa_report_line_free(&line);
  }
  return status;
}
