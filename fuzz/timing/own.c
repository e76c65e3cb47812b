#include "fuzz/timing/own.h"

#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "gpu/cuda_backend/bench.h"
#include "report/text/progress.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WARM_RUNS = 2, TIMED_RUNS = 5 }; /* of a GPU, in one turn */

typedef struct request {
  uint64_t seed, bytes; /* so many bytes of JSON follow */
  unsigned passes;
  int n_threads;
} request;

typedef struct reply {
  fa_status status;
  double seconds;
  char text[300];
} reply;

static bool put(int fd, const void *bytes, size_t n) {
  for (size_t done = 0; done < n;) {
    const ssize_t more = send(fd, (const char *)bytes + done, n - done, MSG_NOSIGNAL);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) return false;
    done += (size_t)more;
  }
  return true;
}

static bool get(int fd, void *bytes, size_t n) {
  for (size_t done = 0; done < n;) {
    const ssize_t more = read(fd, (char *)bytes + done, n - done);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) return false;
    done += (size_t)more;
  }
  return true;
}

/* ---- the process ---- */

static fa_status time_on_gpu(const fa_choice *choice, const fa_case *c, const fa_tensors *t, unsigned passes,
                             double *seconds, fa_error *err) {
  fa_status status = FA_OK;
  *seconds = 0;
  for (int backward = 0; status == FA_OK && backward <= (passes & FA_PASS_BACKWARD ? 1 : 0); ++backward) {
    const fa_bench_options opt = {.device = choice->arg ? atoi(choice->arg) : 0,
                                  .n_warm = WARM_RUNS,
                                  .n_runs = TIMED_RUNS,
                                  .backward = backward};
    fa_bench_result r;
    status = fa_cuda_bench(&c->problem, t, &opt, &r, err);
    *seconds += r.median_us * 1e-6;
  }
  return status;
}

static fa_status time_here(const fa_choice *choice, void *self, const fa_case *c, const fa_tensors *t,
                           const request *q, double *seconds, fa_error *err) {
  const fa_run_options opt = {.passes = q->passes, .n_threads = q->n_threads};
  fa_outcome outcome;
  fa_tensors work;
  char why[256] = "";
  if ((choice->backend->supports(self, &c->problem, why, sizeof why) & q->passes) != q->passes)
    return fa_fail(err, FA_ERR_UNSUPPORTED, "%s", why);
  fa_status status = fa_tensors_clone_poisoned(&work, t, FA_POISON_A, err);
  if (status != FA_OK) return status;
  memset(&outcome, 0, sizeof outcome);
  const double start = fa_seconds_now();
  status = choice->backend->run(self, &c->problem, &work, &opt, &outcome, err);
  *seconds = fa_seconds_now() - start;
  fa_tensors_free(&work);
  if (status == FA_OK && outcome.state != FA_SUBJECT_OK)
    return fa_fail(err, FA_ERR_UNSUPPORTED, "%.280s", outcome.text);
  return status;
}

static fa_status answer(const fa_choice *choice, void **self, const request *q, const char *line,
                        double *seconds, fa_error *err) {
  const bool gpu = strcmp(choice->backend->name, "cuda") == 0;
  fa_case c;
  fa_tensors t;
  fa_status status = gpu || *self ? FA_OK : fa_choice_open(choice, self, err);
  if (status == FA_OK) status = fa_case_from_text(line, &c, err);
  if (status != FA_OK) return status;
  c.data_seed = q->seed;
  status = fa_case_build_on(&c, q->n_threads, &t, err);
  if (status == FA_OK)
    status = gpu ? time_on_gpu(choice, &c, &t, q->passes, seconds, err)
                 : time_here(choice, *self, &c, &t, q, seconds, err);
  fa_tensors_free(&t);
  fa_case_free(&c);
  return status;
}

/* Other descriptors are closed: children are to notice when this program closes its end. */
static void serve(const fa_choice *choice, int inherited) {
  void *self = NULL;
  request q;
  const int fd = dup2(inherited, 3);
  close_range(4, ~0u, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  while (get(fd, &q, sizeof q)) {
    reply r;
    fa_error err = {""};
    char *line = malloc(q.bytes + 1);
    memset(&r, 0, sizeof r);
    if (!line || !get(fd, line, q.bytes)) _exit(1);
    line[q.bytes] = 0;
    r.status = answer(choice, &self, &q, line, &r.seconds, &err);
    memcpy(r.text, err.text, strnlen(err.text, sizeof r.text - 1));
    free(line);
    if (!put(fd, &r, sizeof r)) break;
  }
  _exit(0);
}

/* ---- this side ---- */

fa_status fa_own_start(fa_own *x, const fa_choice *choice, fa_error *err) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return fa_fail(err, FA_ERR_IO, "no socket: %s", strerror(errno));
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    serve(choice, ends[1]);
  }
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return fa_fail(err, FA_ERR_IO, "no process can be made: %s", strerror(errno));
  }
  *x = (fa_own){.pid = pid, .to = ends[0], .from = ends[0]};
  return FA_OK;
}

fa_status fa_own_time(fa_own *x, const fa_case *c, unsigned passes, uint64_t seed, int n_threads,
                      double *seconds, fa_error *err) {
  char *line = fa_case_to_line(c);
  reply r;
  if (!line) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  const request q = {.seed = seed, .bytes = strlen(line), .passes = passes, .n_threads = n_threads};
  const bool answered = put(x->to, &q, sizeof q) && put(x->to, line, q.bytes) && get(x->from, &r, sizeof r);
  free(line);
  if (!answered) return fa_fail(err, FA_ERR_DEVICE, "the rival's process has ended");
  *seconds = r.seconds;
  return r.status == FA_OK ? FA_OK : fa_fail(err, r.status, "%s", r.text);
}

void fa_own_stop(fa_own *x) {
  int status;
  if (x->pid <= 0) return;
  close(x->to);
  kill(x->pid, SIGKILL);
  while (waitpid(x->pid, &status, 0) < 0 && errno == EINTR) {}
  *x = (fa_own){0};
}
