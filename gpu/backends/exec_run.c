/* One run of a case in another process. */
#include "gpu/backends/exec_files.h"
#include "gpu/backends/exec_request.h"
#include "gpu/backends/exec_subject.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

/* Everything about one run. */
typedef struct run {
  fa_exec_subject *x;
  const fa_problem *p;
  fa_tensors *t;
  const fa_run_options *opt;
  fa_outcome *out;
  fa_declaration declared;
  fa_exec_tensors list;
  char inputs[600], outputs[600];
} run;

static const char *text_of(const cJSON *answer, const char *key) {
  return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(answer, key));
}

static void crash(run *r, const char *what, const char *why) {
  r->out->state = FA_SUBJECT_CRASH;
  snprintf(r->out->text, sizeof r->out->text, "%s's %s: %.440s", r->x->reach->what, what, why);
}

/* ---- over there ---- */

static fa_status hand_over(run *r, cJSON **request, fa_error *err) {
  fa_exec_subject *x = r->x;
  if (!x->hello.files) {
    fa_status status = fa_exec_memory_place(&x->memory, &r->list, err);
    if (status == FA_OK && x->memory.renewed) status = fa_exec_restart(x, err);
    if (status != FA_OK) return status;
    fa_exec_memory_copy_in(&x->memory);
    *request = fa_exec_run_request(x, r->opt);
    fa_exec_add_memory(*request, &x->memory, &r->list);
    return FA_OK;
  }
  snprintf(r->inputs, sizeof r->inputs, "%s/inputs.safetensors", x->child.folder);
  snprintf(r->outputs, sizeof r->outputs, "%s/outputs.safetensors", x->child.folder);
  fa_status status = fa_exec_write_inputs(r->inputs, &r->list, err);
  if (status == FA_OK) status = fa_exec_write_outputs(r->outputs, &r->list, err);
  if (status != FA_OK) return status;
  *request = fa_exec_run_request(x, r->opt);
  cJSON_AddStringToObject(*request, "inputs", r->inputs);
  cJSON_AddStringToObject(*request, "outputs", r->outputs);
  fa_exec_add_strides(*request, r->t);
  return FA_OK;
}

/* ---- and back ---- */

/* Lists by key block are ours alone, so nobody else looks at them. */
static bool lists_changed(const run *r) {
  for (int i = 0; i < r->list.n; ++i) {
    const fa_exec_tensor *e = &r->list.at[i];
    const bool ours = e->tensor >= r->list.own.t && e->tensor < r->list.own.t + FA_T_COUNT;
    if (ours && e->access == FA_EXEC_READ && fa_exec_memory_differs(&r->x->memory, e->buffer)) return true;
  }
  return false;
}

static void take_memory(run *r) {
  char where[200] = "";
  const bool changed = lists_changed(r);
  fa_exec_memory_copy_out(&r->x->memory);
  if (r->out->state != FA_SUBJECT_OK) return;
  if (changed) snprintf(where, sizeof where, "q_num_blocks or q_indices changed, which are inputs");
  if (!changed && fa_tensors_guards_intact(&r->list.own, where, sizeof where)) return;
  r->out->state = FA_SUBJECT_OOB;
  snprintf(r->out->text, sizeof r->out->text, "%s", where);
}

/* What it says that it has not written in this case. */
static void take_left_out(run *r, const cJSON *answer) {
  fa_tensor_bits written = ~(fa_tensor_bits)0;
  bool given = false;
  fa_error why = {""};
  if (r->x->hello.version > 1 && fa_hello_read_outputs(answer, &written, &given, &why) != FA_OK)
    crash(r, "answer", why.text);
  else
    r->out->left_out = ~written;
}

static void take_outputs(run *r, const cJSON *answer) {
  fa_error why = {""};
  fa_status status = FA_OK;
  if (r->x->hello.files) status = fa_exec_read_outputs(r->outputs, &r->list, &why);
  if (status == FA_OK) status = fa_exec_tensors_take(&r->list, r->p, &r->declared.contract, r->t, &why);
  if (status != FA_OK)
    crash(r, "outputs cannot be used", why.text);
  else
    take_left_out(r, answer);
}

/* How a run may end. What has a status other than FA_OK is no result of the case. */
static const struct {
  const char *word;
  fa_subject_state state;
  fa_status status;
} states[] = {
    {"ok", FA_SUBJECT_OK, FA_OK},
    {"rejected", FA_SUBJECT_REJECTED, FA_OK},
    {"oob", FA_SUBJECT_OOB, FA_OK}, /* seen where only the child can look, on a device */
    {"race", FA_SUBJECT_RACE, FA_OK},
    {"deadlock", FA_SUBJECT_DEADLOCK, FA_OK},
    {"crash", FA_SUBJECT_CRASH, FA_OK},
    {"unsupported", FA_SUBJECT_OK, FA_ERR_UNSUPPORTED},
    {"error", FA_SUBJECT_OK, FA_ERR_DEVICE},
};
enum { N_STATES = sizeof states / sizeof *states };

static fa_status take_answer(run *r, const cJSON *answer, fa_error *err) {
  const char *state = text_of(answer, "state"), *text = text_of(answer, "text"),
             *kernel = text_of(answer, "kernel");
  bool late = false;
  int i = 0;
  snprintf(r->out->kernel, sizeof r->out->kernel, "%s", kernel ? kernel : r->x->hello.name);
  while (i < N_STATES && !(state && strcmp(state, states[i].word) == 0)) ++i;
  if (i == N_STATES)
    crash(r, "answer",
          "it has no \"state\" out of ok, rejected, oob, unsupported, error, race, deadlock, crash");
  else if (states[i].status == FA_ERR_UNSUPPORTED)
    late = true; /* its memory is looked at all the same */
  else if (states[i].status != FA_OK)
    return fa_fail(err, states[i].status, "%s: %s", r->x->name, text ? text : "it failed without a word");
  else if ((r->out->state = states[i].state) != FA_SUBJECT_OK)
    snprintf(r->out->text, sizeof r->out->text, "%s", text ? text : "");
  if (!r->x->hello.files) take_memory(r);
  if (late && r->out->state == FA_SUBJECT_OK)
    return fa_fail(err, FA_ERR_UNSUPPORTED, "%s", text ? text : "it does not take this case");
  if (r->out->state == FA_SUBJECT_OK) take_outputs(r, answer);
  return FA_OK;
}

/* ---- the whole ---- */

static fa_status exchange(run *r, fa_error *err) {
  cJSON *request = NULL;
  fa_exec_subject *x = r->x;
  fa_status status = hand_over(r, &request, err);
  if (status != FA_OK) return status;
  cJSON *answer = fa_exec_ask(x, request, x->patience, r->out->text, sizeof r->out->text);
  if (answer)
    status = take_answer(r, answer, err);
  else
    r->out->state = FA_SUBJECT_CRASH;
  cJSON_Delete(answer);
  return status;
}

fa_status fa_exec_run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                      fa_outcome *out, fa_error *err) {
  fa_exec_subject *x = self;
  run r = {.x = x, .p = p, .t = t, .opt = opt, .out = out};
  memset(out, 0, sizeof *out);
  if (!fa_exec_speak_of(x, p)) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  if (x->fault[0]) {
    out->state = FA_SUBJECT_CRASH;
    snprintf(out->text, sizeof out->text, "asked whether it supports the case: %.450s", x->fault);
    fa_exec_forget(x); /* ask again about the next case, even if it is the same */
    return FA_OK;
  }
  fa_status status = fa_exec_need(x, err);
  if (status != FA_OK) return status;
  fa_hello_declare(&x->hello, p, &r.declared);
  status = fa_exec_tensors_make(p, t, &r.declared.contract, opt->passes, !x->hello.files, &r.list, err);
  if (status == FA_OK) status = exchange(&r, err);
  fa_exec_tensors_free(&r.list);
  return status;
}
