/* The ordinary program on a GPU that is not there (fake_cuda.h), for tests of the command line. FAKE_CUDA
 * says how its kernels misbehave. */
#include "fuzz/cli.h"
#include "ref/blas.h"
#include "tests/fake_cuda.h"

#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
  const char *how = getenv("FAKE_CUDA");
  fa_blas_startup(argv);
  fake_cuda_reset();
  if (how && strcmp(how, "fault") == 0) fake.kernel_fault = CUDA_ERROR_ILLEGAL_ADDRESS;
  if (how && strcmp(how, "hang") == 0) fake.kernel_hangs = true;
  if (how && strcmp(how, "scribble") == 0) fake.scribble = 1;
  if (how && strcmp(how, "lost") == 0) fake.kernel_fault = CUDA_ERROR_DEVICE_UNAVAILABLE;
  if (how && strcmp(how, "none") == 0) fake.n_devices = 0;
  fa_cuda_driver_replace(fake_cuda_driver());
  fa_cuda_kernels_replace(fake_cubins, 2);
  return fa_cli_main(argc, argv, fa_backends);
}
