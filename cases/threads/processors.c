#include "cases/threads/processors.h"

#include <unistd.h>

int fa_processors(void) {
  const long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n > 0 ? (int)n : 1;
}
