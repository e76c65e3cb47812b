/* The judge's kernels for the host from a library: a copy with a planted fault (test_faults.py). */
#ifndef FA_TESTS_DEVICE_LOAD_H
#define FA_TESTS_DEVICE_LOAD_H

#include "ref/cuda/host.h"
#include "tests/support/check.h"

#include <dlfcn.h>

/* file NULL: NULL, for those of this program. */
static inline const fa_judge_function *load_kernels(const char *file) {
  if (!file) return NULL;
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library) fprintf(stderr, "%s\n", dlerror());
  REQUIRE(library);
  const fa_judge_function *functions = dlsym(library, "fa_judge_functions");
  REQUIRE(functions);
  return functions;
}

#endif
