#include "fuzz/probe/run.h"

#include "fuzz/probe/questions.h"
#include "report/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void (*const questions[])(probe *) = {
    probe_lse,       probe_empty_rows,     probe_keys,           probe_scale,   probe_gqa,
    probe_softcap,   probe_alibi,          probe_dropout,        probe_operands, probe_pv_accumulator,
    probe_qk_accumulator, probe_scores,    probe_p,              probe_tiles,   probe_exp,
    probe_backward_operands, probe_ds,     probe_delta,          probe_p_kept,  probe_group,
    probe_repeat,
};

/* What is assumed where nothing is found: the wider of what kernels do. */
static void assume(fa_arithmetic *a, fa_dtype dtype) {
  memset(a, 0, sizeof *a);
  a->name = "recorded";
  a->p_scale = 1;
  a->p = a->ds = dtype == FA_F32 ? FA_FORMAT_F32 : FA_FORMAT_IO;
  a->scores = FA_FORMAT_F32;
  a->eps_exp = 0x1p-22 + 0x1p-24;
  a->eps_log = 0x1p-21;
  a->eps_tanh = 0x1p-11;
  a->exp_scaled = a->fast_functions = true;
  a->block_n = 32;
  a->block_m = 64;
  a->max_splits = 128;
}

void fa_probe(const fa_backend *backend, void *self, fa_dtype dtype, fa_probe_report *report) {
  const double start = fa_seconds_now();
  fa_problem p;
  memset(report, 0, sizeof *report);
  report->dtype = dtype;
  fa_contract_init(&report->found.contract);
  assume(&report->found.arithmetic, dtype);
  probe x = {.backend = backend, .self = self, .dtype = dtype, .r = report, .noise = 0x1p-19};
  fa_contract_init(&x.declared.contract);
  fa_problem_init(&p);
  p.dtype = dtype;
  x.declares = backend->declare != NULL;
  if (x.declares) backend->declare(self, &p, &x.declared);
  fa_problem_free(&p);
  probe_outputs(&x);
  for (size_t i = 0; report->usable && i < sizeof questions / sizeof *questions; ++i) questions[i](&x);
  report->found.arithmetic_given = report->usable;
  report->seconds = fa_seconds_now() - start;
}

/* ---- apart ---- */

static void probe_and_write(const fa_backend *backend, const char *arg, fa_dtype dtype, int fd) {
  static fa_probe_report report;
  void *self = NULL;
  fa_error err = {""};
  if (backend->open(arg, &self, &err) == FA_OK) {
    if (backend->prepare) backend->prepare(self);
    fa_probe(backend, self, dtype, &report);
    backend->close(self);
  } else {
    snprintf(report.why_not, sizeof report.why_not, "%.250s", err.text);
  }
  const char *at = (const char *)&report;
  size_t left = sizeof report;
  while (left > 0) {
    const ssize_t n = write(fd, at, left);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(3);
    at += n, left -= (size_t)n;
  }
  _exit(0);
}

/* True if the whole report came before the time was up. */
static bool receive(int fd, double deadline, fa_probe_report *report) {
  size_t got = 0;
  while (got < sizeof *report) {
    const double left = deadline - fa_seconds_now();
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    const int ready = left > 0 ? poll(&wait, 1, (int)(left * 1000) + 1) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t n = read(fd, (char *)report + got, sizeof *report - got);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    got += (size_t)n;
  }
  return true;
}

fa_status fa_probe_apart(const fa_backend *backend, const char *arg, fa_dtype dtype, double timeout_s,
                         fa_probe_report *report, fa_error *err) {
  int ends[2] = {-1, -1}, status = 0;
  fflush(NULL);
  const pid_t pid = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
  if (pid == 0) probe_and_write(backend, arg, dtype, ends[1]);
  if (ends[1] >= 0) close(ends[1]);
  const double deadline = fa_seconds_now() + timeout_s;
  const bool whole = pid > 0 && receive(ends[0], deadline, report);
  if (ends[0] >= 0) close(ends[0]);
  if (pid > 0 && !whole) kill(pid, SIGKILL);
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  if (whole) return FA_OK;
  memset(report, 0, sizeof *report);
  return fa_fail(err, FA_ERR_DEVICE, "%s",
                 pid <= 0                             ? "no process could be made for the probe"
                 : fa_seconds_now() >= deadline       ? "the probe took too long"
                                                      : "the subject crashed under the probe's questions");
}
