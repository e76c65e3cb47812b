/* Memory of many megabytes, copied, filled and compared by several threads: one alone spends most of its time on pages that it is
 * the first to touch. */
#ifndef FA_CASES_THREADS_BULK_H
#define FA_CASES_THREADS_BULK_H

#include <stdbool.h>
#include <stddef.h>

/* What is smaller is not worth a thread. */
#define FA_BULK_LEAST ((size_t)64 << 20)

/* How many threads the calling thread uses below from now on; 1 at first. */
void fa_bulk_threads(int n);

/* As memcpy, and as memcmp(..) == 0. */
void fa_bulk_copy(void *to, const void *from, size_t bytes);
bool fa_bulk_equal(const void *a, const void *b, size_t bytes);
/* work(context, begin, end) for all bytes, in pieces that begin at multiples of 64. */
void fa_bulk(size_t bytes, void (*work)(void *context, size_t begin, size_t end), void *context);
/* Before the first touch of memory that is used as a whole: larger pages, where the system has some to give. */
void fa_bulk_expect(void *memory, size_t bytes);

#endif
