#include "fuzz/workers/pool.h"

#include "fuzz/workers/parts.h"
#include "fuzz/workers/wire.h"
#include "report/text/progress.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

bool fa_pool_interrupted(void) {
  return interrupt_signal != 0;
}

fa_pending *fa_pool_at(fa_pool *p, int64_t slot) {
  return &p->queue[slot % FA_POOL_MAX_PENDING];
}

static fa_status pass_on(fa_pool *p, fa_error *err) {
  fa_result *r = NULL;
  fa_status status = FA_OK;
  while (status == FA_OK && p->n_passed_on < p->n_given && fa_pool_at(p, p->n_passed_on)->bytes) {
    fa_pending *q = fa_pool_at(p, p->n_passed_on);
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

static bool is_late(const fa_pool *p, const fa_worker *w, double now) {
  for (int i = 0; p->c->timeout_s > 0 && i < w->n_lanes; ++i)
    if (w->job[i].slot >= 0 && now - w->job[i].started > p->c->timeout_s) return true;
  return false;
}

/* Waits for answers, at most until the next deadline or a fifth of a second. */
static fa_status wait_for_answers(fa_pool *p, fa_error *err) {
  struct pollfd fds[1024];
  int index[1024], n = 0;
  for (int i = 0; i < p->n_shared + p->n_alone && n < 1024; ++i) {
    if (fa_worker_n_busy(&p->w[i]) == 0) continue;
    fds[n] = (struct pollfd){.fd = p->w[i].from, .events = POLLIN};
    index[n++] = i;
  }
  if (poll(fds, (nfds_t)n, 200) < 0 && errno != EINTR)
    return fa_fail(err, FA_ERR_IO, "poll: %s", strerror(errno));
  double now = fa_seconds_now();
  for (int k = 0; k < n; ++k) {
    fa_worker *w = &p->w[index[k]];
    const bool answers = fds[k].revents != 0;
    fa_status status = answers ? fa_pool_receive(p, w, err) : FA_OK;
    if (status == FA_OK && (!answers || w->n_lanes > 1) && is_late(p, w, now))
      status = fa_pool_lose_late(p, w, err);
    if (status != FA_OK) return status;
  }
  return FA_OK;
}

static fa_status run_workers(fa_pool *p, fa_error *err) {
  fa_status status = FA_OK;
  while (status == FA_OK) {
    status = fa_pool_hand_out(p, err);
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
  if (c->begin) c->begin(c->ctx, 1);
  while (go_on && !interrupt_signal && c->next(c->ctx, &item)) {
    fa_result_init(r);
    c->run(c->ctx, 0, item, r);
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
  const int lanes = config->lanes > 1 ? config->lanes : 1;
  FA_ASSERT(lanes <= FA_POOL_MAX_LANES);
  if (p) p->n_shared = lanes > 1 ? (config->n_workers + lanes - 1) / lanes : 0;
  if (p) p->n_alone = config->n_workers;
  if (p) p->w = calloc((size_t)(p->n_shared + p->n_alone), sizeof *p->w);
  *out = p;
  if (!p || !p->w) {
    free(p);
    *out = NULL;
    return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  }
  p->c = config;
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
  const int n = p->n_shared + p->n_alone;
  for (int i = 0; i < n; ++i) fa_worker_dismiss(&p->w[i]);
  for (int i = 0; i < n; ++i) fa_worker_stop(&p->w[i], fa_worker_n_busy(&p->w[i]) > 0);
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
