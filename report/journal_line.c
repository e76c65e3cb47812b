#include "report/journal_line.h"
#include "cases/codec/count.h"
#include "cases/codec/json.h"

#include "report/kernels.h"
#include "report/printed.h"
#include "report/sampling/record.h"
#include "report/untrusted/traps.h"
#include "report/work/json.h"

#include <cjson/cJSON.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* cJSON prints numbers with too few digits; raw text is printed unchanged. */
void fa_report_keep_digits(cJSON *v) {
  for (cJSON *child = v->child; child; child = child->next) fa_report_keep_digits(child);
  if (!cJSON_IsNumber(v) || (v->valuedouble == floor(v->valuedouble) && fabs(v->valuedouble) < 1e15)) return;
  char text[40];
  snprintf(text, sizeof text, "%.17g", v->valuedouble);
  char *copy = strdup(text);
  if (!copy) return;
  v->valuestring = copy;
  /* 1e999, for example, becomes a string, like every infinite or NaN number in a report. */
  v->type = (v->type & cJSON_StringIsConst) | (isfinite(v->valuedouble) ? cJSON_Raw : cJSON_String);
}

cJSON *fa_report_exact_case(cJSON *recipe) {
  fa_case c;
  cJSON *exact = NULL;
  if (fa_case_from_json(recipe, "$", &c, NULL) != FA_OK) return recipe; /* only for display */
  if (fa_case_to_json(&c, &exact) != FA_OK) exact = NULL;
  fa_case_free(&c);
  if (!exact) return recipe;
  cJSON_Delete(recipe);
  return exact;
}

void fa_report_add_waiver(cJSON *object, const fa_result *r) {
  if (!r->waiver[0]) return;
  cJSON_AddStringToObject(object, "waiver", r->waiver);
  cJSON_AddBoolToObject(object, "waived", r->waived);
  if (r->known) cJSON_AddBoolToObject(object, "known", true);
}

static void copy_string(const cJSON *object, const char *key, char *to, size_t size) {
  const cJSON *s = cJSON_GetObjectItemCaseSensitive(object, key);
  snprintf(to, size, "%s", cJSON_IsString(s) ? s->valuestring : "");
}

static double counter_fetch_add(cJSON *object, const char *key, double missing) {
  cJSON *n = cJSON_DetachItemFromObjectCaseSensitive(object, key);
  double x = cJSON_IsNumber(n) ? n->valuedouble : missing;
  cJSON_Delete(n);
  return x;
}

static void read_failed_tensors(const cJSON *failure, fa_result *brief) {
  const cJSON *t;
  cJSON_ArrayForEach(t, cJSON_GetObjectItemCaseSensitive(failure, "tensors")) {
    char name[64];
    copy_string(t, "name", name, sizeof name);
    if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(t, "failed"))) continue;
    for (int id = 0; id < FA_T_COUNT && brief->n_verdicts < FA_T_COUNT; ++id) {
      if (strcmp(fa_tensor_id_name((fa_tensor_id)id), name) != 0) continue;
      brief->verdict[brief->n_verdicts].id = (fa_tensor_id)id;
      brief->verdict[brief->n_verdicts++].fail = true;
    }
  }
}

fa_tensor_bits fa_report_tensors_at(const cJSON *failure, const char *key) {
  fa_tensor_bits which = 0;
  const cJSON *name;
  cJSON_ArrayForEach(name, cJSON_GetObjectItemCaseSensitive(failure, key)) {
    for (int id = 0; cJSON_IsString(name) && id < FA_T_COUNT; ++id)
      if (strcmp(fa_tensor_id_name((fa_tensor_id)id), name->valuestring) == 0) which |= FA_TENSOR_BIT(id);
  }
  return which;
}

/* Splits the object into the fields of the line and those of the report. */
static fa_status read_line(cJSON *o, fa_report_line *out, fa_error *err) {
  fa_result *brief = out->brief;
  const cJSON *state = cJSON_GetObjectItemCaseSensitive(o, "state");
  if (!cJSON_IsString(state) || !fa_state_from_name(state->valuestring, &brief->state))
    return fa_fail(err, FA_ERR_INPUT, "$.state: missing or unknown");
  double item = counter_fetch_add(o, "item", -1);
  out->elapsed = counter_fetch_add(o, "elapsed", -1);
  if (!(item >= 0 && item < 9e15)) return fa_fail(err, FA_ERR_INPUT, "$.item: a number >= 0 is needed");
  if (!(out->elapsed >= 0)) return fa_fail(err, FA_ERR_INPUT, "$.elapsed: a number >= 0 is needed");
  out->item = (int64_t)item;
  fa_report_read_judged(o, brief);
  brief->draw = fa_count_at(o, "draw");
  brief->malformed = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, "malformed"));
  brief->backward_left_out = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, "backward_left_out"));
  fa_sampled_read(o, &brief->sampled.asked, NULL); /* none: the line is of no use for more than counting */
  brief->judged = fa_judged_read(o);
  brief->not_delivered = fa_report_tensors_at(o, "not_delivered");
  brief->traps = fa_traps_read(o);
  out->failure = cJSON_DetachItemFromObjectCaseSensitive(o, "failure");
  bool good = brief->state == FA_PASS || brief->state == FA_SKIP;
  if (!good && !cJSON_IsObject(out->failure))
    return fa_fail(err, FA_ERR_INPUT, "$.failure: an object is needed");
  const cJSON *ratio = cJSON_GetObjectItemCaseSensitive(o, "worst_ratio");
  if (cJSON_IsNumber(ratio)) brief->worst_ratio = ratio->valuedouble;
  copy_string(o, "reason", brief->reason, sizeof brief->reason);
  copy_string(o, "notes", brief->notes, sizeof brief->notes);
  copy_string(o, "backend", brief->backend, sizeof brief->backend);
  copy_string(o, "record", brief->record, sizeof brief->record);
  brief->seconds_subject = fa_report_number(o, "seconds_subject");
  fa_kernels_read_names(o, brief);
  fa_report_read_work(o, &brief->work);
  const cJSON *name = cJSON_GetObjectItemCaseSensitive(o, "name");
  brief->name = strdup(cJSON_IsString(name) ? name->valuestring : "");
  return brief->name ? FA_OK : fa_fail(err, FA_ERR_MEMORY, "out of memory");
}

/* Consumes the object. */
static fa_status parse(cJSON *o, fa_report_line *out, fa_error *err) {
  *out = (fa_report_line){.brief = malloc(sizeof *out->brief), .entry = o};
  if (!out->brief) {
    cJSON_Delete(o);
    return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  }
  fa_result_init(out->brief);
  fa_status status =
      cJSON_IsObject(o) ? read_line(o, out, err) : fa_fail(err, FA_ERR_INPUT, "no JSON object");
  if (status != FA_OK) {
    fa_report_line_free(out);
    return status;
  }
  fa_report_keep_digits(out->entry);
  if (out->failure) {
    read_failed_tensors(out->failure, out->brief);
    out->brief->law_broken = fa_report_tensors_at(out->failure, "law_broken");
    fa_report_keep_digits(out->failure);
    cJSON *recipe = cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(out->failure, "case"), 1);
    if (recipe) cJSON_ReplaceItemInObjectCaseSensitive(out->failure, "case", fa_report_exact_case(recipe));
  }
  return FA_OK;
}

fa_status fa_report_line_parse(const char *text, fa_report_line *out, fa_error *err) {
  return parse(cJSON_ParseWithOpts(text, NULL, 1), out, err);
}

fa_status fa_report_line_from_report(const cJSON *entry, const cJSON *failure, int64_t item,
                                     fa_report_line *out, fa_error *err) {
  const bool good = fa_report_is_good(entry);
  cJSON *o = cJSON_Duplicate(entry, 1);
  cJSON_AddNumberToObject(o, "item", (double)item);
  cJSON_AddNumberToObject(o, "elapsed", 0);
  if (!good && failure) cJSON_AddItemToObject(o, "failure", cJSON_Duplicate(failure, 1));
  return parse(o, out, err);
}

fa_status fa_report_add_line(fa_report *r, fa_report_line *line, fa_error *err) {
  fa_summary_add(&r->summary, line->brief);
  fa_report_add_waiver(line->entry, line->brief);
  const fa_status status = fa_report_add_case(r, line->entry, err);
  if (status != FA_OK || !line->failure) return status;
  fa_report_add_waiver(line->failure, line->brief);
  cJSON *failure = line->failure;
  line->failure = NULL;
  return fa_report_add_failure(r, failure, err);
}

void fa_report_line_free(fa_report_line *line) {
  cJSON_Delete(line->entry);
  cJSON_Delete(line->failure);
  if (line->brief) fa_result_free(line->brief);
  free(line->brief);
  *line = (fa_report_line){0};
}

void fa_report_zero_times(cJSON *v) {
  for (cJSON *child = v->child; child; child = child->next) {
    if (child->string && strncmp(child->string, "seconds", 7) == 0 && cJSON_IsNumber(child))
      cJSON_SetNumberValue(child, 0);
    if (child->string && strcmp(child->string, "started") == 0 && cJSON_IsString(child))
      cJSON_SetValuestring(child, "");
    fa_report_zero_times(child);
  }
}
