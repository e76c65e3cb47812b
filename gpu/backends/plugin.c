/* The backend plugin:PATH.so: loads libraries made with gpu/plugin.h, or with its version 1. */
#include "gpu/plugin.h"

#include "gpu/backends/plugin_backend.h"
#include "gpu/backends/plugin_call.h"
#include "gpu/backends/plugin_v1.h"
#include "gpu/backends/shared_library.h"
#include "gpu/contract/hello.h"
#include "gpu/contract/lse.h"

#include <cjson/cJSON.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct plugin {
  void *handle, *self;
  bool opened;
  fa_plugin table;         /* of version 1 only the members up to close, which both have */
  const fa_plugin_v1 *old; /* NULL: version 2 */
  fa_hello hello;
  char path[256];
} plugin;

/* ---- opening ---- */

static fa_status check_table(const char *path, const fa_plugin *t, fa_error *err) {
  const size_t least = offsetof(fa_plugin, run) + sizeof t->run;
  if (t->version == 1) return fa_plugin_v1_check((const void *)t, path, err);
  if (t->version != FA_PLUGIN_VERSION)
    return fa_fail(err, FA_ERR_INPUT,
                   "%s: made for version %u of the plugin interface; this program has 1 to %d", path,
                   (unsigned)t->version, FA_PLUGIN_VERSION);
  if (t->size < least)
    return fa_fail(err, FA_ERR_INPUT, "%s: fa_plugin_table has %u bytes; version %d has at least %zu", path,
                   (unsigned)t->size, FA_PLUGIN_VERSION, least);
  if (!t->name || !t->run)
    return fa_fail(err, FA_ERR_INPUT, "%s: name and run of fa_plugin_table must be set", path);
  return FA_OK;
}

/* Members that the library's header did not have are NULL; those that ours does not have are unknown here. */
static void take_table(plugin *x, const fa_plugin *t) {
  const size_t size = t->version == 1 ? offsetof(fa_plugin, close) + sizeof t->close : t->size;
  memcpy(&x->table, t, size < sizeof x->table ? size : sizeof x->table);
  x->old = t->version == 1 ? (const void *)t : NULL;
}

static fa_status read_hello(plugin *x, fa_error *err) {
  const char *text = x->table.hello ? x->table.hello(x->self) : NULL;
  fa_hello_init(&x->hello, x->old ? 1 : FA_HELLO_VERSION);
  return text ? fa_hello_read_text(text, x->path, &x->hello, err) : FA_OK;
}

static fa_status open_table(plugin *x, const fa_plugin *table, fa_error *err) {
  char message[512] = "";
  const fa_status status = check_table(x->path, table, err);
  if (status != FA_OK) return status;
  take_table(x, table);
  const bool fails = x->table.open && x->table.open(&x->self, message, sizeof message) != 0;
  message[sizeof message - 1] = 0;
  if (fails)
    return fa_fail(err, FA_ERR_DEVICE, "%s: %s", x->path, message[0] ? message : "it could not be opened");
  x->opened = true;
  return read_hello(x, err);
}

static fa_status open_library(plugin *x, fa_error *err) {
  void *table = NULL;
  const fa_status status = fa_shared_library_open(x->path, "fa_plugin_table", &x->handle, &table, err);
  return status == FA_OK ? open_table(x, table, err) : status;
}

static void plugin_close(void *self) {
  plugin *x = self;
  if (x->opened && x->table.close) x->table.close(x->self);
  if (x->handle) dlclose(x->handle);
  free(x);
}

/* table: NULL where it is that of the library at path. */
static fa_status open_plugin(const fa_plugin *table, const char *path, void **self, fa_error *err) {
  *self = NULL;
  plugin *x = calloc(1, sizeof *x);
  if (!x) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  snprintf(x->path, sizeof x->path, "%s", path);
  const fa_status status = table ? open_table(x, table, err) : open_library(x, err);
  if (status == FA_OK)
    *self = x;
  else
    plugin_close(x);
  return status;
}

static fa_status plugin_open(const char *arg, void **self, fa_error *err) {
  if (!arg || !*arg) return fa_fail(err, FA_ERR_INPUT, "backend plugin needs a library: plugin:PATH.so");
  return open_plugin(NULL, arg, self, err);
}

fa_status fa_plugin_open_table(const fa_plugin *table, const char *name, void **self, fa_error *err) {
  return open_plugin(table, name, self, err);
}

static void plugin_describe(void *self, fa_backend_info *out) {
  const plugin *x = self;
  memset(out, 0, sizeof *out);
  out->name = fa_backend_plugin.name;
  out->usable = true;
  snprintf(out->device, sizeof out->device, "%s", x->table.name);
  snprintf(out->driver, sizeof out->driver, "%s", x->path);
  snprintf(out->source, sizeof out->source, "%s", x->hello.source);
}

/* ---- what it can do, and how ---- */

static unsigned own_passes(unsigned passes) {
  return (passes & FA_PLUGIN_FORWARD ? FA_PASS_FORWARD : 0) |
         (passes & FA_PLUGIN_BACKWARD ? FA_PASS_BACKWARD : 0);
}

static unsigned ask(const plugin *x, const fa_problem *p, char *reason, size_t reason_size) {
  fa_plugin_call_problem plain;
  if (x->old) return fa_plugin_v1_supports(x->old, x->self, p, reason, reason_size);
  if (!x->table.supports) return FA_PLUGIN_FORWARD | FA_PLUGIN_BACKWARD;
  fa_plugin_call_problem_set(&plain, p);
  char *json = fa_plugin_call_json(p);
  plain.problem.case_json = json ? json : "";
  const unsigned passes = x->table.supports(x->self, &plain.problem, reason, reason_size);
  free(json);
  return passes;
}

static unsigned plugin_supports(void *self, const fa_problem *p, char *reason, size_t reason_size) {
  const plugin *x = self;
  reason[0] = 0;
  const unsigned offered = fa_hello_passes(&x->hello, p, reason, reason_size);
  if (!(offered & FA_PASS_FORWARD)) return offered;
  char own[256] = "";
  const unsigned passes = own_passes(ask(x, p, own, sizeof own));
  own[sizeof own - 1] = 0;
  if (own[0]) snprintf(reason, reason_size, "%s", own);
  return offered & passes;
}

static void plugin_profile(void *self, const fa_problem *p, fa_profile *out) {
  const plugin *x = self;
  fa_declaration d;
  fa_hello_declare(&x->hello, p, &d);
  *out = x->old ? fa_plugin_v1_profile(x->old, x->self, p) : fa_declaration_profile(&d, p);
}

static const fa_hello *plugin_hello(void *self) {
  const plugin *x = self;
  return &x->hello;
}

static void plugin_declare(void *self, const fa_problem *p, fa_declaration *out) {
  const plugin *x = self;
  fa_hello_declare(&x->hello, p, out);
}

static const char *plugin_hello_text(void *self) {
  const plugin *x = self;
  if (x->old) return NULL;
  return x->table.hello ? x->table.hello(x->self) : "{}";
}

static void plugin_adopt(void *self, fa_dtype dtype, const fa_declaration *found) {
  plugin *x = self;
  fa_hello_adopt(&x->hello, dtype, found);
}

/* ---- running ---- */

/* Sets what it says that it has not written. */
static fa_status read_outputs(const char *words, fa_tensor_bits *left_out, fa_error *err) {
  cJSON *object = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(object, "outputs");
  fa_tensor_bits written = ~(fa_tensor_bits)0;
  bool given = false;
  for (const char *at = words + strspn(words, " "); *at; at += strspn(at, " ")) {
    char word[32];
    const size_t n = strcspn(at, " ");
    snprintf(word, sizeof word, "%.*s", (int)n, at);
    cJSON_AddItemToArray(list, cJSON_CreateString(word));
    at += n;
  }
  const fa_status status = fa_hello_read_outputs(object, &written, &given, err);
  if (status == FA_OK && cJSON_GetArraySize(list) > 0) *left_out = ~written;
  cJSON_Delete(object);
  return status;
}

/* Turns its answer into an outcome. */
static fa_status conclude(const plugin *x, int code, const char *message, fa_outcome *out, fa_error *err) {
  if (code == 0) return FA_OK;
  if (code != FA_PLUGIN_REFUSED)
    return fa_fail(err, FA_ERR_DEVICE, "%s: %s", x->path, message[0] ? message : "it failed without a word");
  out->state = FA_SUBJECT_REJECTED;
  snprintf(out->text, sizeof out->text, "%s", message);
  return FA_OK;
}

static fa_status run_old(const plugin *x, const fa_problem *p, const fa_tensors *t, unsigned passes,
                         fa_outcome *out, fa_error *err) {
  char message[sizeof out->text] = "";
  const int code = fa_plugin_v1_run(x->old, x->self, p, t, passes, message, sizeof message);
  message[sizeof message - 1] = 0;
  return conclude(x, code, message, out, err);
}

/* Calls it with the tensors of the list. */
static fa_status call(const plugin *x, const fa_problem *p, const fa_exec_tensors *list, fa_plugin_run *run,
                      fa_outcome *out, fa_error *err) {
  fa_plugin_call_problem problem;
  fa_plugin_call_tensors tensors;
  fa_plugin_call_problem_set(&problem, p);
  fa_plugin_call_tensors_set(&tensors, p, list);
  char *json = fa_plugin_call_json(p);
  if (!json) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  problem.problem.case_json = json;
  const int code = x->table.run(x->self, &problem.problem, &tensors.tensors, run);
  free(json);
  run->message[sizeof run->message - 1] = run->kernel[sizeof run->kernel - 1] = 0;
  run->outputs[sizeof run->outputs - 1] = 0;
  if (run->kernel[0]) snprintf(out->kernel, sizeof out->kernel, "%s", run->kernel);
  return conclude(x, code, run->message, out, err);
}

/* What came back: guards of tensors that only it has, the words of its answer, and the LSE. */
static fa_status take(const fa_exec_tensors *list, const fa_problem *p, const fa_contract *c,
                      const fa_plugin_run *run, fa_tensors *t, fa_outcome *out, fa_error *err) {
  fa_error why = {""};
  if (!fa_tensors_guards_intact(&list->own, out->text, sizeof out->text)) {
    out->state = FA_SUBJECT_OOB;
    return FA_OK;
  }
  if (read_outputs(run->outputs, &out->left_out, &why) != FA_OK) {
    out->state = FA_SUBJECT_CRASH;
    snprintf(out->text, sizeof out->text, "its answer makes no sense: %.450s", why.text);
    return FA_OK;
  }
  return fa_exec_tensors_take(list, p, c, t, err);
}

static fa_status plugin_run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                            fa_outcome *out, fa_error *err) {
  const plugin *x = self;
  const unsigned passes = (opt->passes & FA_PASS_FORWARD ? FA_PLUGIN_FORWARD : 0) |
                          (opt->passes & FA_PASS_BACKWARD ? FA_PLUGIN_BACKWARD : 0);
  memset(out, 0, sizeof *out);
  snprintf(out->kernel, sizeof out->kernel, "%s", x->table.name);
  if (x->old) return run_old(x, p, t, passes, out, err);
  fa_plugin_run run = {.size = sizeof run, .passes = passes, .n_threads = opt->n_threads};
  fa_declaration d;
  fa_exec_tensors list;
  fa_hello_declare(&x->hello, p, &d);
  if (opt->lse_as_declared) fa_contract_own_lse(&d.contract);
  fa_status status = fa_exec_tensors_make(p, t, &d.contract, opt->passes, true, &list, err);
  if (status != FA_OK) return status;
  status = call(x, p, &list, &run, out, err);
  if (status == FA_OK && out->state == FA_SUBJECT_OK) status = take(&list, p, &d.contract, &run, t, out, err);
  fa_exec_tensors_free(&list);
  return status;
}

const fa_backend fa_backend_plugin = {
    .name = "plugin",
    .what = "plugin:PATH.so, a kernel of yours in a shared library (gpu/plugin.h)",
    .open = plugin_open,
    .close = plugin_close,
    .describe = plugin_describe,
    .supports = plugin_supports,
    .profile = plugin_profile,
    .run = plugin_run,
    .declare = plugin_declare,
    .hello = plugin_hello,
    .adopt = plugin_adopt,
    .hello_text = plugin_hello_text,
    .served = &fa_backend_served,
};
