#include "gpu/backends/mutant.h"

#include "cases/base/program.h"
#include "gpu/backends/plugin_backend.h"
#include "gpu/backends/shared_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct mutant {
  void *handle;
  const fa_backend *host;
  void *host_self;
  char name[64];
} mutant;

void fa_mutant_folder(char *path, size_t size) {
  const char *given = getenv("FA_MUTANT_DIR");
  if (given && *given) {
    snprintf(path, size, "%s", given);
    return;
  }
  char program[4096];
  snprintf(path, size, "%s/mutants", fa_program_folder(program, sizeof program) ? program : ".");
}

static void mutant_close(void *self) {
  mutant *m = self;
  if (m->host) m->host->close(m->host_self);
  if (m->handle) dlclose(m->handle);
  free(m);
}

/* argument: for the host backend; NULL: none. */
static fa_status load(mutant *m, const char *argument, fa_error *err) {
  char folder[4096], path[4096 + 100];
  void *table = NULL;
  fa_mutant_folder(folder, sizeof folder);
  snprintf(path, sizeof path, "%s/%s.so", folder, m->name);
  if (access(path, R_OK) != 0)
    return fa_fail(
        err, FA_ERR_INPUT,
        "mutant %s: there is no %s; the target mutants of a build folder makes them, `list mutants` "
        "there names them, and an installed program has none",
        m->name, path);
  fa_status status = fa_shared_library_open(path, "fa_mutant_table", &m->handle, &table, err);
  if (status != FA_OK) return status;
  const fa_mutant_library *library = table;
  if (library->layout != FA_MUTANT_LAYOUT)
    return fa_fail(err, FA_ERR_INPUT, "%s: built for another version of this program", path);
  status = library->backend->open(argument, &m->host_self, err);
  if (status == FA_OK) m->host = library->backend;
  return status;
}

static fa_status mutant_open(const char *arg, void **self, fa_error *err) {
  *self = NULL;
  const char *comma = arg ? strchr(arg, ',') : NULL;
  const size_t length = comma ? (size_t)(comma - arg) : arg ? strlen(arg) : 0;
  if (length == 0 || memchr(arg, '/', length) || length >= sizeof((mutant *)0)->name)
    return fa_fail(err, FA_ERR_INPUT,
                   "backend mutant needs a name: mutant:NAME or mutant:NAME,ARGUMENT (see `list mutants`)");
  mutant *m = calloc(1, sizeof *m);
  if (!m) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  memcpy(m->name, arg, length);
  const fa_status status = load(m, comma ? comma + 1 : NULL, err);
  if (status == FA_OK)
    *self = m;
  else
    mutant_close(m);
  return status;
}

static void mutant_describe(void *self, fa_backend_info *out) {
  const mutant *m = self;
  m->host->describe(m->host_self, out);
  out->name = fa_backend_mutant.name;
  snprintf(out->driver, sizeof out->driver, "%s", m->name);
}

static unsigned mutant_supports(void *self, const fa_problem *p, char *reason, size_t reason_size) {
  const mutant *m = self;
  return m->host->supports(m->host_self, p, reason, reason_size);
}

static void mutant_profile(void *self, const fa_problem *p, fa_profile *out) {
  const mutant *m = self;
  m->host->profile(m->host_self, p, out);
}

static fa_status mutant_run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                            fa_outcome *out, fa_error *err) {
  const mutant *m = self;
  return m->host->run(m->host_self, p, t, opt, out, err);
}

const fa_backend fa_backend_mutant = {
    .name = "mutant",
    .what = "mutant:NAME[,ARGUMENT], the host backend (host:ARGUMENT) with one planted bug (list mutants)",
    .open = mutant_open,
    .close = mutant_close,
    .describe = mutant_describe,
    .supports = mutant_supports,
    .profile = mutant_profile,
    .run = mutant_run,
};
