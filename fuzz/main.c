#include "fuzz/cli/commands.h"
#include "fuzz/workers/memory.h"
#include "gpu/wall/door.h"
#include "ref/math/blas.h"

int main(int argc, char **argv) {
  fa_wall_door(argc, argv);
  fa_memory_startup();
  fa_blas_startup(argv); /* may execute this program again, with the BLAS kernels for this processor */
  return fa_cli_main(argc, argv, fa_backends);
}
