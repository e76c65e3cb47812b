/* The reference's speed and memory. FLOPs are counted as 14 S^2 D per head: two GEMMs forward, five
 * backward. */
#include "fuzz/bench/reference.h"
#include "cases/data/build.h"

#include "cases/recipe/case.h"
#include "cases/threads/processors.h"
#include "ref/math/blas.h"
#include "ref/reference.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DGEMM_N = 2048, SEQLEN = 2048, HEAD_DIM = 128, ROUNDS = 5, LONG_SEQLEN = 32768, LONG_HEAD_DIM = 64 };

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *dgemm_thread(void *arg) {
  double *a = arg, *b = a + DGEMM_N * DGEMM_N, *c = b + DGEMM_N * DGEMM_N;
  fa_blas_dgemm(FA_BLAS_N, FA_BLAS_N, DGEMM_N, DGEMM_N, DGEMM_N, 1, a, DGEMM_N, b, DGEMM_N, 0, c, DGEMM_N);
  return NULL;
}

/* Seconds of n_threads concurrent, independent products; < 0: out of memory. */
static double time_dgemm(int n_threads) {
  pthread_t id[256];
  double *memory[256], seconds = -1;
  size_t n = (size_t)DGEMM_N * DGEMM_N * 3;
  int n_memory = 0, n_started = 0;
  for (; n_memory < n_threads; ++n_memory) {
    if (!(memory[n_memory] = malloc(n * sizeof **memory))) goto out;
    for (size_t x = 0; x < n; ++x) memory[n_memory][x] = (double)(x % 7) * 0.125;
  }
  double start = now_s();
  for (; n_started < n_threads; ++n_started)
    if (pthread_create(&id[n_started], NULL, dgemm_thread, memory[n_started]) != 0) break;
  bool all = n_started == n_threads;
  while (n_started > 0) pthread_join(id[--n_started], NULL);
  if (all) seconds = now_s() - start;
out:
  while (n_memory > 0) free(memory[--n_memory]);
  return seconds;
}

typedef struct bench_case {
  fa_case c;
  fa_tensors in;
} bench_case;

static fa_status bench_case_make(bench_case *b, int heads, int seqlen, int head_dim, bool causal,
                                 fa_error *err) {
  fa_status status = fa_case_init(&b->c);
  if (status) return status;
  fa_problem *p = &b->c.problem;
  p->heads_q = p->heads_kv = heads;
  p->seqlen_q = p->seqlen_k = seqlen;
  p->head_dim = p->head_dim_v = head_dim;
  p->scale = head_dim == 64 ? 0.125 : 0.08838834764831845;
  p->mask.type = causal ? FA_MASK_CAUSAL : FA_MASK_NONE;
  p->backward = true;
  return fa_case_build(&b->c, &b->in, err);
}

static void bench_case_free(bench_case *b) {
  fa_tensors_free(&b->in);
  fa_case_free(&b->c);
}

static fa_status time_reference(const bench_case *b, int n_threads, bool bounds, double *seconds,
                                fa_error *err) {
  fa_profile profile = fa_profile_get("mma-hopper", b->c.problem.dtype);
  fa_ref_options opt = {.n_threads = n_threads, .generic = true, .profile = bounds ? &profile : NULL};
  fa_wants forward = {0}, backward = {0};
  double start = now_s();
  fa_status status = fa_ref_forward(&b->c.problem, &b->in, &opt, &forward, err);
  if (!status) status = fa_ref_backward(&b->c.problem, &b->in, NULL, NULL, &forward, &opt, &backward, err);
  *seconds = now_s() - start;
  fa_wants_free(&forward);
  fa_wants_free(&backward);
  return status;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *x) {
  qsort(x, ROUNDS, sizeof *x, ascending);
  return x[ROUNDS / 2];
}

/* Peak memory in MiB of one head's forward and backward, in a separate child process; < 0: it failed. */
static double peak_memory_mib(bool bounds) {
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    bench_case b = {0};
    double seconds;
    fa_status status = bench_case_make(&b, 1, LONG_SEQLEN, LONG_HEAD_DIM, false, NULL);
    if (!status) status = time_reference(&b, 1, bounds, &seconds, NULL);
    _exit(status == FA_OK ? 0 : 1);
  }
  struct rusage usage;
  int state;
  if (pid < 0 || wait4(pid, &state, 0, &usage) != pid || !WIFEXITED(state) || WEXITSTATUS(state) != 0)
    return -1;
  return (double)usage.ru_maxrss / 1024;
}

/* Measures all kinds in turn, so that a slow moment of the machine affects them alike. */
static fa_status measure(int n_threads, double dgemm[], double values[], double bounds[], double causal[],
                         fa_error *err) {
  bench_case full = {0}, half = {0};
  fa_status status = bench_case_make(&full, n_threads, SEQLEN, HEAD_DIM, false, err);
  if (!status) status = bench_case_make(&half, n_threads, SEQLEN, HEAD_DIM, true, err);
  for (int n = 0; n < ROUNDS && !status; ++n) {
    dgemm[n] = time_dgemm(n_threads);
    if (dgemm[n] < 0) status = fa_fail(err, FA_ERR_MEMORY, "bench: out of memory");
    if (!status) status = time_reference(&full, n_threads, false, &values[n], err);
    if (!status) status = time_reference(&full, n_threads, true, &bounds[n], err);
    if (!status) status = time_reference(&half, n_threads, false, &causal[n], err);
  }
  bench_case_free(&full);
  bench_case_free(&half);
  return status;
}

int fa_bench_reference(FILE *out, int n_threads) {
  if (n_threads <= 0) n_threads = fa_processors();
  if (n_threads > 256) n_threads = 256;
  double dgemm[ROUNDS], values[ROUNDS], bounds[ROUNDS], causal[ROUNDS];
  fa_error err = {""};
  double memory_values = peak_memory_mib(false), memory_bounds = peak_memory_mib(true);
  if (measure(n_threads, dgemm, values, bounds, causal, &err) != FA_OK) {
    fprintf(stderr, "fa-verify: %s\n", err.text);
    return 3;
  }
  double n = DGEMM_N, rate_dgemm = 2e-9 * n * n * n * n_threads / median(dgemm);
  double work = 14e-9 * SEQLEN * SEQLEN * HEAD_DIM * n_threads, time_values = median(values);
  double rate = work / time_values;
  fprintf(out, "threads %d, OpenBLAS core %s, medians of %d\n", n_threads, fa_blas_core(), ROUNDS);
  fprintf(out, "%-56s %8.1f GFLOP/s\n", "DGEMM 2048^3, one per thread", rate_dgemm);
  fprintf(out, "%-56s %8.1f GFLOP/s  %5.1f %% of DGEMM\n",
          "forward + backward, S=2048 D=128, a head per thread", rate, 100 * rate / rate_dgemm);
  fprintf(out, "%-56s %8.2f x the time\n", "  with all bounds", median(bounds) / time_values);
  fprintf(out, "%-56s %8.2f x the time\n", "  causal", median(causal) / time_values);
  fprintf(out, "%-56s %8.0f MiB\n", "peak memory, one head S=32768 D=64, values", memory_values);
  fprintf(out, "%-56s %8.0f MiB\n", "  with all bounds", memory_bounds);
  return memory_values < 0 || memory_bounds < 0 ? 3 : 0;
}
