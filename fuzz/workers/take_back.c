/* What comes back of an item: its result, or what became of its worker. */
#include "fuzz/workers/parts.h"

#include "fuzz/workers/wire.h"
#include "report/text/progress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* No misbehaviour of a subject raises SIGKILL: the kernel does when memory is short, or a person. Such an
 * item is restarted, up to this many times. */
#define MAX_KILLS 3

static const char damaged[] = "the worker's answer is damaged";

static fa_result *new_result(fa_error *err) {
  fa_result *r = malloc(sizeof *r);
  if (r)
    fa_result_init(r);
  else
    fa_fail(err, FA_ERR_MEMORY, "out of memory");
  return r;
}

/* It goes into the queue until the items before it are done. */
static fa_status finish_slot(fa_pool *p, int64_t slot, fa_result *r, fa_error *err) {
  fa_pending *q = fa_pool_at(p, slot);
  if (p->c->arrived) p->c->arrived(p->c->ctx, q->item, r);
  q->bytes = fa_wire_pack(r, &q->n_bytes);
  if (q->bytes) p->waiting_bytes += q->n_bytes;
  return q->bytes ? FA_OK : fa_fail(err, FA_ERR_MEMORY, "out of memory");
}

/* ---- run again ---- */

static fa_status queue_again(fa_pool *p, fa_suspects *s, fa_error *err) {
  if (!s) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  for (int i = 0; i < s->n_again; ++i) {
    fa_pool_at(p, s->slot[i])->suspects = s;
    p->again[p->n_again++ % FA_POOL_MAX_PENDING] = s->slot[i];
  }
  return FA_OK;
}

/* All are back. */
static fa_status conclude(fa_pool *p, fa_suspects *s, fa_error *err) {
  fa_status status = FA_OK;
  fa_result *r = new_result(err);
  if (!r) return FA_ERR_MEMORY;
  for (int i = 0; status == FA_OK && i < s->n_again; ++i) {
    status = fa_suspects_result(s, i, p->c, r, err);
    if (status == FA_OK) status = finish_slot(p, s->slot[i], r, err);
    fa_pool_at(p, s->slot[i])->suspects = NULL;
    fa_result_free(r);
    fa_result_init(r);
  }
  free(r);
  fa_suspects_free(s);
  return status;
}

/* What an item came to where it ran alone, or where nothing went wrong. */
static fa_status settle(fa_pool *p, int64_t slot, fa_result *r, fa_error *err) {
  fa_suspects *s = fa_pool_at(p, slot)->suspects;
  if (!s) return finish_slot(p, slot, r, err);
  const fa_status status = fa_suspects_back(s, slot, r, err);
  return status == FA_OK && s->n_open == 0 ? conclude(p, s, err) : status;
}

/* ---- workers that are lost ---- */

static bool is_kill(int wait_status) {
  return WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL;
}

static void describe_death(const fa_pool *p, int wait_status, char *text, size_t size) {
  if (!p->c->one_try && is_kill(wait_status)) {
    snprintf(text, size, "the process was killed (SIGKILL) %d times; out of memory?", MAX_KILLS);
  } else if (WIFSIGNALED(wait_status)) {
    int sig = WTERMSIG(wait_status);
    snprintf(text, size, "the process died of SIG%s (%s)", sigabbrev_np(sig) ? sigabbrev_np(sig) : "?",
             strsignal(sig));
  } else {
    snprintf(text, size, "the process ended with status %d while running the case", WEXITSTATUS(wait_status));
  }
}

/* True: the worker was killed from outside, and its item is retried. */
static bool was_killed(fa_pool *p, int64_t slot, int wait_status) {
  return !p->c->one_try && is_kill(wait_status) && ++fa_pool_at(p, slot)->n_kills < MAX_KILLS;
}

static fa_status restart(fa_pool *p, fa_worker *w, int n_lanes, fa_error *err) {
  return fa_worker_start(p->c, n_lanes, p->w, p->n_shared + p->n_alone, w, err);
}

/* `what` happened to a worker of several lanes: all that it worked on is run again. */
static fa_status suspect_all(fa_pool *p, const fa_worker *w, bool excused, const char *what, fa_error *err) {
  if (fa_worker_n_busy(w) == 0) return FA_OK;
  fa_suspects *s = fa_suspects_of(w, -1, what);
  if (s) s->excused = excused;
  return queue_again(p, s, err);
}

/* Another is started when there is work. */
static fa_status lose_shared(fa_pool *p, fa_worker *w, const char *what, fa_error *err) {
  const fa_status status = suspect_all(p, w, false, what, err);
  fa_worker_stop(w, true);
  return status;
}

/* Of a worker that ran it alone. */
static fa_status record_loss(fa_pool *p, const fa_worker_job *job, fa_state state, const char *what,
                             fa_error *err) {
  fa_result *r = new_result(err);
  if (!r) return FA_ERR_MEMORY;
  p->c->identify(p->c->ctx, job->item, r);
  r->seconds = fa_seconds_now() - job->started;
  r->state = state;
  snprintf(r->reason, sizeof r->reason, "%s", what);
  const fa_status status = settle(p, job->slot, r, err);
  fa_result_free(r);
  free(r);
  return status;
}

static fa_status lose_alone(fa_pool *p, fa_worker *w, fa_state state, const char *what, fa_error *err) {
  const fa_worker_job job = w->job[0];
  fa_worker_stop(w, true);
  const fa_status status = job.slot >= 0 ? record_loss(p, &job, state, what, err) : FA_OK;
  return status == FA_OK ? restart(p, w, 1, err) : status;
}

static fa_status lose(fa_pool *p, fa_worker *w, fa_state state, const char *what, fa_error *err) {
  return w->n_lanes > 1 ? lose_shared(p, w, what, err) : lose_alone(p, w, state, what, err);
}

/* It sends nothing more. Records that for its case, and replaces the worker. */
static fa_status lose_dead(fa_pool *p, fa_worker *w, fa_error *err) {
  const fa_worker before = *w;
  const fa_worker_job job = before.job[0];
  char what[200];
  const int how = fa_worker_stop(w, false);
  fa_status status = FA_OK;
  describe_death(p, how, what, sizeof what);
  if (before.n_lanes > 1) return suspect_all(p, &before, is_kill(how), what, err);
  const bool retried = job.slot >= 0 && was_killed(p, job.slot, how);
  if (job.slot >= 0 && !retried)
    status = record_loss(p, &job, is_kill(how) && !p->c->one_try ? FA_ERROR : FA_CRASH, what, err);
  if (status == FA_OK) status = restart(p, w, 1, err);
  if (status == FA_OK && retried) fa_worker_assign(w, job.slot, job.item);
  return status;
}

fa_status fa_pool_lose_late(fa_pool *p, fa_worker *w, fa_error *err) {
  char what[64];
  snprintf(what, sizeof what, "not done after %.3g s: killed", p->c->timeout_s);
  return lose(p, w, FA_HANG, what, err);
}

/* ---- answers ---- */

/* In a worker of several lanes nothing that goes wrong is believed. */
static fa_status suspect(fa_pool *p, fa_worker *w, int64_t slot, const fa_result *r, bool spent,
                         fa_error *err) {
  char what[sizeof r->reason + 32];
  snprintf(what, sizeof what, "%s%s%s", fa_state_name(r->state), r->reason[0] ? ", " : "", r->reason);
  if (spent) return lose_shared(p, w, what, err);
  const fa_status status = queue_again(p, fa_suspects_of(w, slot, what), err);
  fa_worker_job_of(w, slot)->slot = -1;
  return status;
}

static fa_status take_answer(fa_pool *p, fa_worker *w, int64_t slot, const char *bytes, size_t n_bytes,
                             bool spent, fa_error *err) {
  fa_result *r = new_result(err);
  if (!r) return FA_ERR_MEMORY;
  if (fa_wire_unpack(bytes, n_bytes, r, err) != FA_OK) {
    p->c->identify(p->c->ctx, fa_worker_job_of(w, slot)->item, r);
    r->state = FA_CRASH;
    snprintf(r->reason, sizeof r->reason, "%s", damaged);
  }
  fa_status status = FA_OK;
  if (w->n_lanes > 1 && fa_is_suspect(r)) {
    status = suspect(p, w, slot, r, spent, err);
  } else {
    status = settle(p, slot, r, err);
    fa_worker_job_of(w, slot)->slot = -1;
    if (status == FA_OK && spent && w->n_lanes > 1)
      status = lose_shared(p, w, "the process can run nothing more", err);
    else if (spent)
      fa_worker_stop(w, true); /* it might never end by itself; another is started when there is work */
  }
  fa_result_free(r);
  free(r);
  return status;
}

static fa_status make_room(fa_worker *w, fa_error *err) {
  enum { PIECE = 1 << 18 };
  if (w->capacity - w->n_bytes >= PIECE / 4) return FA_OK;
  char *bigger = realloc(w->bytes, w->capacity + PIECE);
  if (!bigger) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  w->bytes = bigger;
  w->capacity += PIECE;
  return FA_OK;
}

/* The answers that are complete. A lane has no work before its answer is taken, so more than one is of several lanes. */
static fa_status take_answers(fa_pool *p, fa_worker *w, fa_error *err) {
  fa_status status = FA_OK;
  fa_worker_answer head;
  while (status == FA_OK && w->n_bytes >= sizeof head) {
    memcpy(&head, w->bytes, sizeof head);
    if (head.n_bytes > FA_WIRE_MAX_BYTES || head.slot < 0 || !fa_worker_job_of(w, head.slot))
      return lose(p, w, FA_CRASH, damaged, err);
    const size_t whole = sizeof head + (size_t)head.n_bytes;
    if (w->n_bytes < whole) break;
    if (w->n_bytes > whole && w->n_lanes == 1) return lose(p, w, FA_CRASH, damaged, err);
    const pid_t pid = w->pid;
    status = take_answer(p, w, head.slot, w->bytes + sizeof head, (size_t)head.n_bytes, head.spent != 0, err);
    if (w->pid != pid || !w->bytes) break; /* it was stopped */
    w->n_bytes -= whole;
    memmove(w->bytes, w->bytes + whole, w->n_bytes);
  }
  return status;
}

fa_status fa_pool_receive(fa_pool *p, fa_worker *w, fa_error *err) {
  for (;;) {
    fa_status status = make_room(w, err);
    if (status != FA_OK) return status;
    const ssize_t got = read(w->from, w->bytes + w->n_bytes, w->capacity - w->n_bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return FA_OK;
    if (got <= 0) return lose_dead(p, w, err);
    w->n_bytes += (size_t)got;
    const pid_t pid = w->pid;
    status = take_answers(p, w, err);
    if (status != FA_OK || w->pid != pid || w->n_bytes == 0) return status;
  }
}
