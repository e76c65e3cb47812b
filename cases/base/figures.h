/* Numbers as they are printed for people. */
#ifndef FA_CASES_BASE_FIGURES_H
#define FA_CASES_BASE_FIGURES_H

#include <stddef.h>
#include <stdint.h>

/* "8,320"; returns text. */
#define FA_COUNT_TEXT 32
const char *fa_count_text(int64_t n, char text[FA_COUNT_TEXT]);

/* A text of several pieces: where the next one goes, and how much room there is. What does not fit is cut off. */
typedef struct fa_text {
  char *at;
  size_t left;
} fa_text;
__attribute__((format(printf, 2, 3))) void fa_text_put(fa_text *t, const char *format, ...);

#endif
