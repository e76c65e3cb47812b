/* Time until a kernel can be launched: at its first use, at the first use in the next process, and at the
 * second use there.
 *
 *   bench_nvrtc           on the GPU: compiling and loading, each use in a separate process
 *   bench_nvrtc 9.0       without one: compiling for this compute capability, and reading from disk (CPU
 *                         time)
 *   bench_nvrtc 9.0 all   the same for every head dim and feature, as rows of a table in Markdown
 *   bench_nvrtc flex      on the GPU: all kernels of calls with expressions, compiled side by side
 *   bench_nvrtc 9.0 flex  without one: each of them alone */
#include "gpu/cuda_backend/context.h"
#include "gpu/modules/kernel.h"
#include "gpu/modules/rtc.h"
#include "tests/support/flex_units.h"
#include "tests/support/kernel_units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct times {
  double first_ms, again_ms;
  fa_status status;
  fa_error err;
  fa_cuda_device device;
} times;

static double ms_of(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void time_on_gpu(const kernel_unit *u, times *t) {
  fa_cuda_context c;
  CUkernel kernel;
  t->status = fa_cuda_context_open(0, &c, &t->err);
  if (t->status != FA_OK) return;
  t->device = c.device;
  const double begin = ms_of(CLOCK_MONOTONIC);
  t->status = fa_cuda_kernel(c.driver, &c.device, u->name, &u->recipe, u->shared_bytes, &kernel, &t->err);
  const double ready = ms_of(CLOCK_MONOTONIC);
  if (t->status == FA_OK)
    t->status = fa_cuda_kernel(c.driver, &c.device, u->name, &u->recipe, u->shared_bytes, &kernel, &t->err);
  t->again_ms = ms_of(CLOCK_MONOTONIC) - ready;
  t->first_ms = ready - begin;
}

static void time_compiling(const kernel_unit *u, int major, int minor, times *t) {
  char only[300];
  const char *const options[] = {only};
  const fa_rtc_unit unit = {u->recipe.source, fa_kernel_source_find(u->recipe.source), options, 1};
  fa_rtc_code code;
  snprintf(only, sizeof only, "-DFA_ONLY=%s", u->recipe.only);
  const double begin = ms_of(CLOCK_PROCESS_CPUTIME_ID); /* the machine may be busy */
  t->status = fa_rtc_build(&unit, major, minor, &code, &t->err);
  t->first_ms = ms_of(CLOCK_PROCESS_CPUTIME_ID) - begin;
  if (t->status == FA_OK) fa_rtc_code_free(&code);
}

/* In a separate process, like a program's first use. */
static times time_apart(const kernel_unit *u, int major, int minor) {
  times t = {.status = FA_ERR_DEVICE, .err = {"the process ended early"}};
  int fd[2];
  if (pipe(fd) != 0) return t;
  const pid_t pid = fork();
  if (pid == 0) {
    t.err.text[0] = 0;
    if (major)
      time_compiling(u, major, minor, &t);
    else
      time_on_gpu(u, &t);
    _exit(write(fd[1], &t, sizeof t) != sizeof t);
  }
  close(fd[1]);
  times got;
  if (pid > 0 && read(fd[0], &got, sizeof got) == sizeof got) t = got;
  close(fd[0]);
  waitpid(pid, NULL, 0);
  return t;
}

static int bench(const kernel_unit *u, int major, int minor, bool table) {
  const times first = time_apart(u, major, minor), cached = time_apart(u, major, minor);
  const times *bad = first.status != FA_OK ? &first : cached.status != FA_OK ? &cached : NULL;
  if (bad) {
    printf("%s: %s\n", u->name, bad->err.text);
    return 1;
  }
  if (table)
    printf("| %s | %.0f | %.1f |\n", u->name, first.first_ms, cached.first_ms);
  else if (major)
    printf("%-44s first use %6.0f ms   from disk %5.1f ms\n", u->name, first.first_ms, cached.first_ms);
  else
    printf("%-44s first use %6.0f ms   next process %5.1f ms   again %6.4f ms\n", u->name, first.first_ms,
           cached.first_ms, cached.again_ms);
  fflush(stdout);
  return 0;
}

/* ---- flex ---- */

static const flex_units_call flex_calls[] = {
    {FA_BF16, 64, NULL, "q_idx >= kv_idx", false, true, 0},
    {FA_BF16, 64, "score + slopes[h] * (kv_idx - q_idx)", "q_idx >= kv_idx", false, true, 0},
    {FA_BF16, 128, "20.0 * tanh(score / 20.0)", NULL, false, true, 0},
    {FA_BF16, 64, "score + slopes[h] * (kv_idx - q_idx)", "q_idx >= kv_idx", true, true, 0},
    {FA_BF16, 128, "20.0 * tanh(score / 20.0)", NULL, true, true, 0},
    {FA_BF16, 64, "score + table[h, min(max(q_idx - kv_idx, 0), 8)]", "doc[q_idx] == doc[kv_idx]", true,
     false, 0},
    {FA_F32, 64, "sin(score) + log(score * score + 1.0)", NULL, false, false, 0}};

static void time_flex_on_gpu(flex_units *u, times *t) {
  fa_cuda_context c;
  t->status = fa_cuda_context_open(0, &c, &t->err);
  if (t->status != FA_OK) return;
  const double begin = ms_of(CLOCK_MONOTONIC);
  t->status = fa_cuda_flex_kernels(c.driver, &c.device, u->unit, u->n, NULL, &t->err);
  const double ready = ms_of(CLOCK_MONOTONIC);
  if (t->status == FA_OK) t->status = fa_cuda_flex_kernels(c.driver, &c.device, u->unit, u->n, NULL, &t->err);
  t->again_ms = ms_of(CLOCK_MONOTONIC) - ready;
  t->first_ms = ready - begin;
}

static void time_compiling_flex(const fa_cuda_flex_wanted *w, int major, int minor, times *t) {
  char only[300];
  const char *const options[] = {only};
  fa_rtc_code code;
  snprintf(only, sizeof only, "-DFA_ONLY=%s", w->recipe->only);
  const double begin = ms_of(CLOCK_PROCESS_CPUTIME_ID);
  char *text = fa_flex_unit_text(&w->unit, fa_kernel_source_find(w->recipe->source));
  const fa_rtc_unit unit = {w->recipe->source, text, options, 1};
  t->status = fa_rtc_build(&unit, major, minor, &code, &t->err);
  t->first_ms = ms_of(CLOCK_PROCESS_CPUTIME_ID) - begin;
  free(text);
  if (t->status == FA_OK) fa_rtc_code_free(&code);
}

/* k < 0: all, on the GPU. */
static times time_flex_apart(const flex_units_call *call, int k, int major, int minor) {
  times t = {.status = FA_ERR_DEVICE, .err = {"the process ended early"}}, got;
  int fd[2];
  if (pipe(fd) != 0) return t;
  const pid_t pid = fork();
  if (pid == 0) {
    flex_units u;
    t.err.text[0] = 0;
    if (flex_units_of(call, &u, &t.err) && k < 0)
      time_flex_on_gpu(&u, &t);
    else if (k >= 0 && k < u.n)
      time_compiling_flex(&u.unit[k], major, minor, &t);
    _exit(write(fd[1], &t, sizeof t) != sizeof t);
  }
  close(fd[1]);
  if (pid > 0 && read(fd[0], &got, sizeof got) == sizeof got) t = got;
  close(fd[0]);
  waitpid(pid, NULL, 0);
  return t;
}

static void print_flex(const flex_units_call *call, const char *what, const times *first, const times *cached,
                       bool on_gpu) {
  const times *bad = first->status != FA_OK ? first : cached->status != FA_OK ? cached : NULL;
  printf("%-26s D=%-3d %-8s %-30.30s", what, call->head_dim, call->backward ? "backward" : "forward",
         call->score ? call->score : call->mask);
  if (bad)
    printf(" %s\n", bad->err.text);
  else if (on_gpu)
    printf(" first %6.0f ms, next process %5.1f ms, again %6.4f ms\n", first->first_ms, cached->first_ms,
           cached->again_ms);
  else
    printf(" first %6.0f ms, from disk %5.1f ms\n", first->first_ms, cached->first_ms);
  fflush(stdout);
}

static void bench_flex(int major, int minor) {
  for (size_t i = 0; i < sizeof flex_calls / sizeof *flex_calls; ++i) {
    const flex_units_call *call = &flex_calls[i];
    flex_units u;
    fa_error err = {""};
    if (!flex_units_of(call, &u, &err)) {
      printf("%s: %s\n", call->score ? call->score : call->mask, err.text);
      continue;
    }
    for (int k = major ? 0 : -1; k < (major ? u.n : 0); ++k) {
      const times first = time_flex_apart(call, k, major, minor);
      const times cached = time_flex_apart(call, k, major, minor);
      char what[64];
      snprintf(what, sizeof what, "%d kernels", u.n);
      print_flex(call, k < 0 ? what : u.unit[k].name, &first, &cached, major == 0);
    }
    flex_units_free(&u);
  }
}

int main(int argc, char **argv) {
  fa_ahead_replace(NULL, 0); /* what the build has is not compiled */
  static const int dims[] = {64, 128, 96, 256, 32, 160, 192, 224};
  char folder[] = "/tmp/fa-bench-nvrtc-XXXXXX", command[64];
  int major = 0, minor = 0, failed = 0;
  const bool all = argc > 2 && strcmp(argv[2], "all") == 0;
  const bool flex = argc > 1 && strcmp(argv[argc - 1], "flex") == 0;
  if (argc > 1 + flex && sscanf(argv[1], "%d.%d", &major, &minor) != 2) {
    fprintf(stderr, "usage: %s [COMPUTE-CAPABILITY [all]] [flex]\n", argv[0]);
    return 2;
  }
  if (!mkdtemp(folder)) return 3;
  setenv("FA_CACHE_DIR", folder, 1);
  setenv("FA_NVRTC", "always", 1);
  if (flex) bench_flex(major, minor);
  for (int i = 0; i < (flex ? 0 : all ? 8 : 4); ++i) {
    for (int what = 0; what < 2 * N_UNIT_FEATURES && !failed; ++what) {
      kernel_unit units[8];
      const int n = kernel_units_of(FA_BF16, dims[i], (unit_feature)(what / 2), what % 2 == 1, units, 8);
      for (int k = 0; k < n && !failed; ++k) /* the kernels around the main one are in one unit */
        if (k == 1 || n == 1 || (k == 0 && what == 1)) failed = bench(&units[k], major, minor, all);
    }
  }
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command) != 0 || failed ? 3 : 0;
}
