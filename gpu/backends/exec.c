/* The backend exec:CMD, and what it shares with py and connect: a subject in any language, in another process.
 * docs/reference/protocol.md is its contract. */
#include "gpu/backends/exec_subject.h"
#include "gpu/backends/plugin_backend.h"
#include "gpu/contract/lse.h"
#include "gpu/wall/door.h"
#include "gpu/wall/words.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- open, close, describe ---- */

void fa_exec_close(void *self) {
  fa_exec_subject *x = self;
  if (x->lines) x->reach->close(x, false, NULL, 0);
  fa_exec_memory_close(&x->memory);
  fa_exec_forget(x);
  free(x->contract);
  free(x->held);
  free(x->command);
  free(x->name);
  free(x);
}

fa_status fa_exec_open(const fa_exec_reach *reach, const char *name, const char *command,
                       const fa_wall_terms *terms, void **self, fa_error *err) {
  *self = NULL;
  fa_exec_subject *x = calloc(1, sizeof *x);
  if (x) x->name = strdup(name), x->command = command ? strdup(command) : NULL;
  if (!x || !x->name || (command && !x->command)) {
    if (x) free(x->name), free(x->command), free(x);
    return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  }
  x->reach = reach;
  x->terms = terms;
  const fa_status status = fa_exec_greet(x, err);
  if (status == FA_OK)
    *self = x;
  else
    fa_exec_close(x);
  return status;
}

void fa_exec_describe(void *self, fa_backend_info *out) {
  const fa_exec_subject *x = self;
  const fa_hello *h = &x->hello;
  memset(out, 0, sizeof *out);
  out->name = x->reach->backend;
  out->usable = true;
  snprintf(out->device, sizeof out->device, "%s%s%s", h->name, h->device[0] ? ", " : "", h->device);
  snprintf(out->driver, sizeof out->driver, "%s", h->driver);
  snprintf(out->wall, sizeof out->wall, "%s", x->wall);
  snprintf(out->source, sizeof out->source, "%s", h->source);
}

/* ---- what it can do, and how ---- */

unsigned fa_exec_supports(void *self, const fa_problem *p, char *reason, size_t reason_size) {
  fa_exec_subject *x = self;
  unsigned passes = fa_hello_passes(&x->hello, p, reason, reason_size);
  fa_error ignored;
  if (!(passes & FA_PASS_FORWARD) || !x->hello.asks || !fa_exec_speak_of(x, p)) return passes;
  fa_exec_ask_support(x);
  if (!x->answer) return passes;
  unsigned answered = FA_PASS_FORWARD | FA_PASS_BACKWARD;
  fa_hello_read_passes(x->answer, &answered, &ignored);
  const char *why = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(x->answer, "reason"));
  if (why) snprintf(reason, reason_size, "%s", why);
  return passes & answered;
}

void fa_exec_declare(void *self, const fa_problem *p, fa_declaration *out) {
  fa_exec_subject *x = self;
  fa_error ignored;
  fa_hello_declare(&x->hello, p, out);
  if (!p || !x->hello.asks || !fa_exec_speak_of(x, p)) return;
  fa_exec_ask_support(x);
  if (x->answer)
    fa_hello_read_arithmetic(x->answer, x->hello.version, p->dtype, &out->arithmetic, &out->arithmetic_given,
                             &ignored);
}

const fa_hello *fa_exec_hello(void *self) {
  const fa_exec_subject *x = self;
  return &x->hello;
}

void fa_exec_profile(void *self, const fa_problem *p, fa_profile *out) {
  fa_declaration d;
  fa_exec_declare(self, p, &d);
  *out = fa_declaration_profile(&d, p);
}

void fa_exec_adopt(void *self, fa_dtype dtype, const fa_declaration *found) {
  fa_exec_subject *x = self;
  if ((int)dtype >= FA_HELLO_DTYPES) return;
  x->adopted[dtype] = true;
  x->found[dtype] = *found;
  fa_hello_adopt(&x->hello, dtype, found);
}

/* ---- held to what it has said ---- */

const char *fa_exec_contract(void *self) {
  return ((fa_exec_subject *)self)->contract;
}

fa_status fa_exec_hold(void *self, const char *contract, fa_error *err) {
  fa_exec_subject *x = self;
  free(x->held);
  x->held = strdup(contract);
  if (!x->held) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  return fa_exec_check_contract(x, err);
}

fa_status fa_exec_renew(void *self, fa_error *err) {
  fa_exec_forget(self);
  return fa_exec_restart(self, err);
}

/* ---- a child ---- */

fa_status fa_exec_start_child(fa_exec_subject *x, fa_error *err) {
  fa_status status = FA_OK;
  if (x->terms) {
    const bool sealed = fa_layer_in(x->terms->layers, FA_LAYER_MEMORY);
    status = fa_exec_memory_inherit(&x->memory, FA_WALL_FD_MEMORY, sealed, err);
  }
  const fa_exec_guest guest = {.terms = x->terms,
                               .name = x->name,
                               .memory = x->memory.fd,
                               .found = x->wall,
                               .found_size = sizeof x->wall};
  const int server = x->reach->server ? x->reach->server(x) : -1;
  if (status == FA_OK) status = fa_exec_start(&x->child, x->command, server, x->terms ? &guest : NULL, err);
  if (status != FA_OK) return status;
  x->memory.renewed = false;
  x->lines = &x->child.lines;
  return FA_OK;
}

void fa_exec_stop_child(fa_exec_subject *x, bool at_once, char *how, size_t how_size) {
  fa_exec_stop(&x->child, at_once, how, how_size);
}

static const fa_exec_reach reach = {
    .backend = "exec", .what = "the child", .open = fa_exec_start_child, .close = fa_exec_stop_child};

static fa_status exec_open_untrusted(const char *arg, const fa_wall_terms *terms, void **self,
                                     fa_error *err) {
  *self = NULL;
  if (!arg || !*arg) return fa_fail(err, FA_ERR_INPUT, "backend exec needs a command: exec:CMD");
  return fa_exec_open(&reach, arg, arg, terms, self, err);
}

static fa_status exec_open(const char *arg, void **self, fa_error *err) {
  return exec_open_untrusted(arg, NULL, self, err);
}

const fa_backend fa_backend_exec = FA_EXEC_BACKEND(
    "exec", "exec:CMD, a program of yours that answers lines of JSON (docs/reference/protocol.md)", exec_open,
    exec_open_untrusted);

/* ---- this program as the child ---- */

/* A plugin shares the memory of whoever loads it. So behind a wall it is loaded by `fa-verify serve`, which speaks to the
 * judge as any other child does. */
static const fa_exec_reach served_reach = {.backend = "served",
                                           .what = "the process that serves it",
                                           .open = fa_exec_start_child,
                                           .close = fa_exec_stop_child};

static fa_status served_open(const char *arg, const fa_wall_terms *terms, void **self, fa_error *err) {
  char command[1024] = "exec " FA_WALL_PROGRAM " serve --backend";
  *self = NULL;
  if (!fa_wall_quote(command, sizeof command, arg, strlen(arg)))
    return fa_fail(err, FA_ERR_INPUT, "%.40s...: too long", arg);
  return fa_exec_open(&served_reach, arg, command, terms, self, err);
}

const fa_backend fa_backend_served =
    FA_EXEC_BACKEND("served", "a backend of this program behind a wall", NULL, served_open);
