/* The processes of a pool: what runs in them, and how they start and end. */
#include "fuzz/workers/process.h"

#include "fuzz/workers/wire.h"
#include "report/text/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static bool read_all(int fd, void *to, size_t n) {
  char *at = to;
  while (n > 0) {
    ssize_t got = read(fd, at, n);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    n -= (size_t)got;
  }
  return true;
}

static bool write_all(int fd, const void *from, size_t n) {
  const char *at = from;
  while (n > 0) {
    ssize_t put = write(fd, at, n);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    at += put;
    n -= (size_t)put;
  }
  return true;
}

/* ---- in the worker ---- */

/* If memory runs out, the kernel should kill a worker, which costs one case, rather than the parent. */
static void offer_to_oom_killer(void) {
  int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  if (write(fd, "500", 3) < 0) {} /* the kernel then chooses freely */
  close(fd);
}

/* A thread that runs one item after another. */
typedef struct lane {
  const fa_pool_config *c;
  int index, in, out;
  pthread_mutex_t *writing; /* answers one after another */
  pthread_t thread;
} lane;

/* What the parent sends, in one piece, so that each lane reads one as a whole. */
typedef struct order {
  int64_t slot, item;
} order;

static bool answer(const lane *x, const fa_worker_answer *head, const char *bytes) {
  pthread_mutex_lock(x->writing);
  const bool sent = write_all(x->out, head, sizeof *head) && write_all(x->out, bytes, (size_t)head->n_bytes);
  pthread_mutex_unlock(x->writing);
  return sent;
}

static void *run_lane(void *arg) {
  const lane *x = arg;
  const fa_pool_config *c = x->c;
  order o;
  bool spent = false;
  fa_result *r = malloc(sizeof *r);
  if (!r) _exit(3);
  while (!spent && read_all(x->in, &o, sizeof o)) {
    fa_result_init(r);
    c->run(c->ctx, x->index, o.item, r);
    size_t n = 0;
    char *bytes = fa_wire_pack(r, &n);
    spent = c->spent && c->spent(c->ctx, x->index);
    const fa_worker_answer head = {.n_bytes = n, .slot = o.slot, .spent = spent};
    if (!bytes || !answer(x, &head, bytes)) _exit(3);
    free(bytes);
    fa_result_free(r);
  }
  free(r);
  return NULL;
}

/* The first in this thread. */
static void run_lanes(const fa_pool_config *c, int n_lanes, int in, int out) {
  enum { STACK = 16 << 20 };
  pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
  pthread_attr_t attributes;
  lane lanes[FA_POOL_MAX_LANES];
  if (c->begin) c->begin(c->ctx, n_lanes);
  if (pthread_attr_init(&attributes) != 0 || pthread_attr_setstacksize(&attributes, STACK) != 0) _exit(3);
  for (int i = 0; i < n_lanes; ++i) {
    lanes[i] = (lane){.c = c, .index = i, .in = in, .out = out, .writing = &writing};
    if (i > 0 && pthread_create(&lanes[i].thread, &attributes, run_lane, &lanes[i]) != 0) _exit(3);
  }
  run_lane(&lanes[0]);
  for (int i = 1; i < n_lanes; ++i) pthread_join(lanes[i].thread, NULL);
  pthread_attr_destroy(&attributes);
}

static void worker_main(const fa_pool_config *c, int n_lanes, int in, int out, pid_t parent) {
  signal(SIGINT, SIG_IGN); /* a terminal's ^C or a batch system's SIGTERM reaches all; the parent decides */
  signal(SIGTERM, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
  offer_to_oom_killer();
  run_lanes(c, n_lanes, in, out);
  fflush(NULL);
  _exit(0);
}

/* ---- in the parent ---- */

static void set_idle(fa_worker *w) {
  for (int i = 0; i < FA_POOL_MAX_LANES; ++i) w->job[i] = (fa_worker_job){.slot = -1};
}

fa_status fa_worker_start(const fa_pool_config *c, int n_lanes, fa_worker *all, int n, fa_worker *w,
                          fa_error *err) {
  int down[2], up[2];
  if (pipe2(down, O_CLOEXEC) != 0) return fa_fail(err, FA_ERR_IO, "pipe: %s", strerror(errno));
  if (pipe2(up, O_CLOEXEC) != 0) {
    close(down[0]), close(down[1]);
    return fa_fail(err, FA_ERR_IO, "pipe: %s", strerror(errno));
  }
  fflush(NULL); /* otherwise the child would print our buffered text again */
  pid_t parent = getpid(), pid = fork();
  if (pid == 0) {
    /* Closes the other workers' pipe ends, because the end of a pipe is how a dead worker is noticed. */
    for (int i = 0; i < n; ++i) {
      if (all[i].pid == 0) continue;
      close(all[i].to);
      close(all[i].from);
    }
    close(down[1]);
    close(up[0]);
    worker_main(c, n_lanes, down[0], up[1], parent);
  }
  close(down[0]);
  close(up[1]);
  if (pid < 0) {
    close(down[1]), close(up[0]);
    return fa_fail(err, FA_ERR_IO, "fork: %s", strerror(errno));
  }
  fcntl(up[0], F_SETFL, O_NONBLOCK);
  free(w->bytes);
  *w = (fa_worker){.pid = pid, .to = down[1], .from = up[0], .n_lanes = n_lanes};
  set_idle(w);
  return FA_OK;
}

void fa_worker_dismiss(fa_worker *w) {
  if (w->pid == 0 || w->to < 0) return;
  close(w->to);
  w->to = -1;
}

int fa_worker_stop(fa_worker *w, bool kill_it) {
  int wait_status = 0;
  if (w->pid == 0) return 0;
  fa_worker_dismiss(w);
  if (kill_it) kill(w->pid, SIGKILL);
  while (waitpid(w->pid, &wait_status, 0) < 0 && errno == EINTR) {}
  close(w->from);
  free(w->bytes);
  *w = (fa_worker){.pid = 0};
  set_idle(w);
  return wait_status;
}

fa_worker_job *fa_worker_job_of(fa_worker *w, int64_t slot) {
  for (int i = 0; i < w->n_lanes; ++i)
    if (w->job[i].slot == slot) return &w->job[i];
  return NULL;
}

int fa_worker_n_busy(const fa_worker *w) {
  int n = 0;
  for (int i = 0; i < w->n_lanes; ++i) n += w->job[i].slot >= 0;
  return n;
}

void fa_worker_assign(fa_worker *w, int64_t slot, int64_t item) {
  const order o = {slot, item};
  fa_worker_job *job = fa_worker_job_of(w, -1);
  FA_ASSERT(job);
  *job = (fa_worker_job){slot, item, fa_seconds_now()};
  write_all(w->to, &o, sizeof o); /* a dead reader is noticed by the end of its other pipe */
}
