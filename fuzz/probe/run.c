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

static const struct question {
  void (*ask)(probe *);
  fa_probe_kind kind;
} questions[] = {
    {probe_lse, FA_PROBE_CONTRACT},
    {probe_empty_rows, FA_PROBE_CONTRACT},
    {probe_keys, FA_PROBE_CASE},
    {probe_scale, FA_PROBE_CASE},
    {probe_gqa, FA_PROBE_CASE},
    {probe_softcap, FA_PROBE_CASE},
    {probe_alibi_lse, FA_PROBE_CONTRACT},
    {probe_alibi, FA_PROBE_CASE},
    {probe_dropout, FA_PROBE_CASE},
    {probe_dlse, FA_PROBE_CASE},
    {probe_operands, FA_PROBE_ARITHMETIC},
    {probe_pv_accumulator, FA_PROBE_ARITHMETIC},
    {probe_qk_accumulator, FA_PROBE_ARITHMETIC},
    {probe_scores, FA_PROBE_ARITHMETIC},
    {probe_exp, FA_PROBE_ARITHMETIC},
    {probe_backward_operands, FA_PROBE_ARITHMETIC},
    {probe_p, FA_PROBE_ARITHMETIC},
    {probe_tiles, FA_PROBE_ARITHMETIC},
    {probe_dropout_rounding, FA_PROBE_ARITHMETIC},
    {probe_ds, FA_PROBE_ARITHMETIC},
    {probe_dp, FA_PROBE_ARITHMETIC},
    {probe_delta, FA_PROBE_ARITHMETIC},
    {probe_p_kept, FA_PROBE_ARITHMETIC},
    {probe_group, FA_PROBE_ARITHMETIC},
    {probe_repeat, FA_PROBE_ARITHMETIC},
    {probe_settle, FA_PROBE_ARITHMETIC},
};

/* What is assumed where nothing is found: the widest named set. */
static void assume(fa_arithmetic *a, fa_dtype dtype) {
  FA_ASSERT(fa_arithmetic_named("recorded", dtype, a));
}

void fa_probe(const fa_backend *backend, void *self, fa_dtype dtype, unsigned kinds,
              fa_probe_report *report) {
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
  if (!(kinds & FA_PROBE_CONTRACT) && x.has_lse) x.lse_factor = 1; /* what it declares is converted */
  for (size_t i = 0; report->usable && i < sizeof questions / sizeof *questions; ++i)
    if (questions[i].kind & kinds) questions[i].ask(&x);
  report->found.arithmetic_given = report->usable && kinds & FA_PROBE_ARITHMETIC;
  report->seconds = fa_seconds_now() - start;
}

/* ---- apart ---- */

static void probe_and_write(const fa_backend *backend, const char *arg, const unsigned kinds[FA_PROBE_DTYPES],
                            fa_probe_reports *out, int fd) {
  void *self = NULL;
  fa_error err = {""};
  out->status = backend->open(arg, &self, &err);
  if (out->status == FA_OK) {
    if (backend->prepare) backend->prepare(self);
    for (int t = 0; t < FA_PROBE_DTYPES; ++t)
      if (kinds[t]) fa_probe(backend, self, (fa_dtype)t, kinds[t], &out->of[t]);
    backend->close(self);
  } else {
    snprintf(out->why_not, sizeof out->why_not, "%.250s", err.text);
  }
  const char *at = (const char *)out;
  size_t left = sizeof *out;
  while (left > 0) {
    const ssize_t n = write(fd, at, left);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(3);
    at += n, left -= (size_t)n;
  }
  _exit(0);
}

/* True if the whole report came before the time was up. */
static bool receive(int fd, double deadline, fa_probe_reports *out) {
  size_t got = 0;
  while (got < sizeof *out) {
    const double left = deadline - fa_seconds_now();
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    const int ready = left > 0 ? poll(&wait, 1, left < 1e6 ? (int)(left * 1000) + 1 : -1) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t n = read(fd, (char *)out + got, sizeof *out - got);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    got += (size_t)n;
  }
  return true;
}

fa_status fa_probe_apart(const fa_backend *backend, const char *arg, const unsigned kinds[FA_PROBE_DTYPES],
                         double timeout_s, fa_probe_reports *out, fa_error *err) {
  int ends[2] = {-1, -1}, status = 0;
  memset(out, 0, sizeof *out);
  fflush(NULL);
  const pid_t pid = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
  if (pid == 0) probe_and_write(backend, arg, kinds, out, ends[1]);
  if (ends[1] >= 0) close(ends[1]);
  const double deadline = fa_seconds_now() + timeout_s;
  const bool whole = pid > 0 && receive(ends[0], deadline, out);
  if (ends[0] >= 0) close(ends[0]);
  if (pid > 0 && !whole) kill(pid, SIGKILL);
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  if (whole) return out->status == FA_OK ? FA_OK : fa_fail(err, out->status, "%s", out->why_not);
  return fa_fail(err, FA_ERR_DEVICE, "%s",
                 pid <= 0                       ? "no process could be made for the probe"
                 : fa_seconds_now() >= deadline ? "the probe took too long"
                                                : "the subject crashed under the probe's questions");
}
