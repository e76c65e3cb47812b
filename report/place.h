/* Where what failed is written: for readers that show a failure beside its source. */
#ifndef FA_REPORT_PLACE_H
#define FA_REPORT_PLACE_H

#include <stdbool.h>
#include <stddef.h>

struct cJSON;

#define FA_PLACE_FILE 512

typedef struct fa_place {
  char file[FA_PLACE_FILE]; /* "" = unknown */
  long line;                /* from 1; 0 = unknown */
} fa_place;

/* "attention.cu:12"; without a line the whole text is the file. */
fa_place fa_place_read(const char *text);
/* Of an entry of a report's "cases" or "failures": where the kernel of its backend is written ("sources"), if the kernel
 * says so; else where the case is; else the file of the recorded run. */
fa_place fa_report_place(const struct cJSON *report, const struct cJSON *entry);

#endif
