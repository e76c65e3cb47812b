/* What a case costs the processor, step by step: the judge has to keep up with a GPU. */
#include "fuzz/bench/reference.h"

#include "cases/codec/json.h"
#include "cases/threads/processors.h"
#include "fuzz/generate/draw.h"
#include "fuzz/judging/stage.h"
#include "fuzz/one/judges.h"
#include "fuzz/one/lanes.h"
#include "fuzz/one/run_case.h"
#include "fuzz/options/choose_backend.h"
#include "ref/math/blas.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CASES_ALONE = 120, CASES_EACH = 40, FIRST = 1000000 /* other cases than those usually run by hand */ };

/* Totals of one case at a time. */
typedef struct rate {
  fa_stage_clock clock;
  double pairs;         /* batch * heads * Sq * Sk */
  int n_passed, n_left; /* left: to the CPU */
  pid_t pid;            /* the parent's alone, of the first of a process */
  fa_status status;
  fa_error err;
} rate;

/* What the processes run. */
typedef struct job {
  fa_choice subject;
  fa_judge_choice judge;
  const fa_words *texts; /* cases in JSON, one after another; none: of rate-gpu */
  int n_threads;         /* of a case */
  int n_lanes;           /* of a process */
  int64_t n_each;
} job;

/* One after another in a thread. */
typedef struct lane {
  const job *job;
  int64_t first;
  rate *to;
  pthread_t thread;
} lane;

static fa_status case_of(const job *x, int64_t index, fa_case *c, fa_error *err) {
  if (x->texts->n == 0 || index < 0) return fa_generate("rate-gpu", 1, (uint64_t)(FIRST + index), c, err);
  return fa_case_from_text(x->texts->v[index % x->texts->n], c, err);
}

static fa_status run_one(const job *x, void *self, int64_t index, rate *to) {
  fa_case c;
  fa_result *r = malloc(sizeof *r);
  if (!r) return fa_fail(&to->err, FA_ERR_MEMORY, "bench: out of memory");
  fa_result_init(r);
  fa_status status = case_of(x, index, &c, &to->err);
  if (status == FA_OK) {
    const fa_problem *p = &c.problem;
    const fa_run_config config = {
        .backend = x->subject.backend, .backend_self = self, .n_threads = x->n_threads, .judge = x->judge};
    status = fa_run_case(&c, &config, r, &to->err);
    to->pairs += (double)(p->batch * p->heads_q) * (double)p->seqlen_q * (double)p->seqlen_k;
    to->n_passed += r->state == FA_PASS;
    to->n_left += r->judged.left[0] != 0;
    fa_case_free(&c);
  }
  fa_result_free(r);
  free(r);
  return status;
}

/* Runs its cases, after one more before the clock starts. */
static void *run_lane(void *arg) {
  const lane *l = arg;
  const job *x = l->job;
  rate *to = l->to;
  void *self = NULL;
  to->status = x->subject.backend->open(x->subject.arg, &self, &to->err);
  if (to->status == FA_OK) to->status = run_one(x, self, -1, to);
  to->pairs = to->n_passed = to->n_left = 0;
  fa_stage_clock_start(&to->clock);
  for (int64_t i = 0; i < x->n_each && to->status == FA_OK; ++i)
    to->status = run_one(x, self, l->first + i, to);
  fa_stage_clock_start(NULL);
  if (self) x->subject.backend->close(self);
  return NULL;
}

static void run_lanes(const job *x, int from, int n, rate *all) {
  lane lanes[n];
  if (n > 1) x->subject.backend->lanes(n);
  for (int i = 0; i < n; ++i) {
    lanes[i] = (lane){.job = x, .first = (from + i) * x->n_each, .to = &all[from + i]};
    if (pthread_create(&lanes[i].thread, NULL, run_lane, &lanes[i]) != 0) _exit(3);
  }
  for (int i = 0; i < n; ++i) pthread_join(lanes[i].thread, NULL);
}

/* Runs all at once, each on its own cases; *all[] is memory shared with them. */
static fa_status run_processes(const job *x, int n_jobs, rate *all) {
  int bad = 0;
  fflush(NULL);
  for (int i = 0; i < n_jobs; i += x->n_lanes) {
    const pid_t pid = fork();
    if (pid == 0) {
      run_lanes(x, i, n_jobs - i < x->n_lanes ? n_jobs - i : x->n_lanes, all);
      _exit(0);
    }
    all[i].pid = pid;
  }
  for (int i = 0, how = 0; i < n_jobs; i += x->n_lanes)
    if (all[i].pid < 0 || waitpid(all[i].pid, &how, 0) < 0 || how != 0) ++bad;
  return bad ? FA_ERR_MEMORY : FA_OK;
}

static void print_table(FILE *out, const job *x, const rate *all, int n_jobs) {
  const int64_t n_cases = n_jobs * x->n_each;
  const double per_case = 1e3 / (double)n_cases;
  rate sum = {0};
  double cpu = 0, wall = 0;
  for (int i = 0; i < n_jobs; ++i) {
    sum.pairs += all[i].pairs;
    sum.n_passed += all[i].n_passed;
    sum.n_left += all[i].n_left;
    for (int s = 0; s < FA_N_STAGES; ++s) {
      sum.clock.cpu[s] += all[i].clock.cpu[s] * per_case;
      sum.clock.wall[s] += all[i].clock.wall[s] * per_case;
    }
  }
  fprintf(out, "%d at a time, %d in a process, OpenBLAS core %s, %lld cases%s, ", n_jobs, x->n_lanes,
          fa_blas_core(), (long long)n_cases, x->texts->n ? "" : " of rate-gpu");
  fprintf(out, "%.2f million pairs each, %d passed, %d left to the CPU\n", 1e-9 * sum.pairs * per_case,
          sum.n_passed, sum.n_left);
  fprintf(out, "%-40s %12s %12s\n", "milliseconds a case", "processor", "elapsed");
  for (int s = 0; s < FA_N_STAGES; ++s) {
    fprintf(out, "%-40s %12.2f %12.2f\n", fa_stage_name((fa_stage)s), sum.clock.cpu[s], sum.clock.wall[s]);
    cpu += sum.clock.cpu[s];
    wall += sum.clock.wall[s];
  }
  const double subject = sum.clock.cpu[FA_STAGE_SUBJECT];
  fprintf(out, "%-40s %12.2f %12.2f\n", "all", cpu, wall);
  fprintf(out, "%-40s %12.2f\n", "all but the subject", cpu - subject);
  fprintf(out, "%-40s %12.1f\n", "cases a second", 1e3 * n_jobs / wall);
}

static fa_status choose_lanes(job *x, int64_t lanes, int n_jobs, fa_error *err) {
  const bool can = x->subject.backend->lanes != NULL;
  if (!can && lanes > 1) return fa_fail(err, FA_ERR_INPUT, "--lanes: backend %s has none", x->subject.spec);
  x->n_lanes = can ? fa_lanes_of(lanes, x->judge, n_jobs) : 1;
  return FA_OK;
}

int fa_bench_rate(FILE *out, const char *spec, fa_judge_choice judge, const fa_words *texts, int n_jobs,
                  int64_t lanes) {
  fa_error err = {""};
  job x = {.judge = judge, .texts = texts, .n_threads = 1};
  if (n_jobs == 0) n_jobs = 1;
  x.n_each = texts->n ? texts->n : n_jobs == 1 ? CASES_ALONE : CASES_EACH;
  if (texts->n) x.n_threads = fa_processors() / n_jobs;
  fa_status status = fa_choose_backend(fa_backends, spec, &x.subject, &err);
  if (status == FA_OK) status = choose_lanes(&x, lanes, n_jobs, &err);
  const size_t bytes = (size_t)n_jobs * sizeof(rate);
  rate *all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (status == FA_OK && all == MAP_FAILED) status = fa_fail(&err, FA_ERR_MEMORY, "bench: out of memory");
  if (status == FA_OK) status = fa_judges_start(judge, 0, NULL, &err);
  if (status == FA_OK && run_processes(&x, n_jobs, all) != FA_OK)
    status = fa_fail(&err, FA_ERR_MEMORY, "bench: a process ended early");
  fa_judges_stop();
  for (int i = 0; i < n_jobs && status == FA_OK; ++i)
    if ((status = all[i].status) != FA_OK) err = all[i].err;
  if (status == FA_OK)
    print_table(out, &x, all, n_jobs);
  else
    fprintf(stderr, "fa-verify: %s\n", err.text);
  if (all != MAP_FAILED) munmap(all, bytes);
  return status == FA_OK ? 0 : status == FA_ERR_INPUT ? 2 : 3;
}
