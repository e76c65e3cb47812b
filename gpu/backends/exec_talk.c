/* One request, one answer; and what is said about the problem at hand. */
#include "cases/base/json.h"
#include "cases/codec/json.h"
#include "cases/recipe/case.h"
#include "gpu/backends/exec_subject.h"
#include "gpu/contract/canonical.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Time limit until a subject says hello: loading a framework and waking a GPU take time. After that a case's own
 * time limit applies. */
#define HELLO_SECONDS 120

/* Quotes the start of what was written, made printable for a message. */
static void quote(const char *line, char *out, size_t size) {
  size_t n = 0;
  for (; *line && n + 8 < size && n < 160; ++line) {
    const unsigned char c = (unsigned char)*line;
    n += (size_t)snprintf(out + n, size - n, c >= 32 && c < 127 ? "%c" : "\\x%02x", c);
  }
  snprintf(out + n, size - n, "%s", *line ? "..." : "");
}

/* Stops the other side after misbehaviour; text: which. */
static void give_up(fa_exec_subject *x, bool at_once, char *text, size_t size, const char *what,
                    const char *line) {
  char how[200], said[200];
  quote(line, said, sizeof said); /* stopping frees the line */
  x->reach->close(x, at_once, how, sizeof how);
  x->lines = NULL;
  if (at_once)
    snprintf(
        text, size,
        "%s %s: \"%s\" (it must answer each request with one line of JSON, and print other things to stderr)",
        x->reach->what, what, said);
  else
    snprintf(text, size, "%s %s%s%s%s", x->reach->what, how, *line ? ", its last words being \"" : "",
             *line ? said : "", *line ? "\"" : "");
}

/* The line as an answer to the last request; NULL: it is none, and the other side is stopped. */
static cJSON *parse(fa_exec_subject *x, char *line, char *text, size_t size) {
  cJSON *tree = NULL;
  fa_error err;
  char what[100];
  if (fa_json_parse(line, strlen(line), "answer", &tree, &err) != FA_OK || !cJSON_IsObject(tree)) {
    give_up(x, true, text, size, "wrote what is no answer", line);
  } else {
    const cJSON *got = cJSON_GetObjectItemCaseSensitive(tree, "id");
    if (cJSON_IsNumber(got) && got->valuedouble == (double)x->id) return tree;
    snprintf(what, sizeof what, "gave an answer that lacks \"id\": %lld", (long long)x->id);
    give_up(x, true, text, size, what, line);
  }
  cJSON_Delete(tree);
  return NULL;
}

static cJSON *receive(fa_exec_subject *x, double seconds, char *text, size_t size) {
  char *line = NULL;
  switch (fa_exec_receive(x->lines, seconds, &line)) {
  case FA_EXEC_ENDED:
    give_up(x, false, text, size, "", line);
    return NULL;
  case FA_EXEC_LATE:
    x->reach->close(x, true, NULL, 0);
    x->lines = NULL;
    snprintf(text, size, "%s said nothing for %g s", x->reach->what, seconds);
    return NULL;
  case FA_EXEC_TOO_LONG:
    give_up(x, true, text, size, "wrote a line that does not end", line);
    return NULL;
  case FA_EXEC_LINE:
    break;
  }
  return parse(x, line, text, size);
}

/* Nobody can answer a request that has not come yet if its number cannot be known. */
static int64_t next_id(const fa_exec_subject *x) {
  uint64_t drawn;
  if (!x->terms || getrandom(&drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn) return x->id + 1;
  return (int64_t)(drawn >> 16);
}

cJSON *fa_exec_ask(fa_exec_subject *x, cJSON *request, double seconds, char *text, size_t size) {
  x->id = next_id(x);
  cJSON_AddNumberToObject(request, "id", (double)x->id);
  char *line = cJSON_PrintUnformatted(request);
  cJSON_Delete(request);
  if (!line) {
    snprintf(text, size, "out of memory");
    return NULL;
  }
  fa_exec_send(x->lines, line); /* one that does not read is noticed when its answer is read */
  free(line);
  return receive(x, seconds, text, size);
}

cJSON *fa_exec_request(const fa_exec_subject *x, const char *type) {
  cJSON *request = cJSON_CreateObject();
  cJSON_AddNumberToObject(request, "fa_exec", x->hello.version);
  cJSON_AddStringToObject(request, "type", type);
  return request;
}

/* ---- hello ---- */

/* Written so that a child of version 1 reads it as its own. */
static cJSON *hello_request(fa_exec_subject *x) {
  x->hello.version = 1;
  cJSON *request = fa_exec_request(x, "hello");
  const int versions[] = {1, FA_HELLO_VERSION};
  cJSON_AddItemToObject(request, "versions", cJSON_CreateIntArray(versions, 2));
  /* Keys of a hello that are newer than version 2: a child that sends one unasked could not be used with older programs. */
  const char *const takes[] = {"source", "time"};
  cJSON_AddItemToObject(request, "takes", cJSON_CreateStringArray(takes, 2));
  return request;
}

fa_status fa_exec_check_contract(const fa_exec_subject *x, fa_error *err) {
  if (!x->held || (x->contract && strcmp(x->contract, x->held) == 0)) return FA_OK;
  return fa_fail(err, FA_ERR_INPUT, "its hello is not the first one: it must be the same in every process");
}

static fa_status read_hello(fa_exec_subject *x, const cJSON *hello, fa_error *err) {
  const fa_status status = fa_hello_read(hello, &x->hello, err);
  if (status != FA_OK) return status;
  free(x->contract);
  x->contract = fa_hello_canonical(hello);
  return fa_exec_check_contract(x, err);
}

fa_status fa_exec_greet(fa_exec_subject *x, fa_error *err) {
  char text[400];
  fa_status status = x->reach->open(x, err);
  if (status != FA_OK) return status;
  cJSON *hello = fa_exec_ask(x, hello_request(x), HELLO_SECONDS, text, sizeof text);
  if (!hello) {
    if (x->reach->explain) x->reach->explain(x, text, sizeof text);
    return fa_fail(err, FA_ERR_INPUT, "%s: no hello: %s", x->name, text);
  }
  status = read_hello(x, hello, err);
  cJSON_Delete(hello);
  if (status == FA_OK && x->hello.files && x->reach->memory_only)
    status = fa_fail(err, FA_ERR_INPUT, "it wants files; %s goes through shared memory, which is version 2",
                     x->reach->backend);
  for (int t = 0; t < FA_HELLO_DTYPES; ++t)
    if (x->adopted[t]) fa_hello_adopt(&x->hello, (fa_dtype)t, &x->found[t]);
  if (status == FA_OK && x->terms && fa_layer_in(x->terms->layers, FA_LAYER_MEMORY) && x->hello.files)
    status = fa_fail(
        err, FA_ERR_INPUT,
        "it wants files (version 1, or \"transport\": \"files\"); with --untrusted it must take shared "
        "memory, which is version 2");
  if (status == FA_OK) return FA_OK;
  fa_error_prefix(err, "%s", x->name);
  x->reach->close(x, false, NULL, 0);
  x->lines = NULL;
  return status;
}

fa_status fa_exec_need(fa_exec_subject *x, fa_error *err) {
  return x->lines ? FA_OK : fa_exec_greet(x, err);
}

fa_status fa_exec_restart(fa_exec_subject *x, fa_error *err) {
  if (x->lines) x->reach->close(x, false, NULL, 0);
  x->lines = NULL;
  return fa_exec_greet(x, err);
}

/* ---- the problem at hand ---- */

void fa_exec_forget(fa_exec_subject *x) {
  if (x->has_problem) fa_problem_free(&x->problem);
  free(x->line);
  cJSON_Delete(x->answer);
  x->has_problem = x->asked = false;
  x->line = NULL, x->answer = NULL, x->fault[0] = 0;
}

/* The case without the recipe for its data: the problem alone. malloc'd. */
static char *line_of(const fa_problem *p) {
  fa_case c;
  char *line = NULL;
  if (fa_case_init(&c) != FA_OK) return NULL;
  fa_problem_free(&c.problem);
  if (fa_problem_copy(&c.problem, p) == FA_OK) line = fa_case_to_line(&c);
  fa_case_free(&c);
  return line;
}

bool fa_exec_speak_of(fa_exec_subject *x, const fa_problem *p) {
  if (x->has_problem && fa_problem_equal(&x->problem, p)) return true;
  fa_exec_forget(x);
  x->line = line_of(p);
  x->has_problem = x->line && fa_problem_copy(&x->problem, p) == FA_OK;
  return x->has_problem;
}

/* Checks the keys of an answer to "supports". */
static fa_status check_answer(const fa_exec_subject *x, fa_error *err) {
  unsigned passes = 0;
  bool given = false;
  fa_arithmetic arithmetic = x->hello.declaration[x->problem.dtype].arithmetic;
  const fa_status status = fa_hello_read_passes(x->answer, &passes, err);
  if (status != FA_OK) return status;
  return fa_hello_read_arithmetic(x->answer, x->hello.version, x->problem.dtype, &arithmetic, &given, err);
}

void fa_exec_ask_support(fa_exec_subject *x) {
  fa_error err = {""};
  if (x->asked || !x->hello.asks) return;
  x->asked = true;
  if (fa_exec_need(x, &err) != FA_OK) {
    snprintf(x->fault, sizeof x->fault, "%.500s", err.text);
    return;
  }
  cJSON *request = fa_exec_request(x, "supports");
  cJSON_AddRawToObject(request, "case", x->line);
  x->answer = fa_exec_ask(x, request, 0, x->fault, sizeof x->fault);
  if (!x->answer || check_answer(x, &err) == FA_OK) return;
  snprintf(x->fault, sizeof x->fault, "%s's answer to \"supports\": %.400s", x->reach->what, err.text);
  cJSON_Delete(x->answer);
  x->answer = NULL;
}
