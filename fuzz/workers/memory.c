#include "fuzz/workers/memory.h"

#include <stdlib.h> /* any libc header defines __GLIBC__ if it is glibc */

#if defined(__GLIBC__)
#include <malloc.h>
#endif

void fa_memory_startup(void) {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
#endif
}
