#include "cases/base/program.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

/* A bare tree that was entered with chroot has no /proc; the kernel also says by what path the program was started. */
bool fa_program_path(char *path, size_t size) {
  char program[PATH_MAX];
  const char *started = (const char *)getauxval(AT_EXECFN);
  path[0] = 0;
  if (!realpath("/proc/self/exe", program) && !(started && realpath(started, program))) return false;
  return (size_t)snprintf(path, size, "%s", program) < size;
}

bool fa_program_folder(char *path, size_t size) {
  if (!fa_program_path(path, size)) return false;
  *strrchr(path, '/') = 0;
  return true;
}
