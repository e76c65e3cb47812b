/* How long a kernel takes until it can be launched: at its first use, in the next process, and once more
 * there.
 *
 *   bench_nvrtc           on the GPU: compiling and loading, each use in a process of its own
 *   bench_nvrtc 9.0       without one: compiling for this compute capability, and reading from disk (CPU
 * time) bench_nvrtc 9.0 all   the same for every head dim and feature, as rows of a table in Markdown */
#include "gpu/cuda/context.h"
#include "gpu/cuda/module.h"
#include "gpu/cuda/rtc.h"
#include "tests/kernel_units.h"

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
  const double begin = ms_of(CLOCK_PROCESS_CPUTIME_ID); /* others may be busy on this machine */
  t->status = fa_rtc_build(&unit, major, minor, &code, &t->err);
  t->first_ms = ms_of(CLOCK_PROCESS_CPUTIME_ID) - begin;
  if (t->status == FA_OK) fa_rtc_code_free(&code);
}

/* In a process of its own, as the first use of a program is. */
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

int main(int argc, char **argv) {
  static const int dims[] = {64, 128, 96, 256, 32, 160, 192, 224};
  char folder[] = "/tmp/fa-bench-nvrtc-XXXXXX", command[64];
  int major = 0, minor = 0, failed = 0;
  const bool all = argc > 2 && strcmp(argv[2], "all") == 0;
  if (argc > 1 && sscanf(argv[1], "%d.%d", &major, &minor) != 2) {
    fprintf(stderr, "usage: %s [COMPUTE-CAPABILITY [all]]\n", argv[0]);
    return 2;
  }
  if (!mkdtemp(folder)) return 3;
  setenv("FA_CACHE_DIR", folder, 1);
  setenv("FA_NVRTC", "always", 1);
  for (int i = 0; i < (all ? 8 : 4); ++i) {
    for (int what = 0; what < 2 * N_UNIT_FEATURES && !failed; ++what) {
      kernel_unit units[8];
      const int n = kernel_units_of(FA_BF16, dims[i], (unit_feature)(what / 2), what % 2 == 1, units, 8);
      for (int k = 0; k < n && !failed; ++k) /* the kernels around the main one come from one unit */
        if (k == 1 || n == 1 || (k == 0 && what == 1)) failed = bench(&units[k], major, minor, all);
    }
  }
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command) != 0 || failed ? 3 : 0;
}
