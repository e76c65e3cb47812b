/* The backend exec:CMD: a program in any language that receives tensors in files and answers in lines of
 * JSON. docs/reference/protocol.md is its contract. */
#include "cases/base/json.h"
#include "cases/codec/json.h"
#include "cases/recipe/case.h"
#include "gpu/backends/exec_hello.h"
#include "gpu/backends/exec_process.h"
#include "gpu/backends/exec_tensors.h"
#include "gpu/backends/plugin_backend.h"
#include "gpu/plugin.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Time limit until the child says hello: loading a framework and waking a GPU take time. After that a case's
 * own time limit applies. */
#define HELLO_SECONDS 120

typedef struct exec {
  char *command;
  fa_exec_process child; /* not running until it is needed */
  cJSON *hello;          /* of the last child */
  int64_t id;            /* of the last request */
  char *asked;           /* the case that answer is about; NULL = none */
  cJSON *answer;         /* to "supports" */
  char fault[512];       /* how the child failed when asked; "" = it did not */
} exec;

/* ---- one request, one answer ---- */

/* Quotes the start of what a child wrote, made printable for a message. */
static void quote(const char *line, char *out, size_t size) {
  size_t n = 0;
  for (; *line && n + 8 < size && n < 160; ++line) {
    const unsigned char c = (unsigned char)*line;
    n += (size_t)snprintf(out + n, size - n, c >= 32 && c < 127 ? "%c" : "\\x%02x", c);
  }
  snprintf(out + n, size - n, "%s", *line ? "..." : "");
}

/* Stops the child after misbehaviour; text: which. */
static void give_up(exec *x, bool at_once, char *text, size_t size, const char *what, const char *line) {
  char how[128], said[200];
  quote(line, said, sizeof said); /* stopping frees the line */
  fa_exec_stop(&x->child, at_once, how, sizeof how);
  if (at_once)
    snprintf(
        text, size,
        "%s: \"%s\" (it must answer each request with one line of JSON, and print other things to stderr)",
        what, said);
  else
    snprintf(text, size, "the child %s%s%s%s", how, *line ? ", its last words being \"" : "",
             *line ? said : "", *line ? "\"" : "");
}

/* The child's next line as a JSON object, owned by the caller. NULL: it misbehaved and is stopped; text says
 * why. */
static cJSON *receive(exec *x, double seconds, char *text, size_t size) {
  char *line = NULL;
  cJSON *tree = NULL;
  fa_error err;
  switch (fa_exec_receive(&x->child, seconds, &line)) {
  case FA_EXEC_ENDED:
    give_up(x, false, text, size, "", line);
    return NULL;
  case FA_EXEC_LATE:
    fa_exec_stop(&x->child, true, NULL, 0);
    snprintf(text, size, "the child said nothing for %g s", seconds);
    return NULL;
  case FA_EXEC_TOO_LONG:
    give_up(x, true, text, size, "the child wrote a line that does not end", line);
    return NULL;
  case FA_EXEC_LINE:
    break;
  }
  if (fa_json_parse(line, strlen(line), "answer", &tree, &err) != FA_OK || !cJSON_IsObject(tree)) {
    give_up(x, true, text, size, "the child wrote what is no answer", line);
  } else {
    const cJSON *got = cJSON_GetObjectItemCaseSensitive(tree, "id");
    if (cJSON_IsNumber(got) && got->valuedouble == (double)x->id) return tree;
    char what[100];
    snprintf(what, sizeof what, "the child's answer lacks \"id\": %lld", (long long)x->id);
    give_up(x, true, text, size, what, line);
  }
  cJSON_Delete(tree);
  return NULL;
}

/* Sends the request and frees it. Returns NULL like receive. seconds 0: no limit, because the caller of the
 * case has one. */
static cJSON *ask(exec *x, cJSON *request, double seconds, char *text, size_t size) {
  cJSON_AddNumberToObject(request, "id", (double)++x->id);
  char *line = cJSON_PrintUnformatted(request);
  cJSON_Delete(request);
  if (!line) {
    snprintf(text, size, "out of memory");
    return NULL;
  }
  fa_exec_send(&x->child, line); /* a child that does not read is noticed when its answer is read */
  free(line);
  return receive(x, seconds, text, size);
}

static cJSON *request_of(const char *type) {
  cJSON *request = cJSON_CreateObject();
  cJSON_AddNumberToObject(request, "fa_exec", FA_EXEC_VERSION);
  cJSON_AddStringToObject(request, "type", type);
  return request;
}

/* The case without the recipe for its data: the problem alone. malloc'd. */
static char *case_line(const fa_problem *p) {
  fa_case c;
  char *line = NULL;
  if (fa_case_init(&c) != FA_OK) return NULL;
  fa_problem_free(&c.problem);
  if (fa_problem_copy(&c.problem, p) == FA_OK) line = fa_case_to_line(&c);
  fa_case_free(&c);
  return line;
}

/* ---- open, close, describe ---- */

static fa_status start(exec *x, fa_error *err) {
  char text[400];
  fa_status status = fa_exec_start(&x->child, x->command, err);
  if (status != FA_OK) return status;
  cJSON *hello = ask(x, request_of("hello"), HELLO_SECONDS, text, sizeof text);
  if (!hello) return fa_fail(err, FA_ERR_INPUT, "%s: no hello: %s", x->command, text);
  cJSON_Delete(x->hello);
  x->hello = hello;
  status = fa_exec_hello_check(hello, err);
  if (status != FA_OK) {
    fa_error_prefix(err, "%s", x->command);
    fa_exec_stop(&x->child, false, NULL, 0);
  }
  return status;
}

static void exec_close(void *self) {
  exec *x = self;
  fa_exec_stop(&x->child, false, NULL, 0);
  cJSON_Delete(x->hello);
  cJSON_Delete(x->answer);
  free(x->asked);
  free(x->command);
  free(x);
}

static fa_status exec_open(const char *arg, void **self, fa_error *err) {
  *self = NULL;
  if (!arg || !*arg) return fa_fail(err, FA_ERR_INPUT, "backend exec needs a command: exec:CMD");
  exec *x = calloc(1, sizeof *x);
  if (x) x->command = strdup(arg);
  if (!x || !x->command) {
    free(x);
    return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  }
  const fa_status status = start(x, err);
  if (status == FA_OK)
    *self = x;
  else
    exec_close(x);
  return status;
}

static void exec_describe(void *self, fa_backend_info *out) {
  const exec *x = self;
  const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(x->hello, "name"));
  const char *device = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(x->hello, "device"));
  const char *driver = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(x->hello, "driver"));
  memset(out, 0, sizeof *out);
  out->name = fa_backend_exec.name;
  out->usable = true;
  snprintf(out->device, sizeof out->device, "%s%s%s", name, device ? ", " : "", device ? device : "");
  snprintf(out->driver, sizeof out->driver, "%s", driver ? driver : "");
}

/* ---- what it can do ---- */

/* Sets answer, for a child that wants to be asked. If the child fails at that, it has not said no: the case
 * is run, and the failure is its result. */
static void ask_support(exec *x, const fa_problem *p) {
  char *line = case_line(p);
  if (x->asked && line && strcmp(x->asked, line) == 0) {
    free(line);
    return;
  }
  free(x->asked);
  cJSON_Delete(x->answer);
  x->asked = line, x->answer = NULL, x->fault[0] = 0;
  fa_error err = {""};
  unsigned passes;
  fa_plugin_arithmetic arithmetic;
  if (!line || (x->child.supervisor == 0 && start(x, &err) != FA_OK)) {
    snprintf(x->fault, sizeof x->fault, "%.500s", line ? err.text : "out of memory");
    return;
  }
  cJSON *request = request_of("supports");
  cJSON_AddRawToObject(request, "case", line);
  x->answer = ask(x, request, 0, x->fault, sizeof x->fault);
  if (!x->answer || (fa_exec_read_passes(x->answer, &passes, &err) == FA_OK &&
                     fa_exec_read_arithmetic(x->answer, &arithmetic, &err) == FA_OK))
    return;
  snprintf(x->fault, sizeof x->fault, "the child's answer to \"supports\": %.400s", err.text);
  cJSON_Delete(x->answer);
  x->answer = NULL;
}

static bool wants_to_be_asked(const exec *x) {
  return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(x->hello, "supports"));
}

static unsigned exec_supports(void *self, const fa_problem *p, char *reason, size_t reason_size) {
  exec *x = self;
  unsigned passes = fa_exec_hello_passes(x->hello, p, reason, reason_size), answered = 0;
  fa_error ignored;
  if (!(passes & FA_PASS_FORWARD) || !wants_to_be_asked(x)) return passes;
  ask_support(x, p);
  if (!x->answer) return passes;
  fa_exec_read_passes(x->answer, &answered, &ignored);
  const char *why = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(x->answer, "reason"));
  if (why) snprintf(reason, reason_size, "%s", why);
  return passes & answered;
}

static void exec_profile(void *self, const fa_problem *p, fa_profile *out) {
  exec *x = self;
  fa_plugin_arithmetic a = {.name = "recorded", .dq_atomic = -1, .gqa_partials_rounded = -1};
  fa_error ignored;
  fa_exec_read_arithmetic(x->hello, &a, &ignored);
  if (wants_to_be_asked(x)) {
    ask_support(x, p);
    if (x->answer) fa_exec_read_arithmetic(x->answer, &a, &ignored);
  }
  *out = fa_plugin_profile(&a, p->dtype);
}

/* ---- run ---- */

static void add_strides(cJSON *request, const fa_tensors *t) {
  cJSON *all = cJSON_AddObjectToObject(request, "strides");
  for (int id = 0; id < FA_T_COUNT; ++id) {
    if (!t->t[id].data) continue;
    cJSON *one = cJSON_AddArrayToObject(all, fa_tensor_id_name((fa_tensor_id)id));
    for (int a = 0; a < t->t[id].rank; ++a) {
      char text[32];
      snprintf(text, sizeof text, "%lld", (long long)t->t[id].stride[a]);
      cJSON_AddItemToArray(one, cJSON_CreateRaw(text));
    }
  }
}

static cJSON *run_request(const char *line, const char *inputs, const char *outputs, const fa_tensors *t,
                          const fa_run_options *opt) {
  cJSON *request = request_of("run");
  cJSON_AddRawToObject(request, "case", line);
  cJSON_AddStringToObject(request, "inputs", inputs);
  cJSON_AddStringToObject(request, "outputs", outputs);
  cJSON *passes = cJSON_AddArrayToObject(request, "passes");
  if (opt->passes & FA_PASS_FORWARD) cJSON_AddItemToArray(passes, cJSON_CreateString("forward"));
  if (opt->passes & FA_PASS_BACKWARD) cJSON_AddItemToArray(passes, cJSON_CreateString("backward"));
  cJSON_AddNumberToObject(request, "threads", opt->n_threads);
  add_strides(request, t);
  return request;
}

/* The child's result of a run: ok, rejected or error. */
static fa_status take_answer(exec *x, const cJSON *answer, const char *outputs, const fa_problem *p,
                             fa_tensors *t, unsigned passes, fa_outcome *out, fa_error *err) {
  const char *state = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(answer, "state"));
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(answer, "text"));
  const char *kernel = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(answer, "kernel"));
  const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(x->hello, "name"));
  fa_error why = {""};
  snprintf(out->kernel, sizeof out->kernel, "%s", kernel ? kernel : name);
  if (state && strcmp(state, "error") == 0)
    return fa_fail(err, FA_ERR_DEVICE, "%s: %s", x->command, text ? text : "it failed without a word");
  if (state && strcmp(state, "rejected") == 0) {
    out->state = FA_SUBJECT_REJECTED;
    snprintf(out->text, sizeof out->text, "%s", text ? text : "");
  } else if (!state || strcmp(state, "ok") != 0) {
    out->state = FA_SUBJECT_CRASH;
    snprintf(out->text, sizeof out->text, "the child's answer has no \"state\" out of ok, rejected, error");
  } else if (fa_exec_read_outputs(outputs, p, t, passes, &why) != FA_OK) {
    out->state = FA_SUBJECT_CRASH;
    snprintf(out->text, sizeof out->text, "the child's outputs cannot be used: %.440s", why.text);
  }
  return FA_OK;
}

static fa_status exec_run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                          fa_outcome *out, fa_error *err) {
  exec *x = self;
  char inputs[600], outputs[600];
  cJSON *answer = NULL;
  memset(out, 0, sizeof *out);
  char *line = case_line(p);
  fa_status status = line ? FA_OK : fa_fail(err, FA_ERR_MEMORY, "out of memory");
  if (status == FA_OK && x->fault[0]) {
    out->state = FA_SUBJECT_CRASH;
    snprintf(out->text, sizeof out->text, "asked whether it supports the case: %.450s", x->fault);
    free(x->asked); /* ask again about the next case, even if it is the same */
    x->asked = NULL, x->fault[0] = 0;
    goto out;
  }
  if (status == FA_OK && x->child.supervisor == 0) status = start(x, err);
  if (status != FA_OK) goto out;
  snprintf(inputs, sizeof inputs, "%s/inputs.safetensors", x->child.folder);
  snprintf(outputs, sizeof outputs, "%s/outputs.safetensors", x->child.folder);
  status = fa_exec_write_inputs(inputs, t, err);
  if (status == FA_OK) status = fa_exec_write_outputs(outputs, p, t, opt->passes, err);
  if (status != FA_OK) goto out;
  answer = ask(x, run_request(line, inputs, outputs, t, opt), 0, out->text, sizeof out->text);
  if (answer)
    status = take_answer(x, answer, outputs, p, t, opt->passes, out, err);
  else
    out->state = FA_SUBJECT_CRASH;
out:
  cJSON_Delete(answer);
  free(line);
  return status;
}

const fa_backend fa_backend_exec = {
    .name = "exec",
    .what = "exec:CMD, a program of yours that answers lines of JSON (docs/reference/protocol.md)",
    .open = exec_open,
    .close = exec_close,
    .describe = exec_describe,
    .supports = exec_supports,
    .profile = exec_profile,
    .run = exec_run,
};
