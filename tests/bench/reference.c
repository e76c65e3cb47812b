/* The reference's benchmark alone (built, not run by ctest): bench_ref [threads] */
#include "fuzz/bench/reference.h"
#include "fuzz/workers/memory.h"
#include "ref/math/blas.h"

#include <stdlib.h>

int main(int argc, char **argv) {
  fa_blas_startup(argv);
  fa_memory_startup();
  return fa_bench_reference(stdout, argc > 1 ? atoi(argv[1]) : 0);
}
