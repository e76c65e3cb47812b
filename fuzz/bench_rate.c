/* What a case costs this processor apart from the subject: the part that has to keep up with a GPU. */
#include "fuzz/bench.h"

#include "fuzz/generate.h"
#include "fuzz/run_case.h"
#include "ref/blas.h"
#include "report/progress.h"

#include <stdlib.h>
#include <time.h>

enum { N_CASES = 120, FIRST = 1000000 /* other cases than those one runs by hand */ };

typedef struct rate {
  double judge, rest; /* processor seconds: reference, bounds and comparison; data, copies, guards, repeats */
  double pairs;       /* batch * heads * Sq * Sk */
  int n_passed;
} rate;

/* Processor time, so that a busy machine does not matter. */
static double cpu_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The subject: ref-f32, and what it takes. */
static double subject_seconds;
static fa_status timed_run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                           fa_outcome *out, fa_error *err) {
  const double start = cpu_seconds();
  const fa_status status = fa_backend_ref_f32.run(self, p, t, opt, out, err);
  subject_seconds += cpu_seconds() - start;
  return status;
}

static fa_status time_case(int64_t index, rate *to, fa_error *err) {
  fa_case c;
  fa_result *r = malloc(sizeof *r);
  if (!r) return fa_fail(err, FA_ERR_MEMORY, "bench: out of memory");
  fa_result_init(r);
  fa_backend subject = fa_backend_ref_f32;
  subject.run = timed_run;
  subject_seconds = 0;
  const double start = cpu_seconds(), wall_start = fa_seconds_now();
  fa_status status = fa_generate("rate-gpu", 1, FIRST + index, &c, err);
  if (status == FA_OK) {
    const fa_problem *p = &c.problem;
    const fa_run_config config = {.backend = &subject, .n_threads = 1};
    status = fa_run_case(&c, &config, r, err);
    const double ours = cpu_seconds() - start - subject_seconds;
    const double share = r->seconds_reference / (fa_seconds_now() - wall_start - r->seconds_subject);
    to->judge += ours * share;
    to->rest += ours * (1 - share);
    to->pairs += (double)(p->batch * p->heads_q) * (double)p->seqlen_q * (double)p->seqlen_k;
    to->n_passed += r->state == FA_PASS;
    fa_case_free(&c);
  }
  fa_result_free(r);
  free(r);
  return status;
}

int fa_bench_rate(FILE *out) {
  fa_error err = {""};
  rate warm_up = {0}, sum = {0};
  fa_status status = time_case(-1, &warm_up, &err);
  for (int64_t i = 0; i < N_CASES && status == FA_OK; ++i) status = time_case(i, &sum, &err);
  if (status != FA_OK) {
    fprintf(stderr, "%s\n", err.text);
    return 3;
  }
  const double judge = 1e3 * sum.judge / N_CASES, rest = 1e3 * sum.rest / N_CASES;
  fprintf(out, "one thread, OpenBLAS core %s, %d cases of rate-gpu, %.2f million pairs each, %d passed\n",
          fa_blas_core(), N_CASES, 1e-6 * sum.pairs / N_CASES, sum.n_passed);
  fprintf(out, "%-56s %8.1f ms a case\n", "reference, bounds, comparison", judge);
  fprintf(out, "%-56s %8.1f ms a case\n", "data, copies, poison, guards, repeats", rest);
  fprintf(out, "%-56s %8.1f cases/s\n", "a core can judge", 1e3 / (judge + rest));
  return 0;
}
