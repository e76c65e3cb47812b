#include "gpu/serve/session.h"

#include "cases/base/json.h"
#include "cases/codec/json.h"
#include "gpu/contract/hello.h"
#include "gpu/serve/parts.h"
#include "gpu/serve/region.h"
#include "gpu/serve/tensors.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

typedef struct session {
  const fa_backend *backend;
  void *self;
  const char *why_not;
  fa_serve_region region;
} session;

static const char *text_of(const cJSON *object, const char *key) {
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
  return text ? text : "";
}

/* The request's problem; FA_OK: the caller frees the case. */
static fa_status read_case(const cJSON *request, fa_case *c, fa_error *err) {
  const cJSON *object = cJSON_GetObjectItemCaseSensitive(request, "case");
  if (!cJSON_IsObject(object)) return fa_fail(err, FA_ERR_INPUT, "\"case\" must be an object");
  return fa_case_from_json(object, "case", c, err);
}

/* ---- supports ---- */

static void add_passes(cJSON *answer, unsigned passes) {
  cJSON *array = cJSON_AddArrayToObject(answer, "passes");
  if (passes & FA_PASS_FORWARD) cJSON_AddItemToArray(array, cJSON_CreateString("forward"));
  if (passes & FA_PASS_BACKWARD) cJSON_AddItemToArray(array, cJSON_CreateString("backward"));
}

/* A case that cannot be read is left to "run", which says what is wrong with it. */
static cJSON *answer_supports(session *s, const cJSON *request) {
  cJSON *answer = cJSON_CreateObject();
  char reason[256] = "";
  fa_error ignored;
  fa_case c;
  if (read_case(request, &c, &ignored) != FA_OK) return answer;
  add_passes(answer, s->backend->supports(s->self, &c.problem, reason, sizeof reason));
  if (reason[0]) cJSON_AddStringToObject(answer, "reason", reason);
  if (!fa_serve_has_hello(s->backend, s->self)) {
    fa_profile profile;
    s->backend->profile(s->self, &c.problem, &profile);
    cJSON_AddItemToObject(answer, "arithmetic", fa_serve_arithmetic(&profile, c.problem.dtype));
  }
  fa_case_free(&c);
  return answer;
}

/* ---- run ---- */

static const char *state_word(fa_subject_state state) {
  static const char *const words[] = {
      [FA_SUBJECT_OK] = "ok",     [FA_SUBJECT_REJECTED] = "rejected", [FA_SUBJECT_OOB] = "oob",
      [FA_SUBJECT_RACE] = "race", [FA_SUBJECT_DEADLOCK] = "deadlock", [FA_SUBJECT_CRASH] = "crash"};
  return words[state];
}

static cJSON *state_answer(const char *state, const char *text) {
  cJSON *answer = cJSON_CreateObject();
  cJSON_AddStringToObject(answer, "state", state);
  if (text[0]) cJSON_AddStringToObject(answer, "text", text);
  return answer;
}

static cJSON *failure(fa_status status, const fa_error *err) {
  return state_answer(status == FA_ERR_UNSUPPORTED ? "unsupported" : "error", err->text);
}

/* Words for all outputs but those that it says it has not written. */
static void add_outputs(cJSON *answer, fa_tensor_bits left_out) {
  if (!left_out) return;
  cJSON *array = cJSON_AddArrayToObject(answer, "outputs");
  for (int i = 0; fa_output_word(i); ++i)
    if (!(fa_output_bits(i) & left_out)) cJSON_AddItemToArray(array, cJSON_CreateString(fa_output_word(i)));
}

static cJSON *outcome_answer(const fa_outcome *out) {
  cJSON *answer = state_answer(state_word(out->state), out->text);
  char kernel[sizeof out->kernel + sizeof out->backward_kernel + 4];
  snprintf(kernel, sizeof kernel, "%s%s%s", out->kernel, out->backward_kernel[0] ? " + " : "",
           out->backward_kernel);
  if (kernel[0]) cJSON_AddStringToObject(answer, "kernel", kernel);
  add_outputs(answer, out->left_out);
  return answer;
}

static fa_status map_memory(session *s, const cJSON *request, fa_error *err) {
  const cJSON *bytes = cJSON_GetObjectItemCaseSensitive(request, "bytes");
  const double n = cJSON_IsNumber(bytes) ? bytes->valuedouble : 0;
  if (!(n >= 1 && n <= 0x1p53)) return fa_fail(err, FA_ERR_INPUT, "\"bytes\" must be a number of bytes");
  return fa_serve_region_map(&s->region, text_of(request, "memory"), (size_t)n, err);
}

static fa_run_options options_of(const cJSON *request, unsigned passes) {
  const cJSON *threads = cJSON_GetObjectItemCaseSensitive(request, "threads");
  const double n = cJSON_IsNumber(threads) ? threads->valuedouble : 1;
  return (fa_run_options){
      .passes = passes, .n_threads = n >= 1 && n <= 4096 ? (int)n : 1, .lse_as_declared = true};
}

static cJSON *run_case(session *s, const cJSON *request, const fa_problem *p) {
  fa_error err = {""};
  fa_tensors t;
  fa_outcome out = {.state = FA_SUBJECT_OK};
  unsigned passes = FA_PASS_FORWARD;
  fa_status status = map_memory(s, request, &err);
  if (status == FA_OK) status = fa_hello_read_passes(request, &passes, &err);
  if (status == FA_OK) status = fa_serve_tensors_read(request, p, &s->region, &t, &err);
  const fa_run_options opt = options_of(request, passes);
  if (status == FA_OK) status = s->backend->run(s->self, p, &t, &opt, &out, &err);
  return status == FA_OK ? outcome_answer(&out) : failure(status, &err);
}

static cJSON *answer_run(session *s, const cJSON *request) {
  fa_error err = {""};
  fa_case c;
  const fa_status status = read_case(request, &c, &err);
  if (status != FA_OK) return failure(FA_ERR_INPUT, &err);
  cJSON *answer = run_case(s, request, &c.problem);
  fa_case_free(&c);
  return answer;
}

/* ---- requests ---- */

static cJSON *answer_hello(session *s, const cJSON *request) {
  if (s->why_not) return fa_serve_hello_why_not(s->backend->name, s->why_not);
  return fa_serve_hello(s->backend, s->self, cJSON_GetObjectItemCaseSensitive(request, "takes"));
}

static cJSON *answer_to(session *s, const cJSON *request) {
  static const struct {
    const char *type;
    cJSON *(*answer)(session *s, const cJSON *request);
  } types[] = {{"hello", answer_hello}, {"supports", answer_supports}, {"run", answer_run}};
  const char *type = text_of(request, "type");
  for (size_t i = 0; i < sizeof types / sizeof *types; ++i)
    if (strcmp(type, types[i].type) == 0) return types[i].answer(s, request);
  return state_answer("error", "\"type\" must be hello, supports or run");
}

/* What a backend says may be in any encoding, and JSON may not. */
static void make_valid(char *line) {
  cJSON *tree = NULL;
  fa_error ignored;
  if (fa_json_parse(line, strlen(line), "answer", &tree, &ignored) != FA_OK)
    for (char *c = line; *c; ++c)
      if ((unsigned char)*c >= 0x80) *c = '?';
  cJSON_Delete(tree);
}

/* Answers one line. False: the answer could not be written. */
static bool serve_line(session *s, const char *line, FILE *out) {
  cJSON *request = NULL, *answer, *id;
  fa_error err = {""};
  if (fa_json_parse(line, strlen(line), "request", &request, &err) == FA_OK)
    answer = answer_to(s, request);
  else
    answer = state_answer("error", err.text);
  id = cJSON_GetObjectItemCaseSensitive(request, "id");
  cJSON_AddNumberToObject(answer, "id", cJSON_IsNumber(id) ? id->valuedouble : 0);
  cJSON_Delete(request);
  char *text = cJSON_PrintUnformatted(answer);
  cJSON_Delete(answer);
  if (!text) return false;
  make_valid(text);
  const bool written = fprintf(out, "%s\n", text) > 0 && fflush(out) == 0;
  free(text);
  return written;
}

fa_serve_end fa_serve_session(const fa_backend *backend, void *self, const char *why_not, FILE *in,
                              FILE *out) {
  session s = {.backend = backend, .self = self, .why_not = why_not};
  fa_serve_end end = FA_SERVE_CLOSED;
  char *line = NULL;
  size_t capacity = 0;
  while (end == FA_SERVE_CLOSED && getline(&line, &capacity, in) > 0) {
    if (!serve_line(&s, line, out)) end = FA_SERVE_FAILED;
    if (end == FA_SERVE_CLOSED && !why_not && backend->spent && backend->spent(self)) end = FA_SERVE_SPENT;
  }
  free(line);
  fa_serve_region_unmap(&s.region);
  return end;
}
