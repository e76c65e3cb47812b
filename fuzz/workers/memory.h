/* How this program uses the heap. */
#ifndef FA_FUZZ_WORKERS_MEMORY_H
#define FA_FUZZ_WORKERS_MEMORY_H

/* Call this first in main. Freed memory then stays with the process: every case allocates and frees the same
 * few megabytes, and returning them to the system each time costs a page fault per 4 KiB. */
void fa_memory_startup(void);

#endif
