/* The processes of a pool: what runs in them, and how they start and end. */
#include "fuzz/workers/process.h"

#include "fuzz/workers/wire.h"

#include <errno.h>
#include <fcntl.h>
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

static void worker_main(const fa_pool_config *c, int in, int out, pid_t parent) {
  signal(SIGINT, SIG_IGN); /* a terminal's ^C or a batch system's SIGTERM reaches all; the parent decides */
  signal(SIGTERM, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
  offer_to_oom_killer();
  int64_t item;
  fa_result *r = malloc(sizeof *r);
  if (!r) _exit(3);
  while (read_all(in, &item, sizeof item)) {
    fa_result_init(r);
    c->run(c->ctx, item, r);
    size_t n = 0;
    char *bytes = fa_wire_pack(r, &n);
    const bool spent = c->spent && c->spent(c->ctx);
    uint64_t length = n | (spent ? FA_WORKER_SPENT : 0);
    if (!bytes || !write_all(out, &length, sizeof length) || !write_all(out, bytes, n)) _exit(3);
    free(bytes);
    fa_result_free(r);
    if (spent) break;
  }
  free(r);
  fflush(NULL);
  _exit(0);
}

/* ---- in the parent ---- */

fa_status fa_worker_start(const fa_pool_config *c, fa_worker *all, fa_worker *w, fa_error *err) {
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
    for (int i = 0; i < c->n_workers; ++i) {
      if (all[i].pid == 0) continue;
      close(all[i].to);
      close(all[i].from);
    }
    close(down[1]);
    close(up[0]);
    worker_main(c, down[0], up[1], parent);
  }
  close(down[0]);
  close(up[1]);
  if (pid < 0) {
    close(down[1]), close(up[0]);
    return fa_fail(err, FA_ERR_IO, "fork: %s", strerror(errno));
  }
  fcntl(up[0], F_SETFL, O_NONBLOCK);
  free(w->bytes);
  *w = (fa_worker){.pid = pid, .to = down[1], .from = up[0], .slot = -1};
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
  *w = (fa_worker){.slot = -1};
  return wait_status;
}

bool fa_worker_assign(fa_worker *w, int64_t item) {
  return write_all(w->to, &item, sizeof item); /* a dead reader is noticed by the end of its other pipe */
}
