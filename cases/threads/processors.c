#include "cases/threads/processors.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <unistd.h>

/* More than this no kernel can be built for. */
enum { MOST = 8192 };

/* 0: not known. A mask shorter than the kernel's own is refused. */
static int allowed(void) {
  for (int most = 1024; most <= MOST; most *= 2) {
    cpu_set_t *set = CPU_ALLOC(most);
    const size_t size = CPU_ALLOC_SIZE(most);
    const int n = set && !sched_getaffinity(0, size, set) ? CPU_COUNT_S(size, set) : 0;
    const bool longer = !n && set && errno == EINVAL;
    CPU_FREE(set);
    if (!longer) return n;
  }
  return 0;
}

int fa_processors(void) {
  const int n = allowed();
  const long online = n > 0 ? n : sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? (int)online : 1;
}
