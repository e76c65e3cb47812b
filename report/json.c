/* Writes the report. Numbers whose decimal text could differ from the double are stored with 17 digits and a
 * hexadecimal twin. Values that may be infinite or NaN are then strings, because JSON has no such numbers. */
#include "report/json.h"

#include "cases/base/atomic_file.h"
#include "cases/base/sha256.h"
#include "report/journal_line.h"
#include "report/kernels.h"
#include "report/maps.h"
#include "report/sampling/record.h"
#include "report/untrusted/traps.h"
#include "report/work/json.h"

#include <cjson/cJSON.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static cJSON *number_to_json(double x) {
  char text[40];
  if (!isfinite(x)) return cJSON_CreateString(isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
  snprintf(text, sizeof text, "%.17g", x);
  return cJSON_CreateRaw(text);
}

static void add_number(cJSON *object, const char *key, double x) {
  cJSON_AddItemToObject(object, key, number_to_json(x));
}

static void add_number_and_hex(cJSON *object, const char *key, double x) {
  char name[64], hex[40];
  add_number(object, key, x);
  snprintf(name, sizeof name, "%s_hex", key);
  snprintf(hex, sizeof hex, "%a", x);
  cJSON_AddStringToObject(object, name, hex);
}

static void add_count(cJSON *object, const char *key, int64_t n) {
  cJSON_AddNumberToObject(object, key, (double)n);
}

static void add_u64(cJSON *object, const char *key, uint64_t n) {
  char text[24];
  snprintf(text, sizeof text, "%llu", (unsigned long long)n);
  cJSON_AddStringToObject(object, key, text);
}

static cJSON *point_to_json(const fa_verdict *v, const fa_point *w) {
  cJSON *o = cJSON_CreateObject(), *index = cJSON_AddArrayToObject(o, "index");
  for (int a = 0; a < v->rank; ++a) cJSON_AddItemToArray(index, cJSON_CreateNumber((double)w->index[a]));
  char bits[24];
  snprintf(bits, sizeof bits, "0x%0*llx", (int)fa_dtype_size(v->dtype) * 2, (unsigned long long)w->got_bits);
  add_number_and_hex(o, "got", w->got);
  cJSON_AddStringToObject(o, "got_bits", bits);
  add_number_and_hex(o, "want", w->want);
  add_number(o, "err", w->err);
  add_number(o, "bound", w->bound);
  add_number(o, "ratio", w->ratio);
  cJSON *parts = cJSON_AddObjectToObject(o, "bound_parts");
  add_number(parts, "quant", w->quant);
  add_number(parts, "accum", w->accum);
  add_number(parts, "half_ulp", w->half_ulp);
  if (w->class_bad) cJSON_AddBoolToObject(o, "class_bad", true);
  if (w->poison) cJSON_AddBoolToObject(o, "unwritten", true);
  return o;
}

/* The statistic that left its band, and why that matters, as a sentence. */
static void add_statistic(cJSON *stat, const fa_verdict *v) {
  char figures[FA_STATISTIC_TEXT], why[2 * FA_STATISTIC_TEXT];
  cJSON_AddStringToObject(stat, "which", fa_statistic_name(v->stat_which));
  add_number(stat, "value", v->stat_value);
  add_count(stat, "of", v->stat_count);
  cJSON *band = cJSON_AddArrayToObject(stat, "band");
  cJSON_AddItemToArray(band, number_to_json(v->stat_low));
  cJSON_AddItemToArray(band, number_to_json(v->stat_high));
  fa_statistic_figures(v, figures);
  snprintf(why, sizeof why, "%s: %s; %s", fa_statistic_finding(v), figures, fa_statistic_meaning(v));
  cJSON_AddStringToObject(stat, "why", why);
}

static cJSON *verdict_to_json(const fa_verdict *v, const fa_map *map, bool end_to_end) {
  cJSON *o = cJSON_CreateObject();
  cJSON_AddStringToObject(o, "name", fa_tensor_id_name(v->id));
  cJSON_AddBoolToObject(o, "failed", v->fail || v->vacuous[0]);
  if (end_to_end) cJSON_AddBoolToObject(o, "end_to_end", true);
  add_count(o, "count", v->count);
  add_count(o, "bad", v->bad);
  add_count(o, "class_bad", v->class_bad);
  add_count(o, "unwritten", v->unwritten);
  add_number(o, "worst_ratio", v->worst_ratio);
  cJSON *worst = cJSON_AddArrayToObject(o, "worst");
  for (int i = 0; i < v->n_worst; ++i) cJSON_AddItemToArray(worst, point_to_json(v, &v->worst[i]));
  cJSON *where = cJSON_AddObjectToObject(o, "where");
  cJSON_AddStringToObject(where, "text", v->where);
  cJSON *by_axis = cJSON_AddObjectToObject(where, "by_axis");
  for (int a = 0; a < FA_MAX_RANK; ++a)
    if (v->by_axis[a].axis[0]) cJSON_AddStringToObject(by_axis, v->by_axis[a].axis, v->by_axis[a].text);
  cJSON *stat = cJSON_AddObjectToObject(o, "statistics");
  add_count(stat, "count", v->n_stat);
  add_number(stat, "rms", v->rms);
  add_number(stat, "bias", v->bias);
  cJSON_AddBoolToObject(stat, "bad", v->stat_bad);
  if (v->stat_bad && v->bad == 0) add_statistic(stat, v); /* beside wrong elements it says nothing new */
  add_number(o, "tightness", v->tightness);
  cJSON_AddStringToObject(o, "vacuous", v->vacuous);
  if (map) cJSON_AddItemToObject(o, "map", fa_report_map(map));
  return o;
}

static void add_ratios(cJSON *o, const fa_result *r) {
  cJSON *ratios = cJSON_AddObjectToObject(o, "ratios");
  cJSON *tightness = cJSON_AddObjectToObject(o, "tightness"), *rms = NULL;
  for (int i = 0; i < r->n_verdicts; ++i) {
    char name[64];
    snprintf(name, sizeof name, "%s%s", fa_tensor_id_name(r->verdict[i].id),
             r->end_to_end[i] ? "_end_to_end" : "");
    add_number(ratios, name, r->verdict[i].worst_ratio);
    add_number(tightness, name, r->verdict[i].tightness);
    if (r->verdict[i].n_stat == 0) continue;
    if (!rms) rms = cJSON_AddObjectToObject(o, "rms");
    add_number(rms, name, r->verdict[i].rms);
  }
}

/* Identifies the case by its content, because another file may have another case of the same name. */
void fa_report_record(const fa_result *r, char out[20]) {
  fa_sha256 s;
  char hex[65];
  snprintf(out, 20, "%s", r->record);
  if (r->record[0] || !r->case_line) return;
  fa_sha256_init(&s);
  fa_sha256_add(&s, r->case_line, strlen(r->case_line) + 1);
  fa_sha256_add(&s, r->file, strlen(r->file));
  fa_sha256_hex(&s, hex);
  snprintf(out, 20, "%.16s", hex);
}

static void add_record(cJSON *o, const fa_result *r) {
  char record[20];
  fa_report_record(r, record);
  if (record[0]) cJSON_AddStringToObject(o, "record", record);
}

/* ["o","lse"] */
static void add_tensors(cJSON *o, const char *key, fa_tensor_bits which) {
  cJSON *names = which ? cJSON_AddArrayToObject(o, key) : NULL;
  for (int id = 0; names && id < FA_T_COUNT; ++id)
    if (which >> id & 1) cJSON_AddItemToArray(names, cJSON_CreateString(fa_tensor_id_name((fa_tensor_id)id)));
}

static void add_explanations(cJSON *o, const fa_result *r) {
  if (r->n_explanations == 0) return;
  cJSON *list = cJSON_AddArrayToObject(o, "explained_by");
  for (int i = 0; i < r->n_explanations; ++i) {
    const fa_explanation *e = &r->explanation[i];
    cJSON *one = cJSON_CreateObject();
    cJSON_AddStringToObject(one, "hypothesis", e->hypothesis);
    cJSON_AddStringToObject(one, "text", e->text);
    add_tensors(one, "tensors", e->tensors);
    add_count(one, "wrong", e->wrong);
    add_number(one, "share", e->share);
    if (e->sampled) cJSON_AddBoolToObject(one, "sampled", true);
    cJSON_AddItemToArray(list, one);
  }
}

/* The fields of every case, failed or not. */
static cJSON *case_to_json(const fa_result *r) {
  cJSON *o = cJSON_CreateObject();
  cJSON_AddStringToObject(o, "name", r->name ? r->name : "");
  cJSON_AddStringToObject(o, "state", fa_state_name(r->state));
  cJSON_AddStringToObject(o, "backend", r->backend);
  fa_kernels_add_names(o, r);
  fa_report_add_work(o, &r->work);
  add_record(o, r);
  add_number(o, "seconds", r->seconds);
  if (r->seconds_subject > 0) add_number(o, "seconds_subject", r->seconds_subject);
  add_number(o, "worst_ratio", r->worst_ratio);
  add_count(o, "passes", r->passes);
  if (r->features[0]) cJSON_AddStringToObject(o, "features", r->features);
  if (r->shape[0]) cJSON_AddStringToObject(o, "shape", r->shape);
  if (r->place[0]) cJSON_AddStringToObject(o, "place", r->place);
  if (r->reason[0]) cJSON_AddStringToObject(o, "reason", r->reason);
  if (r->notes[0]) cJSON_AddStringToObject(o, "notes", r->notes);
  if (r->n_verdicts) add_ratios(o, r);
  if (r->malformed) cJSON_AddBoolToObject(o, "malformed", true);
  if (r->backward_left_out) cJSON_AddBoolToObject(o, "backward_left_out", true);
  add_tensors(o, "not_delivered", r->not_delivered);
  if (r->draw) add_count(o, "draw", r->draw);
  fa_sampled_add(o, &r->sampled);
  fa_judged_add(o, &r->judged);
  fa_traps_add(o, r->traps);
  fa_report_add_waiver(o, r);
  return o;
}

static cJSON *failure_to_json(const fa_result *r) {
  cJSON *o = cJSON_CreateObject();
  cJSON *recipe = r->case_line ? cJSON_Parse(r->case_line) : NULL;
  cJSON_AddItemToObject(o, "case", recipe ? fa_report_exact_case(recipe) : cJSON_CreateObject());
  cJSON_AddStringToObject(o, "name", r->name ? r->name : "");
  cJSON_AddStringToObject(o, "state", fa_state_name(r->state));
  cJSON_AddStringToObject(o, "backend", r->backend);
  cJSON_AddStringToObject(o, "kernel", r->kernel);
  if (r->backward_kernel[0]) cJSON_AddStringToObject(o, "backward_kernel", r->backward_kernel);
  cJSON_AddStringToObject(o, "profile", r->profile);
  if (r->place[0]) cJSON_AddStringToObject(o, "place", r->place);
  if (r->file[0]) cJSON_AddStringToObject(o, "file", r->file);
  add_u64(o, "schedule_seed", r->schedule_seed);
  fa_sampled_add(o, &r->sampled);
  fa_judged_add(o, &r->judged);
  cJSON_AddStringToObject(o, "reason", r->reason);
  cJSON_AddStringToObject(o, "notes", r->notes);
  add_number(o, "seconds", r->seconds);
  cJSON *tensors = cJSON_AddArrayToObject(o, "tensors");
  for (int i = 0; i < r->n_verdicts; ++i)
    cJSON_AddItemToArray(tensors, verdict_to_json(&r->verdict[i], r->map[i], r->end_to_end[i]));
  if (r->maps_left_out) cJSON_AddBoolToObject(o, "maps_left_out", true);
  add_explanations(o, r);
  add_tensors(o, "law_broken", r->law_broken);
  add_tensors(o, "law_nan", r->law_nan);
  cJSON_AddStringToObject(o, "dump", r->dump);
  fa_report_add_waiver(o, r);
  return o;
}

fa_status fa_report_init(fa_report *r, const fa_report_head *head, fa_error *err) {
  memset(r, 0, sizeof *r);
  cJSON *root = r->root = cJSON_CreateObject();
  char started[32] = "";
  time_t now = time(NULL);
  struct tm utc;
  if (gmtime_r(&now, &utc)) strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", &utc);
  cJSON_AddNumberToObject(root, "fa_report", FA_REPORT_VERSION);
  cJSON *tool = cJSON_AddObjectToObject(root, "tool");
  cJSON_AddStringToObject(tool, "version", head->version);
  cJSON_AddStringToObject(tool, "git", head->git);
  cJSON *backend = cJSON_AddObjectToObject(root, "backend");
  cJSON_AddStringToObject(backend, "name", head->backend_name);
  cJSON_AddStringToObject(backend, "device", head->backend_device);
  cJSON_AddStringToObject(backend, "driver", head->backend_driver);
  cJSON *host = cJSON_AddObjectToObject(root, "host");
  for (const fa_report_pair *p = head->host; p && p->key; ++p)
    cJSON_AddStringToObject(host, p->key, p->value);
  const bool begun = cJSON_AddStringToObject(root, "command", head->command) &&
                     cJSON_AddStringToObject(root, "started", started); /* which a journal begins with */
  cJSON_AddNumberToObject(root, "seconds", 0);
  cJSON_AddObjectToObject(root, "summary");
  cJSON_AddObjectToObject(root, "kernels");
  r->failures = cJSON_AddArrayToObject(root, "failures");
  r->cases = cJSON_AddArrayToObject(root, "cases");
  if (!begun || !r->failures || !r->cases) return fa_fail(err, FA_ERR_MEMORY, "report: out of memory");
  return FA_OK;
}

fa_status fa_report_add_case(fa_report *r, const cJSON *entry, fa_error *err) {
  char *text = cJSON_PrintUnformatted(entry), *line = NULL;
  if (text && asprintf(&line, "\n\t\t%s", text) < 0) line = NULL;
  cJSON *raw = line ? cJSON_CreateRaw(line) : NULL;
  cJSON_free(text);
  free(line);
  if (raw && cJSON_AddItemToArray(r->cases, raw)) return FA_OK;
  cJSON_Delete(raw);
  return fa_fail(err, FA_ERR_MEMORY, "report: out of memory");
}

fa_status fa_report_add(fa_report *r, const fa_result *result, fa_error *err) {
  fa_summary_add(&r->summary, result);
  cJSON *entry = case_to_json(result);
  const fa_status status =
      entry ? fa_report_add_case(r, entry, err) : fa_fail(err, FA_ERR_MEMORY, "report: out of memory");
  cJSON_Delete(entry);
  if (status != FA_OK) return status;
  if (result->state == FA_PASS || result->state == FA_SKIP) return FA_OK;
  return fa_report_add_failure(r, failure_to_json(result), err);
}

fa_status fa_report_add_failure(fa_report *r, cJSON *failure, fa_error *err) {
  if (!failure || !cJSON_AddItemToArray(r->failures, failure)) {
    cJSON_Delete(failure);
    return fa_fail(err, FA_ERR_MEMORY, "report: out of memory");
  }
  ++r->n_failures;
  if (fa_report_has_maps(failure) && ++r->n_maps > FA_REPORT_MAPS) fa_report_leave_out_maps(failure);
  return FA_OK;
}

char *fa_report_journal_line(const fa_result *result, int64_t item, double elapsed) {
  bool good = result->state == FA_PASS || result->state == FA_SKIP;
  cJSON *o = case_to_json(result);
  add_count(o, "item", item);
  add_number(o, "elapsed", elapsed);
  if (!good) cJSON_AddItemToObject(o, "failure", failure_to_json(result));
  char *text = cJSON_PrintUnformatted(o);
  cJSON_Delete(o);
  return text;
}

static void set_summary(cJSON *root, const fa_summary *s) {
  cJSON *summary = cJSON_CreateObject();
  add_count(summary, "total", s->total);
  add_count(summary, "passed", s->passed);
  add_count(summary, "failed", s->failed);
  add_count(summary, "skipped", s->skipped);
  add_count(summary, "error", s->error);
  if (s->waived) add_count(summary, "waived", s->waived);
  if (s->known) add_count(summary, "known", s->known);
  if (s->malformed) add_count(summary, "malformed", s->malformed);
  add_count(summary, "backward_left_out", s->backward_left_out);
  if (s->sampled) add_count(summary, "sampled", s->sampled);
  fa_judged_counts_add(summary, &s->judged);
  cJSON *reasons = cJSON_AddObjectToObject(summary, "skip_reasons");
  for (int i = 0; i < s->n_reasons; ++i) add_count(reasons, s->reason[i].text, s->reason[i].n);
  cJSON_ReplaceItemInObjectCaseSensitive(root, "summary", summary);
  cJSON_ReplaceItemInObjectCaseSensitive(root, "kernels", fa_kernel_counts_to_json(&s->kernels));
}

fa_status fa_report_complete(fa_report *r, const char *path, double seconds, fa_error *err) {
  set_summary(r->root, &r->summary);
  char text[40];
  snprintf(text, sizeof text, "%.3f", seconds);
  cJSON_ReplaceItemInObjectCaseSensitive(r->root, "seconds", cJSON_CreateRaw(text));
  int k = 0;
  cJSON *failure;
  if (!path) return FA_OK;
  cJSON_ArrayForEach(failure, r->failures) {
    const cJSON *file = cJSON_GetObjectItemCaseSensitive(failure, "file");
    const char *what =
        cJSON_IsString(file) ? file->valuestring : path; /* recorded runs: check judges them again */
    size_t n = strlen(what) + FA_SAMPLE_TEXT + 64;
    char *command = malloc(n), sampled[FA_SAMPLE_TEXT];
    fa_sample sample;
    fa_sampled_read(failure, &sample, NULL); /* its own writing */
    fa_sample_text(&sample, sampled);
    if (!command) return fa_fail(err, FA_ERR_MEMORY, "%s: out of memory", path);
    if (cJSON_IsString(file))
      snprintf(command, n, "fa-verify check %s%s%s", what, fa_sample_is_asked(&sample) ? " --sample " : "",
               fa_sample_is_asked(&sample) ? sampled : "");
    else
      snprintf(command, n, "fa-verify repro %s:%d", what, k);
    ++k;
    cJSON_DeleteItemFromObjectCaseSensitive(failure, "repro");
    cJSON_AddStringToObject(failure, "repro", command);
    cJSON *shrunk = cJSON_GetObjectItemCaseSensitive(failure, "shrunk");
    if (cJSON_IsObject(shrunk)) {
      snprintf(command, n, "fa-verify repro %s:%d.shrunk", what, k - 1);
      cJSON_DeleteItemFromObjectCaseSensitive(shrunk, "repro");
      cJSON_AddStringToObject(shrunk, "repro", command);
    }
    free(command);
  }
  return FA_OK;
}

static fa_status save(const cJSON *root, const char *path, fa_error *err) {
  char *text = cJSON_Print(root);
  if (!text) return fa_fail(err, FA_ERR_MEMORY, "%s: out of memory", path);
  fa_status status = fa_file_write_atomic(path, text, strlen(text), err);
  cJSON_free(text);
  return status;
}

fa_status fa_report_write(fa_report *r, const char *path, double seconds, fa_error *err) {
  const fa_status status = fa_report_complete(r, path, seconds, err);
  return status == FA_OK ? save(r->root, path, err) : status;
}

void fa_report_free(fa_report *r) {
  cJSON_Delete(r->root);
  if (r->require) fa_require_free(r->require);
  free(r->require);
  memset(r, 0, sizeof *r);
}
