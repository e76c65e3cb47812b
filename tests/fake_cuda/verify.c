/* The ordinary program with a fake GPU (tests/fake_cuda/fake.h), for tests of the command line. FAKE_CUDA
 * says how its kernels misbehave. Kernels that are compiled for a call use the fake compiler. */
#include "fuzz/cli/commands.h"
#include "ref/math/blas.h"
#include "tests/fake_cuda/fake.h"
#include "tests/fake_cuda/flex.h"
#include "tests/fake_cuda/nvrtc.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static fa_status run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                     fa_outcome *out, fa_error *err) {
  fa_status status = fake_flex_begin(p, t, err);
  if (status == FA_OK) status = fa_backend_cuda.run(self, p, t, opt, out, err);
  fake_flex_end();
  return status;
}

/* Appends a line of one letter to the file named by FAKE_CUDA_OPENINGS, if any. */
static void log_opening(const char *line) {
  const char *path = getenv("FAKE_CUDA_OPENINGS");
  const int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0666) : -1;
  if (fd < 0) return;
  if (write(fd, line, 2) != 2) _exit(3);
  close(fd);
}

static void open_slowly(void) {
  log_opening("(\n");
  usleep(100 * 1000);
  log_opening(")\n");
}

/* The second process, after the one that probes the backends, never finishes opening. */
static void open_or_hang(void) {
  if (mkdir("first_came", 0777) != 0 && mkdir("second_came", 0777) == 0) pause();
}

int main(int argc, char **argv) {
  const char *how = getenv("FAKE_CUDA");
  const char *asked = getenv("FA_HOPPER");
  char *policy = asked ? strdup(asked) : NULL;
  fa_blas_startup(argv);
  fake_cuda_reset(); /* which says off */
  if (policy) setenv("FA_HOPPER", policy, 1);
  free(policy);
  if (how && strcmp(how, "fault") == 0) fake.kernel_fault = CUDA_ERROR_ILLEGAL_ADDRESS;
  if (how && strcmp(how, "hang") == 0) fake.kernel_hangs = true;
  if (how && strcmp(how, "scribble") == 0) fake.scribble = 1;
  if (how && strcmp(how, "lost") == 0) fake.kernel_fault = CUDA_ERROR_DEVICE_UNAVAILABLE;
  if (how && strcmp(how, "none") == 0) fake.n_devices = 0;
  if (how && strcmp(how, "slow") == 0) fake.opening = open_slowly;
  if (how && strcmp(how, "stuck") == 0) fake.opening = open_or_hang;
  fa_cuda_driver_replace(fake_cuda_driver());
  fa_cuda_kernels_replace(fake_cubins, 2);
  setenv("FA_CACHE_DIR", "/dev/null/no-folder", 1); /* nobody else can use what the fake compiler makes */
  fake_nvrtc_use(13, 0, "/bin/sh");
  fa_backend cuda = fa_backend_cuda;
  cuda.run = run;
  const fa_backend *backends[16] = {&cuda};
  for (int n = 1; fa_backends[n]; ++n) backends[n] = fa_backends[n]; /* the first is the real one */
  return fa_cli_main(argc, argv, backends);
}
