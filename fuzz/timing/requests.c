#include "fuzz/timing/requests.h"

#include "cases/recipe/case.h"
#include "gpu/backends/exec_request.h"

#include <cjson/cJSON.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE 300 /* seconds that any of these may take */

bool fa_time_moves(const fa_tensors *t, fa_tensor_id id) {
  return t->t[id].data && fa_case_has_fill(id) && !fa_tensor_id_is_output(id);
}

/* ---- answers ---- */

static const char *text_of(const cJSON *answer, const char *key) {
  return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(answer, key));
}

/* Takes the request. NULL, with a fault: there is no answer that says ok. */
static cJSON *ask(fa_exec_subject *x, cJSON *request, fa_time_fault fault) {
  cJSON *answer = fa_exec_ask(x, request, PATIENCE, fault, sizeof(fa_time_fault));
  if (!answer) return NULL;
  const char *state = text_of(answer, "state"), *text = text_of(answer, "text");
  if (state && strcmp(state, "ok") == 0) return answer;
  snprintf(fault, sizeof(fa_time_fault), "it answered \"%.40s\": %.400s", state ? state : "",
           text ? text : "");
  cJSON_Delete(answer);
  return NULL;
}

/* ---- tensors ---- */

/* Only what the call writes. */
static void keep_outputs(fa_exec_tensors *x) {
  int n = 0;
  for (int i = 0; i < x->n; ++i)
    if (x->at[i].access == FA_EXEC_WRITE) x->at[n++] = x->at[i];
  x->n = n;
}

/* Lays them out in the region: all, or the outputs alone. */
static fa_status place_tensors(fa_exec_subject *x, const fa_problem *p, fa_tensors *t, unsigned passes,
                               bool written, fa_declaration *declared, fa_exec_tensors *list, fa_error *err) {
  memset(list, 0, sizeof *list);
  if (!fa_exec_speak_of(x, p)) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  fa_hello_declare(&x->hello, p, declared);
  fa_status status = fa_exec_tensors_make(p, t, &declared->contract, passes, !written, list, err);
  if (status != FA_OK) return status;
  if (written) keep_outputs(list);
  status = fa_exec_memory_place(&x->memory, list, err);
  if (status == FA_OK && x->memory.renewed)
    status = fa_exec_restart(x, err); /* the first place is the largest; the problem is spoken of */
  if (status == FA_OK) fa_exec_memory_copy_in(&x->memory);
  return status;
}

fa_status fa_time_stage(fa_exec_subject *x, const fa_problem *p, fa_tensors *t, unsigned passes, int place,
                        int n_places, fa_time_fault fault, fa_error *err) {
  fa_exec_tensors list;
  fa_declaration declared;
  const fa_run_options opt = {.passes = passes, .n_threads = 1};
  fa_status status = place_tensors(x, p, t, passes, false, &declared, &list, err);
  if (status == FA_OK) {
    cJSON *request = fa_exec_run_request(x, &opt);
    cJSON_ReplaceItemInObjectCaseSensitive(request, "type", cJSON_CreateString("stage"));
    cJSON_AddNumberToObject(request, "place", place);
    cJSON_AddNumberToObject(request, "places", n_places);
    fa_exec_add_memory(request, &x->memory, &list);
    cJSON_Delete(ask(x, request, fault));
  }
  fa_exec_tensors_free(&list);
  return status;
}

fa_status fa_time_fetch(fa_exec_subject *x, const fa_problem *p, fa_tensors *t, unsigned passes, int i,
                        fa_time_fault fault, fa_error *err) {
  fa_exec_tensors list;
  fa_declaration declared;
  fa_error why = {""};
  fa_status status = place_tensors(x, p, t, passes, true, &declared, &list, err);
  if (status == FA_OK) {
    cJSON *request = fa_exec_request(x, "fetch");
    cJSON_AddNumberToObject(request, "problem", i);
    fa_exec_add_memory(request, &x->memory, &list);
    cJSON *answer = ask(x, request, fault);
    fa_exec_memory_copy_out(&x->memory);
    if (answer && fa_exec_tensors_take(&list, p, &declared.contract, t, &why) != FA_OK)
      snprintf(fault, sizeof(fa_time_fault), "%.500s", why.text);
    cJSON_Delete(answer);
  }
  fa_exec_tensors_free(&list);
  return status;
}

/* ---- many problems ---- */

static void add_problem(cJSON *to, const fa_tensors *t, const fa_time_problem *problem) {
  cJSON *one = cJSON_CreateObject(), *at = cJSON_CreateObject();
  cJSON_AddNumberToObject(one, "scale", problem->scale);
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (fa_time_moves(t, (fa_tensor_id)id))
      cJSON_AddNumberToObject(at, fa_tensor_id_name((fa_tensor_id)id), problem->place[id]);
  cJSON_AddItemToObject(one, "at", at);
  cJSON_AddItemToArray(to, one);
}

static cJSON *time_request(const fa_exec_subject *x, const fa_tensors *t, unsigned passes, int n_threads,
                           const fa_time_problem *problem, int n) {
  const fa_run_options opt = {.passes = passes, .n_threads = n_threads};
  cJSON *request = fa_exec_run_request(x, &opt);
  cJSON_ReplaceItemInObjectCaseSensitive(request, "type", cJSON_CreateString("time"));
  cJSON *problems = cJSON_AddArrayToObject(request, "problems");
  for (int i = 0; i < n; ++i) add_problem(problems, t, &problem[i]);
  return request;
}

/* False: the sums are not as many texts of hexadecimal digits. */
static bool read_answer(const cJSON *answer, int n, fa_time_answer *out) {
  const cJSON *sums = cJSON_GetObjectItemCaseSensitive(answer, "sums");
  const cJSON *claim = cJSON_GetObjectItemCaseSensitive(answer, "seconds");
  out->claim = cJSON_IsNumber(claim) && claim->valuedouble >= 0 ? claim->valuedouble : -1;
  if (!cJSON_IsArray(sums) || cJSON_GetArraySize(sums) != n) return false;
  const cJSON *one = sums->child;
  for (int i = 0; i < n; ++i, one = one->next) {
    char *end = NULL;
    if (!cJSON_IsString(one) || strlen(one->valuestring) != 16) return false;
    out->sum[i] = strtoull(one->valuestring, &end, 16);
    if (*end) return false;
  }
  return true;
}

fa_status fa_time_ask(fa_exec_subject *x, const fa_problem *p, const fa_tensors *t, unsigned passes,
                      int n_threads, const fa_time_problem *problem, int n, fa_time_answer *out,
                      fa_time_fault fault, fa_error *err) {
  memset(out, 0, sizeof *out);
  if (!fa_exec_speak_of(x, p)) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  cJSON *request = time_request(x, t, passes, n_threads, problem, n);
  const double start = fa_exec_now();
  cJSON *answer = ask(x, request, fault);
  out->wall = fa_exec_now() - start;
  if (answer && !read_answer(answer, n, out))
    snprintf(fault, sizeof(fa_time_fault),
             "its answer to \"time\" has no \"sums\" of %d texts of 16 hexadecimal digits", n);
  cJSON_Delete(answer);
  return FA_OK;
}

/* ---- sums ---- */

static uint64_t sum_of_row(const char *row, size_t bytes) {
  uint64_t sum = 0;
  size_t at = 0;
  for (; at + 4 <= bytes; at += 4) {
    int32_t word;
    memcpy(&word, row + at, 4);
    sum += (uint64_t)(int64_t)word;
  }
  if (at + 2 <= bytes) {
    int16_t word;
    memcpy(&word, row + at, 2);
    sum += (uint64_t)(int64_t)word;
  }
  return sum;
}

/* A row along the last axis, its elements next to each other. */
static const char *row_of(const fa_tensor *t, const char *at, char *copy) {
  const size_t size = fa_dtype_size(t->dtype);
  const int64_t n = t->shape[t->rank - 1], stride = t->stride[t->rank - 1];
  if (stride == 1) return at;
  for (int64_t i = 0; i < n; ++i) memcpy(copy + (size_t)i * size, at + (size_t)(i * stride) * size, size);
  return copy;
}

static uint64_t sum_of_tensor(const fa_tensor *t) {
  int64_t index[FA_MAX_RANK];
  const int64_t n = t->data ? fa_tensor_count(t) : 0, row = n ? t->shape[t->rank - 1] : 1;
  const size_t bytes = (size_t)row * fa_dtype_size(t->dtype);
  uint64_t sum = 0;
  char *copy = malloc(bytes + 1);
  for (int64_t e = 0; copy && e < n; e += row) {
    fa_tensor_unravel(t, e, index);
    sum += sum_of_row(row_of(t, t->data + fa_tensor_offset(t, index), copy), bytes);
  }
  free(copy);
  return sum;
}

uint64_t fa_time_sum(const fa_tensors *t, unsigned passes) {
  static const fa_tensor_id summed[] = {FA_T_O, FA_T_DQ, FA_T_DK, FA_T_DV};
  uint64_t sum = 0;
  for (int i = 0; i < (passes & FA_PASS_BACKWARD ? 4 : 1); ++i) sum += sum_of_tensor(&t->t[summed[i]]);
  return sum;
}
