/* How this program uses the heap. */
#ifndef FA_FUZZ_OPTIONS_MEMORY_H
#define FA_FUZZ_OPTIONS_MEMORY_H

/* Call first thing in main: memory that was freed stays with the process. Every case makes and drops the same
 * few megabytes; returning them to the system each time costs a page fault per 4 KiB. */
void fa_memory_startup(void);

#endif
