/* Private to report/merge: JSON text laid out as cJSON prints it, without a tree in between. */
#ifndef FA_REPORT_MERGE_PRETTY_H
#define FA_REPORT_MERGE_PRETTY_H

#include <stdbool.h>
#include <stddef.h>

typedef struct fa_text {
  char *v; /* owned */
  size_t n, capacity;
  bool failed; /* out of memory */
} fa_text;

void fa_text_add(fa_text *out, const char *v, size_t n);
void fa_text_free(fa_text *out);

/* Appends the value as cJSON_Print would print it `depth` levels deep, after fa_report_zero_times if zero_times, and
 * after fa_report_keep_digits. False: the text is not as plain as reports are (then what was appended is worthless, and
 * cJSON must do it), or there is no memory. */
bool fa_pretty(fa_text *out, const char *json, size_t n, int depth, bool zero_times);
/* True for digits that would be written just so. False where that is not certain without printing them. */
bool fa_pretty_number(const char *s, size_t n);

#endif
