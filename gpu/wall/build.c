#include "gpu/wall/build.h"

#include "gpu/wall/bubblewrap.h"
#include "gpu/wall/devices.h"
#include "gpu/wall/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

enum { DOOR_SECONDS = 30 };

/* ---- making it ---- */

/* Of each process, where no group bounds all of them together; 0: not limited. Libraries reserve more than they use, and a
 * GPU's driver reserves more than any machine has. */
static size_t address_space_of(const fa_wall_terms *terms, const fa_wall_cgroup *g) {
  const bool bounded = fa_layer_in(terms->layers, FA_LAYER_LIMITS) && !g->version && !fa_wall_has_gpu();
  return bounded ? 2 * (terms->memory_bytes ? terms->memory_bytes : fa_wall_memory_bytes()) : 0;
}

static void add_door(const fa_wall_terms *terms, const fa_wall_view *view, const char *command,
                     const fa_wall_cgroup *g, fa_wall_words *to) {
  char namespaces[256];
  fa_wall_namespaces_text(namespaces, sizeof namespaces);
  fa_wall_add(to, "/proc/self/fd/%d", FA_WALL_FD_PROGRAM);
  fa_wall_add(to, "%s", FA_WALL_DOOR);
  fa_wall_add(to, "%u", terms->layers);
  fa_wall_add(to, "%zu", address_space_of(terms, g));
  fa_wall_add(to, "%s", namespaces);
  fa_wall_add(to, "%s", view->judge);
  fa_wall_add(to, "%s", command);
}

static void describe(fa_wall *w, const fa_wall_terms *terms, const fa_wall_view *view,
                     const char *why_no_cgroup) {
  size_t used = 0;
  char limits[300];
  if (fa_layer_in(w->layers, FA_LAYER_LIMITS)) {
    fa_wall_limits_text(&w->cgroup, address_space_of(terms, &w->cgroup), why_no_cgroup, limits,
                        sizeof limits);
    used = (size_t)snprintf(w->text, sizeof w->text, "limits: %s", limits);
  }
  if (!fa_layer_in(w->layers, FA_LAYER_FILES)) return;
  for (int i = 0; i < view->shown.n && used < sizeof w->text; ++i)
    used += (size_t)snprintf(w->text + used, sizeof w->text - used, "%s%s",
                             i      ? ", "
                             : used ? "; it may read "
                                    : "it may read ",
                             view->shown.v[i]);
  for (int i = 0; i < terms->n_hide && used < sizeof w->text; ++i)
    used += (size_t)snprintf(w->text + used, sizeof w->text - used, "%s%s", i ? ", " : ", but not ",
                             terms->hide[i]);
}

/* A group has to be emptied before it can be removed, which is the business of another layer. */
static void make_cgroup(const fa_wall_terms *terms, fa_wall *w, char *why, size_t size) {
  snprintf(why, size, "a cgroup needs the layer processes");
  if (fa_layer_in(w->layers, FA_LAYER_LIMITS) && fa_layer_in(w->layers, FA_LAYER_PROCESSES))
    fa_wall_cgroup_make(&w->cgroup, terms->memory_bytes ? terms->memory_bytes : fa_wall_memory_bytes(), why,
                        size);
}

/* A limit that was asked for is left out with its layer, and never in silence. */
static fa_status check_memory(const fa_wall_terms *terms, const fa_wall *w, const char *why, fa_error *err) {
  if (!terms->memory_bytes || !fa_layer_in(terms->layers, FA_LAYER_LIMITS)) return FA_OK;
  if (w->cgroup.version || address_space_of(terms, &w->cgroup)) return FA_OK;
  return fa_fail(
      err, FA_ERR_INPUT,
      "--memory-limit: no cgroup can be had here (%s), and without one a process that may use a GPU "
      "cannot be limited; leave the option out",
      why);
}

fa_status fa_wall_make(const fa_wall_terms *terms, const char *command, const char *exchange, fa_wall *out,
                       fa_error *err) {
  fa_wall_view view;
  char why[300];
  *out = (fa_wall){.layers = terms->layers, .program = -1, .text = ""};
  fa_status status = fa_wall_view_make(terms, command, &view, err);
  if (status != FA_OK) return status;
  if (fa_layer_in(terms->layers, FA_LAYER_MEMORY)) exchange = NULL;
  status = fa_bubblewrap_arguments(terms, &view, exchange, &out->arguments, err);
  out->program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (status == FA_OK && out->program < 0)
    status = fa_fail(err, FA_ERR_IO, "/proc/self/exe: %s", strerror(errno));
  if (status == FA_OK) {
    make_cgroup(terms, out, why, sizeof why);
    status = check_memory(terms, out, why, err);
    add_door(terms, &view, command, &out->cgroup, &out->arguments);
    describe(out, terms, &view, why);
    if (fa_layer_in(terms->layers, FA_LAYER_ENVIRONMENT))
      fa_wall_environment(fa_layer_in(terms->layers, FA_LAYER_FILES) ? &view : NULL, &out->environment);
    else
      fa_wall_add_all(&out->environment, (const char *const *)environ);
    if (status == FA_OK && (out->arguments.failed || out->environment.failed))
      status = fa_fail(err, FA_ERR_MEMORY, "out of memory");
  }
  fa_wall_view_free(&view);
  if (status != FA_OK) fa_wall_free(out);
  return status;
}

void fa_wall_free(fa_wall *w) {
  if (w->program >= 0) close(w->program);
  fa_wall_words_free(&w->arguments);
  fa_wall_words_free(&w->environment);
  w->program = -1;
}

/* ---- starting it ---- */

void fa_wall_enter(const fa_wall *w, const int fd[FA_WALL_N_FDS]) {
  int high[FA_WALL_N_FDS]; /* above all numbers that are taken below */
  for (int i = 0; i < FA_WALL_N_FDS; ++i) {
    const int from = i == FA_WALL_FD_PROGRAM ? w->program : fd[i];
    high[i] = from >= 0 ? fcntl(from, F_DUPFD_CLOEXEC, FA_WALL_N_FDS) : -1;
  }
  for (int i = 0; i < FA_WALL_N_FDS; ++i)
    if (high[i] >= 0 && dup2(high[i], i) < 0) _exit(126);
  if (close_range(FA_WALL_N_FDS, ~0u, 0) != 0)
    for (int i = FA_WALL_N_FDS; i < 65536; ++i) close(i);
  if (!fa_wall_cgroup_enter(&w->cgroup)) _exit(126);
  execvpe(w->arguments.v[0], w->arguments.v, w->environment.v);
  _exit(127);
}

fa_status fa_wall_await(const fa_wall *w, int report, fa_error *err) {
  fa_wall_report said = {.magic = 0, .fault = -1, .why = ""};
  struct pollfd wait = {.fd = report, .events = POLLIN};
  int ready;
  while ((ready = poll(&wait, 1, DOOR_SECONDS * 1000)) < 0 && errno == EINTR) {}
  const ssize_t got = ready > 0 ? read(report, &said, sizeof said) : 0;
  if (got != (ssize_t)sizeof said || said.magic != FA_WALL_MAGIC)
    return fa_bubblewrap_diagnose(w->layers, err);
  if (said.fault < 0) return FA_OK;
  said.why[sizeof said.why - 1] = 0;
  return fa_fail(err, FA_ERR_INPUT, "the layer %s does not hold: %s; --without %s leaves it out",
                 fa_layers[said.fault].name, said.why, fa_layers[said.fault].name);
}
