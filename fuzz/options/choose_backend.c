#include "fuzz/options/choose_backend.h"

#include "fuzz/options/choices.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct probed {
  fa_backend_info info;
  fa_status status;
  fa_self_portrait said;
} probed;

static void ask_declarations(const fa_backend *backend, void *self, fa_self_portrait *out) {
  fa_problem p;
  fa_problem_init(&p);
  out->declares = backend->declare != NULL;
  out->adopts = backend->adopt != NULL;
  for (int t = 0; out->declares && t < FA_CHOICE_DTYPES; ++t) {
    p.dtype = (fa_dtype)t;
    backend->declare(self, &p, &out->of[t]);
  }
  fa_problem_free(&p);
  out->greeted = backend->hello != NULL;
  if (out->greeted) out->hello = *backend->hello(self);
  const char *contract = backend->contract ? backend->contract(self) : NULL;
  if (contract && strlen(contract) < sizeof out->contract)
    snprintf(out->contract, sizeof out->contract, "%s", contract);
}

fa_status fa_backend_open(const fa_backend *backend, const char *arg, const fa_wall_terms *terms, void **self,
                          fa_error *err) {
  if (!terms) return backend->open(arg, self, err);
  if (backend->open_untrusted) return backend->open_untrusted(arg, terms, self, err);
  return fa_fail(err, FA_ERR_INPUT,
                 "it cannot stand behind a wall, which --untrusted needs; exec: and py: can");
}

static void open_and_describe(const fa_backend *backend, const char *arg, const fa_wall_terms *terms,
                              probed *out) {
  void *self = NULL;
  fa_error err = {""};
  memset(out, 0, sizeof *out);
  out->status = fa_backend_open(backend, arg, terms, &self, &err);
  if (out->status != FA_OK) {
    snprintf(out->info.why_not, sizeof out->info.why_not, "%s", err.text);
    return;
  }
  backend->describe(self, &out->info);
  ask_declarations(backend, self, &out->said);
  backend->close(self);
}

static fa_status probe(const fa_backend *backend, const char *arg, const fa_wall_terms *terms,
                       fa_backend_info *out, fa_self_portrait *said) {
  int ends[2] = {-1, -1};
  probed answer;
  fflush(NULL);
  pid_t pid = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
  if (pid == 0) {
    open_and_describe(backend, arg, terms, &answer);
    _exit(write(ends[1], &answer, sizeof answer) == (ssize_t)sizeof answer ? 0 : 3);
  }
  size_t got = 0;
  int wait_status = 0;
  if (ends[1] >= 0) close(ends[1]);
  while (pid > 0 && got < sizeof answer) {
    ssize_t n = read(ends[0], (char *)&answer + got, sizeof answer - got);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    got += (size_t)n;
  }
  if (ends[0] >= 0) close(ends[0]);
  while (pid > 0 && waitpid(pid, &wait_status, 0) < 0 && errno == EINTR) {}
  if (got < sizeof answer) {
    memset(&answer, 0, sizeof answer);
    answer.status = FA_ERR_DEVICE;
    snprintf(answer.info.why_not, sizeof answer.info.why_not,
             pid > 0 ? "it crashed when opened" : "no process could be made for it");
  }
  *out = answer.info;
  if (said) *said = answer.said;
  out->name = backend->name; /* the child is the same program, but trust only our pointer */
  return answer.status;
}

fa_status fa_backend_probe(const fa_backend *backend, const char *arg, fa_backend_info *out,
                           fa_self_portrait *said) {
  return probe(backend, arg, NULL, out, said);
}

static fa_status unknown_backend(const fa_backend *const *table, const char *spec, fa_error *err) {
  char names[512] = "", name[64];
  fa_choices choices;
  fa_choices_of(FA_VALUE_BACKEND, NULL, table, &choices);
  for (int i = 0; i < choices.n; ++i) {
    const size_t used = strlen(names);
    snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", choices.v[i].name);
  }
  snprintf(name, sizeof name, "%.*s", (int)strcspn(spec, ":"), spec);
  const char *nearest = fa_choices_nearest(&choices, name);
  return fa_fail(err, FA_ERR_INPUT, "--backend %s: unknown; this build has: %s%s%s", spec, names,
                 nearest ? "; the nearest is " : "", nearest ? nearest : "");
}

const fa_wall_terms *fa_choice_terms(const fa_choice *choice) {
  return choice->untrusted ? &choice->terms : NULL;
}

const fa_backend *fa_backend_named(const fa_backend *const *table, const char *spec) {
  const size_t n = strcspn(spec, ":");
  for (int i = 0; table[i]; ++i)
    if (strlen(table[i]->name) == n && strncmp(table[i]->name, spec, n) == 0) return table[i];
  return NULL;
}

void fa_backend_share(const fa_backend *const *table, const char *spec) {
  const fa_backend *backend = fa_backend_named(table, spec);
  const char *colon = strchr(spec, ':');
  if (backend && backend->share && colon) backend->share(colon + 1);
}

bool fa_backend_is_foreign(const fa_backend *backend) {
  return backend->open_untrusted || backend->served || backend->hello;
}

fa_status fa_choose_untrusted(const fa_backend *const *table, const char *spec, const fa_wall_terms *terms,
                              fa_choice *out, fa_error *err) {
  memset(out, 0, sizeof *out);
  out->untrusted = terms != NULL;
  if (terms) out->terms = *terms;
  out->layers = terms ? terms->layers : FA_TRUSTED_LAYERS;
  const size_t n = strcspn(spec, ":");
  out->backend = fa_backend_named(table, spec);
  if (out->backend && strlen(spec) >= sizeof out->spec)
    return fa_fail(err, FA_ERR_INPUT, "--backend %s: longer than %zu characters", spec, sizeof out->spec - 1);
  if (!out->backend) return unknown_backend(table, spec, err);
  snprintf(out->spec, sizeof out->spec, "%s", spec);
  out->arg = out->spec[n] == ':' ? out->spec + n + 1 : NULL;
  if (terms && out->backend->served) out->backend = out->backend->served, out->arg = out->spec;
  const fa_status status = probe(out->backend, out->arg, terms, &out->info, &out->said);
  if (status == FA_ERR_INPUT) return fa_fail(err, status, "--backend %s: %s", spec, out->info.why_not);
  if (!out->info.usable)
    return fa_fail(err, FA_ERR_DEVICE, "--backend %s: not usable here: %s", spec, out->info.why_not);
  return FA_OK;
}

fa_status fa_choose_backend(const fa_backend *const *table, const char *spec, fa_choice *out, fa_error *err) {
  return fa_choose_untrusted(table, spec, NULL, out, err);
}

fa_status fa_choice_open(const fa_choice *choice, void **self, fa_error *err) {
  const fa_status status = fa_backend_open(choice->backend, choice->arg, fa_choice_terms(choice), self, err);
  for (int t = 0; status == FA_OK && t < FA_CHOICE_DTYPES; ++t)
    if (choice->probed >> t & 1) choice->backend->adopt(*self, (fa_dtype)t, &choice->found[t]);
  return status;
}

fa_status fa_choose_default(const fa_backend *const *table, bool quiet, fa_choice *out, fa_error *err) {
  static const char *const preferred[] = {"cuda", "host"};
  char why[400] = "no cuda in this build";
  fa_error ignored;
  for (int i = 0; i < 2; ++i) {
    bool exists = false;
    for (int k = 0; table[k]; ++k) exists |= strcmp(table[k]->name, preferred[i]) == 0;
    if (!exists) continue;
    if (fa_choose_backend(table, preferred[i], out, &ignored) == FA_OK) {
      if (!quiet && i == 0) fprintf(stderr, "backend: cuda (%s)\n", out->info.device);
      if (!quiet && i == 1) fprintf(stderr, "backend: host (%s)\n", why);
      return FA_OK;
    }
    snprintf(why, sizeof why, "%s: %s", preferred[i], out->info.why_not);
  }
  for (int k = 0; table[k]; ++k) {
    if (fa_choose_backend(table, table[k]->name, out, &ignored) != FA_OK) continue;
    if (!quiet) fprintf(stderr, "backend: %s (%s)\n", out->spec, why);
    return FA_OK;
  }
  return fa_fail(err, FA_ERR_DEVICE, "no usable backend: %s", why);
}
