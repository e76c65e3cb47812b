#include "fuzz/probe/apart.h"

#include "fuzz/probe/run.h"
#include "report/text/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Lies in memory that both processes see: what the child has found is there when it is gone. */
typedef struct shared {
  probe state[FA_PROBE_DTYPES];
  fa_probe_reports out;
  int at; /* the element type that is being asked about */
  bool opened, finished;
  fa_status status; /* of opening it */
  char why_not[256];
} shared;

typedef struct watch {
  shared *s;
  double timeout_s, started, said;
  bool progress;
  bool timed_out; /* the last process, in a call */
  int failures;
} watch;

enum { SLICE_MS = 100 };
#define FIRST_LINE_S 2.0
#define LINE_EVERY_S 5.0

/* ---- the child ---- */

static void ask_all(shared *s, const fa_backend *backend, void *self) {
  for (; s->at < FA_PROBE_DTYPES; ++s->at) {
    probe *x = &s->state[s->at];
    if (!x->kinds) continue;
    probe_reopen(x, backend, self);
    while (probe_step(x)) {}
  }
}

static void child(shared *s, const fa_choice *choice) {
  const fa_backend *backend = choice->backend;
  void *self = NULL;
  fa_error err = {""};
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  s->status = fa_backend_open(backend, choice->arg, fa_choice_terms(choice), &self, &err);
  if (s->status == FA_OK) {
    if (backend->prepare) backend->prepare(self);
    s->opened = true;
    ask_all(s, backend, self);
    backend->close(self);
  } else {
    snprintf(s->why_not, sizeof s->why_not, "%.250s", err.text);
  }
  atomic_signal_fence(memory_order_seq_cst);
  s->finished = true;
  _exit(0);
}

/* ---- the parent ---- */

static void say_progress(watch *w) {
  const double now = fa_seconds_now();
  const shared *s = w->s;
  if (!w->progress || !s->opened || s->at >= FA_PROBE_DTYPES || now - w->started < FIRST_LINE_S) return;
  if (now - w->said < LINE_EVERY_S) return;
  const probe *x = &s->state[s->at];
  w->said = now;
  fprintf(stderr, "probe: %s, %d calls, %.0f s; now %s\n", fa_dtype_name(x->dtype), x->r->n_calls,
          now - w->started, probe_step_field(x));
}

/* Until the process has ended; false: a call took too long, and the process with it. fd: closes with the process. */
static bool wait_for(watch *w, pid_t pid, int fd) {
  const shared *s = w->s;
  const double opening = fa_seconds_now();
  for (bool over = false; !over;) {
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    over = poll(&wait, 1, SLICE_MS) > 0;
    say_progress(w);
    const double since = s->at < FA_PROBE_DTYPES ? s->state[s->at].active : fa_seconds_now();
    if (over || fa_seconds_now() - (since > opening ? since : opening) < w->timeout_s) continue;
    kill(pid, SIGKILL);
    return false;
  }
  return true;
}

/* One process, from where the last one ended. False: it could not be made. */
static bool run_once(watch *w, const fa_choice *choice, char *reason, size_t size) {
  int ends[2] = {-1, -1}, status = 0;
  fflush(NULL);
  w->s->opened = w->s->finished = false;
  const pid_t pid = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
  if (pid == 0) child(w->s, choice);
  if (ends[1] >= 0) close(ends[1]);
  const bool in_time = pid > 0 && wait_for(w, pid, ends[0]);
  if (ends[0] >= 0) close(ends[0]);
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  w->timed_out = pid > 0 && !in_time;
  if (in_time)
    snprintf(reason, size, "the subject crashed");
  else
    snprintf(reason, size, "the call ran out of time (%.3g s)", w->timeout_s);
  return pid > 0;
}

static void give_up(watch *w, const char *reason) {
  shared *s = w->s;
  char why[160];
  snprintf(why, sizeof why, "given up after %d question%s without an answer: %s", w->failures,
           w->failures == 1 ? "" : "s", reason);
  for (; s->at < FA_PROBE_DTYPES; ++s->at)
    if (s->state[s->at].kinds) probe_give_up(&s->state[s->at], why);
}

/* Processes until every question has had its turn. */
static fa_status ask_in_turn(watch *w, const fa_choice *choice, fa_error *err) {
  shared *s = w->s;
  char reason[96] = "";
  while (s->at < FA_PROBE_DTYPES) {
    if (!run_once(w, choice, reason, sizeof reason))
      return fa_fail(err, FA_ERR_DEVICE, "no process could be made for the probe");
    if (s->finished && s->status != FA_OK) return fa_fail(err, s->status, "%s", s->why_not);
    if (s->finished) break;
    if (!s->opened) return fa_fail(err, FA_ERR_DEVICE, "%s while it was opened", reason);
    if (s->at >= FA_PROBE_DTYPES) break; /* it crashed at the end: everything has been asked */
    /* One that does not come back from its first call hangs: asking it in other ways would take as long again. */
    const bool hangs = w->timed_out && !s->state[s->at].r->usable;
    ++w->failures;
    if (!hangs) probe_skip_step(&s->state[s->at], reason);
    if (hangs || w->failures >= FA_PROBE_MAX_FAILURES) give_up(w, reason);
  }
  for (int t = 0; t < FA_PROBE_DTYPES; ++t)
    if (s->out.of[t].usable) return FA_OK;
  return w->failures ? fa_fail(err, FA_ERR_DEVICE, "%s under the probe's questions", reason) : FA_OK;
}

fa_status fa_probe_apart(const fa_choice *choice, const unsigned kinds[FA_PROBE_DTYPES], double timeout_s,
                         bool progress, fa_probe_reports *out, fa_error *err) {
  shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  memset(out, 0, sizeof *out);
  if (s == MAP_FAILED) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  for (int t = 0; t < FA_PROBE_DTYPES; ++t)
    if (kinds[t]) probe_begin(&s->state[t], (fa_dtype)t, kinds[t], &s->out.of[t]);
  watch w = {.s = s, .timeout_s = timeout_s, .started = fa_seconds_now(), .progress = progress};
  const fa_status status = ask_in_turn(&w, choice, err);
  *out = s->out;
  munmap(s, sizeof *s);
  return status;
}
