#include "fuzz/timing/participant.h"

#include "fuzz/machine/freeze.h"
#include "gpu/backends/plugin_backend.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* This program itself, as the child that does nothing. */
static fa_status spec_of_nothing(char *spec, size_t size, fa_error *err) {
  char self[280];
  const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  if (n <= 0 || (size_t)n >= sizeof self - 1 || memchr(self, '\'', (size_t)n))
    return fa_fail(err, FA_ERR_IO, "bench: this program's own path cannot be used");
  self[n] = 0;
  snprintf(spec, size, "exec:exec '%s' bench --backend null", self);
  return FA_OK;
}

static fa_status open_child(fa_participant *x, fa_error *err) {
  void *self = NULL;
  const fa_status status = fa_choice_open(&x->choice, &self, err);
  x->exec = self;
  return status;
}

fa_status fa_participant_open(fa_participant *x, fa_role role, const char *spec,
                              const fa_backend *const *backends, const fa_wall_terms *terms, fa_error *err) {
  char own[sizeof x->choice.spec];
  memset(x, 0, sizeof *x);
  x->role = role;
  fa_status status = role == FA_ROLE_NOTHING ? spec_of_nothing(own, sizeof own, err) : FA_OK;
  const fa_backend *named = role == FA_ROLE_RIVAL ? fa_backend_named(backends, spec) : NULL;
  const bool ours = role == FA_ROLE_NOTHING || (named && !fa_backend_is_foreign(named));
  if (status == FA_OK)
    status = fa_choose_untrusted(backends, role == FA_ROLE_NOTHING ? own : spec, ours ? NULL : terms,
                                 &x->choice, err);
  if (status != FA_OK) return status;
  snprintf(x->label, sizeof x->label, "%s", role == FA_ROLE_NOTHING ? "nothing" : spec);
  const bool child = x->choice.backend == &fa_backend_exec || x->choice.backend == &fa_backend_py ||
                     x->choice.backend == &fa_backend_served;
  if (child) return open_child(x, err);
  if (role == FA_ROLE_CANDIDATE)
    return fa_fail(err, FA_ERR_UNSUPPORTED,
                   "--backend %s: only a program of its own is timed so: exec:CMD or py:NAME", spec);
  return fa_own_start(&x->own, &x->choice, err);
}

void fa_participant_close(fa_participant *x) {
  fa_participant_freeze(x, false);
  if (x->exec) x->choice.backend->close(x->exec);
  fa_own_stop(&x->own);
  memset(x, 0, sizeof *x);
}

bool fa_participant_has_freezer(const fa_participant *x) {
  const fa_wall_cgroup *g = x->exec ? &x->exec->child.cgroup : NULL;
  return g && g->freezer < g->n;
}

/* A group that does not come to rest is let go, and its processes are told one by one. */
static void freeze_child(fa_participant *x, bool frozen) {
  const fa_exec_process *child = &x->exec->child;
  const bool rests = fa_wall_cgroup_freeze(&child->cgroup, frozen);
  if (frozen && !rests) fa_wall_cgroup_freeze(&child->cgroup, false);
  if (frozen ? !rests : x->by_signals) fa_freeze_children(child->supervisor, frozen);
  x->by_signals = frozen && !rests;
}

void fa_participant_freeze(fa_participant *x, bool frozen) {
  if (x->frozen == frozen) return;
  if (x->exec && x->exec->child.supervisor > 0) freeze_child(x, frozen);
  if (x->own.pid > 0) kill(x->own.pid, frozen ? SIGSTOP : SIGCONT);
  x->frozen = frozen;
}
