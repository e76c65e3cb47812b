#include "gpu/cubin/plan.h"

#include "cases/base/atomic_file.h"
#include "cases/base/json.h"
#include "cases/tensors/table.h"
#include "gpu/cubin/sizes.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLAN_VERSION 1

/* ---- keys ---- */

const char *fa_cubin_plan_key(int i) {
  static const char *const names[] = {"fa_cubin", "module", "hello", "workspace", "launches", "note"};
  return i < (int)(sizeof names / sizeof *names) ? names[i] : NULL;
}

const char *fa_cubin_launch_key(int i) {
  static const char *const names[] = {"kernel", "pass",    "when",   "grid",
                                      "block",  "cluster", "shared", "params"};
  return i < (int)(sizeof names / sizeof *names) ? names[i] : NULL;
}

static const struct {
  const char *key;
  fa_cubin_kind kind;
  int bytes;
} params[] = {{"tensor", FA_CUBIN_TENSOR, 8}, {"workspace", FA_CUBIN_WORKSPACE, 8},
              {"i32", FA_CUBIN_INTEGER, 4},   {"i64", FA_CUBIN_INTEGER, 8},
              {"f32", FA_CUBIN_REAL, 4},      {"f64", FA_CUBIN_REAL, 8}};
enum { N_PARAM_KEYS = sizeof params / sizeof *params };

const char *fa_cubin_param_key(int i) {
  return i < N_PARAM_KEYS ? params[i].key : NULL;
}

static const char *pass_word(int i) {
  static const char *const names[] = {"forward", "backward"};
  return i < 2 ? names[i] : NULL;
}

/* ---- expressions ---- */

/* A number, or text. absent: what a missing one means. */
static fa_status read_expr(const cJSON *x, int64_t absent, fa_size_expr *out, fa_error *err) {
  fa_size_constant(out, absent);
  if (!x) return FA_OK;
  if (cJSON_IsString(x)) return fa_size_parse(x->valuestring, fa_cubin_size_find, out, err);
  const double number = cJSON_IsNumber(x) ? x->valuedouble : 0.5;
  if (!(number >= -0x1p53 && number <= 0x1p53 && number == (double)(int64_t)number))
    return fa_fail(err, FA_ERR_INPUT, "must be an integer, or an expression as a string");
  fa_size_constant(out, (int64_t)number);
  return FA_OK;
}

static fa_status read_expr_key(const cJSON *object, const char *key, int64_t absent, fa_size_expr *out,
                               fa_error *err) {
  const fa_status status = read_expr(cJSON_GetObjectItemCaseSensitive(object, key), absent, out, err);
  if (status != FA_OK) fa_error_prefix(err, "%s", key);
  return status;
}

/* One to three; those that are missing are 1. */
static fa_status read_dims(const cJSON *launch, const char *key, bool needed, fa_size_expr out[3],
                           fa_error *err) {
  const cJSON *array = cJSON_GetObjectItemCaseSensitive(launch, key);
  const int n = cJSON_IsArray(array) ? cJSON_GetArraySize(array) : 0;
  if ((array || needed) && (n < 1 || n > 3))
    return fa_fail(err, FA_ERR_INPUT, "%s: must be an array of one to three numbers or expressions", key);
  for (int i = 0; i < 3; ++i) {
    const fa_status status = read_expr(i < n ? cJSON_GetArrayItem(array, i) : NULL, 1, &out[i], err);
    if (status != FA_OK) return fa_error_prefix(err, "%s[%d]", key, i), status;
  }
  return FA_OK;
}

/* ---- parameters ---- */

static fa_status read_tensor(const cJSON *x, fa_cubin_param *out, fa_error *err) {
  out->name = cJSON_IsString(x) ? fa_cubin_tensor_find(x->valuestring) : -1;
  if (out->name >= 0) return FA_OK;
  return fa_fail(err, FA_ERR_INPUT,
                 "\"%.40s\" is no tensor of a call; docs/reference/protocol.md has them, and lists by key "
                 "block and captured buffers are not given",
                 cJSON_IsString(x) ? x->valuestring : "?");
}

static fa_status read_real(const cJSON *x, fa_cubin_param *out, fa_error *err) {
  char all[200];
  out->name = cJSON_IsString(x) ? fa_cubin_real_find(x->valuestring) : -1;
  if (cJSON_IsNumber(x)) out->number = x->valuedouble;
  if (cJSON_IsNumber(x) || out->name >= 0) return FA_OK;
  fa_words_join(fa_cubin_real_name, all, sizeof all);
  return fa_fail(err, FA_ERR_INPUT, "must be a number, or one of %s", all);
}

static fa_status read_value(const cJSON *x, fa_cubin_param *out, fa_error *err) {
  switch (out->kind) {
  case FA_CUBIN_TENSOR:
    return read_tensor(x, out, err);
  case FA_CUBIN_REAL:
    return read_real(x, out, err);
  default:
    return read_expr(x, 0, &out->expr, err);
  }
}

static fa_status read_param(const cJSON *object, fa_cubin_param *out, fa_error *err) {
  char all[200];
  const cJSON *x = cJSON_IsObject(object) && cJSON_GetArraySize(object) == 1 ? object->child : NULL;
  const int i = x ? fa_words_find(fa_cubin_param_key, x->string) : -1;
  if (i < 0) {
    fa_words_join(fa_cubin_param_key, all, sizeof all);
    return fa_fail(err, FA_ERR_INPUT, "must be an object with one key out of %s", all);
  }
  *out = (fa_cubin_param){.kind = params[i].kind, .bytes = params[i].bytes, .name = -1};
  const fa_status status = read_value(x, out, err);
  if (status != FA_OK) fa_error_prefix(err, "%s", params[i].key);
  return status;
}

static fa_status read_params(const cJSON *launch, fa_cubin_launch *out, fa_error *err) {
  const cJSON *array = cJSON_GetObjectItemCaseSensitive(launch, "params"), *x;
  const int n = cJSON_GetArraySize(array);
  if (!cJSON_IsArray(array) || n > FA_CUBIN_PARAMS)
    return fa_fail(err, FA_ERR_INPUT, "params: must be an array of at most %d", FA_CUBIN_PARAMS);
  out->param = calloc((size_t)n + 1, sizeof *out->param);
  if (!out->param) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  cJSON_ArrayForEach(x, array) {
    const fa_status status = read_param(x, &out->param[out->n_params], err);
    if (status != FA_OK) return fa_error_prefix(err, "params[%d]", out->n_params), status;
    ++out->n_params;
  }
  return FA_OK;
}

/* ---- launches ---- */

static fa_status read_launch(const cJSON *x, fa_cubin_launch *out, fa_error *err) {
  const fa_keys k = {x, ""};
  int pass = 0;
  bool given = false;
  if (!cJSON_IsObject(x)) return fa_fail(err, FA_ERR_INPUT, "must be an object");
  fa_status status = fa_keys_check(k, fa_cubin_launch_key, err);
  if (status == FA_OK) status = fa_keys_text(k, "kernel", true, out->kernel, sizeof out->kernel, err);
  if (status == FA_OK) status = fa_keys_word(k, "pass", pass_word, &pass, &given, err);
  out->pass = pass == 1 ? FA_PASS_BACKWARD : FA_PASS_FORWARD;
  if (status == FA_OK) status = read_expr_key(x, "when", 1, &out->when, err);
  if (status == FA_OK) status = read_dims(x, "grid", true, out->grid, err);
  if (status == FA_OK) status = read_dims(x, "block", true, out->block, err);
  if (status == FA_OK) status = read_dims(x, "cluster", false, out->cluster, err);
  if (status == FA_OK) status = read_expr_key(x, "shared", 0, &out->shared, err);
  return status == FA_OK ? read_params(x, out, err) : status;
}

static fa_status read_launches(const cJSON *plan, fa_cubin_plan *out, fa_error *err) {
  const cJSON *array = cJSON_GetObjectItemCaseSensitive(plan, "launches"), *x;
  const int n = cJSON_GetArraySize(array);
  if (!cJSON_IsArray(array) || n < 1 || n > FA_CUBIN_LAUNCHES)
    return fa_fail(err, FA_ERR_INPUT, "launches: must be an array of 1 to %d", FA_CUBIN_LAUNCHES);
  cJSON_ArrayForEach(x, array) {
    const fa_status status = read_launch(x, &out->launch[out->n_launches], err);
    ++out->n_launches; /* also of one that is half read, so that it is freed */
    if (status != FA_OK) return fa_error_prefix(err, "launches[%d]", out->n_launches - 1), status;
  }
  return FA_OK;
}

/* ---- the whole ---- */

static fa_status read_hello(const cJSON *plan, fa_cubin_plan *out, fa_error *err) {
  const cJSON *hello = cJSON_GetObjectItemCaseSensitive(plan, "hello");
  unsigned passes = 0;
  if (hello && !cJSON_IsObject(hello)) return fa_fail(err, FA_ERR_INPUT, "hello: must be an object");
  out->hello_text = hello ? cJSON_PrintUnformatted(hello) : strdup("{}");
  if (!out->hello_text) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  const fa_status status = fa_hello_read_text(out->hello_text, "hello", &out->hello, err);
  for (int i = 0; i < out->n_launches; ++i) passes |= out->launch[i].pass;
  out->hello.passes &= passes;
  if (status == FA_OK && !(out->hello.passes & FA_PASS_FORWARD))
    return fa_fail(err, FA_ERR_INPUT, "launches: none is of the pass \"forward\", which every call has");
  return status == FA_ERR_DEVICE ? FA_ERR_INPUT : status;
}

/* The path is relative to the plan's folder. */
static fa_status read_module(const cJSON *plan, const char *path, fa_cubin_plan *out, fa_error *err) {
  char name[PATH_MAX], file[2 * PATH_MAX];
  const char *slash = strrchr(path, '/');
  fa_status status = fa_keys_text((fa_keys){plan, ""}, "module", true, name, sizeof name, err);
  if (status != FA_OK) return status;
  snprintf(file, sizeof file, "%.*s%s", name[0] != '/' && slash ? (int)(slash + 1 - path) : 0, path, name);
  status = fa_file_read(file, &out->module, &out->module_bytes, err);
  if (status != FA_OK) return fa_error_prefix(err, "module"), FA_ERR_INPUT;
  const bool is_elf = out->module_bytes > 4 && memcmp(out->module, "\177ELF", 4) == 0,
             is_fat = out->module_bytes > 4 && memcmp(out->module, "\x50\xed\x55\xba", 4) == 0;
  if (is_elf || is_fat || strstr(out->module, ".version")) return FA_OK;
  return fa_fail(err, FA_ERR_INPUT, "module: %s is neither a cubin, nor a fatbin, nor PTX", file);
}

static fa_status read_plan(const cJSON *plan, const char *path, fa_cubin_plan *out, fa_error *err) {
  const cJSON *version = cJSON_GetObjectItemCaseSensitive(plan, "fa_cubin");
  if (!cJSON_IsObject(plan)) return fa_fail(err, FA_ERR_INPUT, "must be an object");
  if (!cJSON_IsNumber(version) || version->valuedouble != PLAN_VERSION)
    return fa_fail(err, FA_ERR_INPUT, "\"fa_cubin\" must be %d", PLAN_VERSION);
  fa_status status = fa_keys_check((fa_keys){plan, ""}, fa_cubin_plan_key, err);
  if (status == FA_OK) status = read_expr_key(plan, "workspace", 0, &out->workspace, err);
  if (status == FA_OK) status = read_launches(plan, out, err);
  if (status == FA_OK) status = read_hello(plan, out, err);
  return status == FA_OK ? read_module(plan, path, out, err) : status;
}

fa_status fa_cubin_plan_load(const char *path, fa_cubin_plan *out, fa_error *err) {
  char *text = NULL;
  size_t n = 0;
  cJSON *tree = NULL;
  memset(out, 0, sizeof *out);
  if (fa_file_read(path, &text, &n, err) != FA_OK) return FA_ERR_INPUT; /* the user has named it */
  fa_status status = fa_json_parse(text, n, path, &tree, err);
  free(text);
  if (status != FA_OK) return status;
  status = read_plan(tree, path, out, err);
  cJSON_Delete(tree);
  if (status == FA_OK) return FA_OK;
  fa_error_prefix(err, "%s", path);
  fa_cubin_plan_free(out);
  return status;
}

void fa_cubin_plan_free(fa_cubin_plan *x) {
  for (int i = 0; i < x->n_launches; ++i) free(x->launch[i].param);
  free(x->hello_text);
  free(x->module);
  memset(x, 0, sizeof *x);
}
