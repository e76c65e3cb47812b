#include "fuzz/workers/pool.h"

#include "fuzz/workers/process.h"
#include "fuzz/workers/wire.h"
#include "report/text/progress.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* An item that was handed out and whose result has not been passed on. */
typedef struct pending {
  int64_t item;
  char *bytes; /* packed result, NULL = still running */
  size_t n_bytes;
  int n_kills; /* workers killed from outside while running it */
} pending;

/* No misbehaviour of a subject raises SIGKILL: the kernel does when memory is short, or a person. Such an
 * item is restarted, up to this many times. */
#define MAX_KILLS 3

/* Of the results that wait for their turn, as FA_POOL_MAX_PENDING. */
#define MAX_WAITING_BYTES ((size_t)512 << 20)

struct fa_pool {
  const fa_pool_config *c;
  fa_worker *w;
  pending queue[FA_POOL_MAX_PENDING]; /* ring: slot s at s % FA_POOL_MAX_PENDING */
  int64_t n_given, n_passed_on;
  size_t waiting_bytes; /* of the results in the queue */
  bool no_more;
  struct sigaction old_int, old_term, old_pipe;
};

static volatile sig_atomic_t interrupt_signal;
static double interrupted_at; /* the signal handler's own */

/* timeout and batch systems send one request twice: to the process and to its group. */
#define SAME_REQUEST_S 0.1

static void on_interrupt(int sig) {
  const double now = fa_seconds_now();
  if (interrupt_signal && now - interrupted_at > SAME_REQUEST_S) _exit(128 + sig); /* workers die with us */
  if (!interrupt_signal) interrupted_at = now;
  interrupt_signal = sig;
}

static pending *slot_at(fa_pool *p, int64_t slot) {
  return &p->queue[slot % FA_POOL_MAX_PENDING];
}

static fa_status finish_slot(fa_pool *p, int64_t slot, fa_result *r, fa_error *err) {
  pending *q = slot_at(p, slot);
  if (p->c->arrived) p->c->arrived(p->c->ctx, q->item, r);
  q->bytes = fa_wire_pack(r, &q->n_bytes);
  if (q->bytes) p->waiting_bytes += q->n_bytes;
  return q->bytes ? FA_OK : fa_fail(err, FA_ERR_MEMORY, "out of memory");
}

static void describe_death(const fa_pool *p, int wait_status, fa_result *r) {
  r->state = FA_CRASH;
  if (!p->c->one_try && WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL) {
    r->state = FA_ERROR;
    snprintf(r->reason, sizeof r->reason, "the process was killed (SIGKILL) %d times; out of memory?",
             MAX_KILLS);
  } else if (WIFSIGNALED(wait_status)) {
    int sig = WTERMSIG(wait_status);
    snprintf(r->reason, sizeof r->reason, "the process died of SIG%s (%s)",
             sigabbrev_np(sig) ? sigabbrev_np(sig) : "?", strsignal(sig));
  } else {
    snprintf(r->reason, sizeof r->reason, "the process ended with status %d while running the case",
             WEXITSTATUS(wait_status));
  }
}

static bool give_item(fa_pool *p, fa_worker *w, int64_t slot) {
  int64_t item = slot_at(p, slot)->item;
  w->slot = slot;
  w->started = fa_seconds_now();
  return fa_worker_assign(w, item);
}

/* True: the worker was killed from outside, and its item is retried. */
static bool was_killed(fa_pool *p, int64_t slot, int wait_status) {
  return !p->c->one_try && WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL &&
         ++slot_at(p, slot)->n_kills < MAX_KILLS;
}

/* The worker died, is late, or sent nonsense: records that for its case, and replaces the worker. */
static fa_status lose_worker(fa_pool *p, fa_worker *w, bool late, const char *damage, fa_error *err) {
  double seconds = fa_seconds_now() - w->started;
  int64_t slot = w->slot;
  int wait_status = fa_worker_stop(w, late || damage);
  fa_status status = FA_OK;
  if (slot >= 0 && !late && !damage && was_killed(p, slot, wait_status)) {
    status = fa_worker_start(p->c, p->w, w, err);
    if (status == FA_OK) give_item(p, w, slot);
    return status;
  }
  if (slot >= 0) {
    fa_result *r = malloc(sizeof *r);
    if (!r) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
    fa_result_init(r);
    p->c->identify(p->c->ctx, slot_at(p, slot)->item, r);
    r->seconds = seconds;
    if (late) {
      r->state = FA_HANG;
      snprintf(r->reason, sizeof r->reason, "not done after %.3g s: killed", p->c->timeout_s);
    } else if (damage) {
      r->state = FA_CRASH;
      snprintf(r->reason, sizeof r->reason, "%s", damage);
    } else {
      describe_death(p, wait_status, r);
    }
    status = finish_slot(p, slot, r, err);
    fa_result_free(r);
    free(r);
  }
  if (status == FA_OK) status = fa_worker_start(p->c, p->w, w, err);
  return status;
}

/* A complete answer goes into the queue until the items before it are done. */
static fa_status take_answer(fa_pool *p, fa_worker *w, const char *bytes, size_t n_bytes, fa_error *err) {
  fa_result *r = malloc(sizeof *r);
  if (!r) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  fa_result_init(r);
  if (fa_wire_unpack(bytes, n_bytes, r, err) != FA_OK) {
    p->c->identify(p->c->ctx, slot_at(p, w->slot)->item, r);
    r->state = FA_CRASH;
    snprintf(r->reason, sizeof r->reason, "the worker's answer is damaged");
  }
  fa_status status = finish_slot(p, w->slot, r, err);
  fa_result_free(r);
  free(r);
  return status;
}

/* Reads what the worker has sent; FA_OK also if its answer is not complete yet. */
static fa_status receive(fa_pool *p, fa_worker *w, fa_error *err) {
  for (;;) {
    if (w->capacity - w->n_bytes < 65536) {
      char *bigger = realloc(w->bytes, w->capacity + (1 << 18));
      if (!bigger) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
      w->bytes = bigger;
      w->capacity += 1 << 18;
    }
    ssize_t got = read(w->from, w->bytes + w->n_bytes, w->capacity - w->n_bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return FA_OK;
    if (got <= 0) return lose_worker(p, w, false, NULL, err);
    w->n_bytes += (size_t)got;
    uint64_t length = 0;
    if (w->n_bytes < sizeof length) continue;
    memcpy(&length, w->bytes, sizeof length);
    const bool spent = length & FA_WORKER_SPENT;
    length &= ~FA_WORKER_SPENT;
    if (length > FA_WIRE_MAX_BYTES || w->slot < 0 || w->n_bytes > length + sizeof length)
      return lose_worker(p, w, false, "the worker's answer is damaged", err);
    if (w->n_bytes < length + sizeof length) continue;
    fa_status status = take_answer(p, w, w->bytes + sizeof length, (size_t)length, err);
    if (status != FA_OK) return status;
    w->n_bytes = 0;
    w->slot = -1;
    if (spent) fa_worker_stop(w, true); /* it might never end by itself; give_work starts another */
    return FA_OK;
  }
}

static bool may_run_ahead(const fa_pool *p) {
  return p->n_given - p->n_passed_on < FA_POOL_MAX_PENDING && p->waiting_bytes < MAX_WAITING_BYTES;
}

static fa_status give_work(fa_pool *p, fa_error *err) {
  for (int i = 0; i < p->c->n_workers; ++i) {
    fa_worker *w = &p->w[i];
    if (w->slot >= 0 || p->no_more || !may_run_ahead(p)) continue;
    int64_t item = 0;
    if (interrupt_signal || !p->c->next(p->c->ctx, &item)) {
      p->no_more = true;
      break;
    }
    if (w->pid == 0) {
      fa_status status = fa_worker_start(p->c, p->w, w, err);
      if (status != FA_OK) return status;
    }
    *slot_at(p, p->n_given) = (pending){.item = item};
    give_item(p, w, p->n_given++);
  }
  return FA_OK;
}

static fa_status pass_on(fa_pool *p, fa_error *err) {
  fa_result *r = NULL;
  fa_status status = FA_OK;
  while (status == FA_OK && p->n_passed_on < p->n_given && slot_at(p, p->n_passed_on)->bytes) {
    pending *q = slot_at(p, p->n_passed_on);
    if (!r) r = malloc(sizeof *r);
    if (!r) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
    fa_result_init(r);
    status = fa_wire_unpack(q->bytes, q->n_bytes, r, err);
    free(q->bytes);
    q->bytes = NULL;
    p->waiting_bytes -= q->n_bytes;
    p->n_passed_on++;
    if (status == FA_OK && !p->c->done(p->c->ctx, q->item, r)) p->no_more = true;
    fa_result_free(r);
  }
  free(r);
  return status;
}

/* Waits for answers, at most until the next deadline or a fifth of a second. */
static fa_status wait_for_answers(fa_pool *p, fa_error *err) {
  struct pollfd fds[1024];
  int index[1024], n = 0;
  for (int i = 0; i < p->c->n_workers && n < 1024; ++i) {
    if (p->w[i].slot < 0) continue;
    fds[n] = (struct pollfd){.fd = p->w[i].from, .events = POLLIN};
    index[n++] = i;
  }
  if (poll(fds, (nfds_t)n, 200) < 0 && errno != EINTR)
    return fa_fail(err, FA_ERR_IO, "poll: %s", strerror(errno));
  double now = fa_seconds_now();
  for (int k = 0; k < n; ++k) {
    fa_worker *w = &p->w[index[k]];
    fa_status status = FA_OK;
    if (fds[k].revents)
      status = receive(p, w, err);
    else if (p->c->timeout_s > 0 && now - w->started > p->c->timeout_s)
      status = lose_worker(p, w, true, NULL, err);
    if (status != FA_OK) return status;
  }
  return FA_OK;
}

static fa_status run_workers(fa_pool *p, fa_error *err) {
  fa_status status = FA_OK;
  while (status == FA_OK) {
    status = give_work(p, err);
    if (status != FA_OK || (p->no_more && p->n_passed_on == p->n_given)) break;
    status = wait_for_answers(p, err);
    if (status == FA_OK) status = pass_on(p, err);
    p->c->tick(p->c->ctx);
  }
  return status;
}

static fa_status run_in_process(const fa_pool_config *c, fa_error *err) {
  fa_result *r = malloc(sizeof *r);
  if (!r) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  int64_t item;
  bool go_on = true;
  while (go_on && !interrupt_signal && c->next(c->ctx, &item)) {
    fa_result_init(r);
    c->run(c->ctx, item, r);
    if (c->arrived) c->arrived(c->ctx, item, r);
    go_on = c->done(c->ctx, item, r);
    fa_result_free(r);
    c->tick(c->ctx);
  }
  free(r);
  return FA_OK;
}

fa_status fa_pool_open(const fa_pool_config *config, fa_pool **out, fa_error *err) {
  struct sigaction action = {.sa_handler = on_interrupt}, ignore = {.sa_handler = SIG_IGN};
  fa_pool *p = calloc(1, sizeof *p);
  if (p) p->w = calloc((size_t)config->n_workers, sizeof *p->w);
  *out = p;
  if (!p || !p->w) {
    free(p);
    *out = NULL;
    return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  }
  p->c = config;
  for (int i = 0; i < config->n_workers; ++i) p->w[i].slot = -1;
  interrupt_signal = 0;
  sigaction(SIGINT, &action, &p->old_int);
  sigaction(SIGTERM, &action, &p->old_term);
  sigaction(SIGPIPE, &ignore, &p->old_pipe);
  return FA_OK;
}

fa_status fa_pool_drain(fa_pool *p, int *interrupted, fa_error *err) {
  p->no_more = false;
  fa_status status = p->c->in_process ? run_in_process(p->c, err) : run_workers(p, err);
  *interrupted = interrupt_signal;
  return status;
}

void fa_pool_close(fa_pool *p) {
  if (!p) return;
  for (int i = 0; i < p->c->n_workers; ++i) fa_worker_dismiss(&p->w[i]);
  for (int i = 0; i < p->c->n_workers; ++i) fa_worker_stop(&p->w[i], p->w[i].slot >= 0);
  for (int i = 0; i < FA_POOL_MAX_PENDING; ++i) free(p->queue[i].bytes);
  sigaction(SIGINT, &p->old_int, NULL);
  sigaction(SIGTERM, &p->old_term, NULL);
  sigaction(SIGPIPE, &p->old_pipe, NULL);
  free(p->w);
  free(p);
}

fa_status fa_pool_run(const fa_pool_config *config, int *interrupted, fa_error *err) {
  fa_pool *p;
  *interrupted = 0;
  fa_status status = fa_pool_open(config, &p, err);
  if (status != FA_OK) return status;
  status = fa_pool_drain(p, interrupted, err);
  fa_pool_close(p);
  return status;
}
