/* Numbers as they are printed for people. */
#ifndef FA_CASES_BASE_FIGURES_H
#define FA_CASES_BASE_FIGURES_H

#include <stdint.h>

/* "8,320"; returns text. */
#define FA_COUNT_TEXT 32
const char *fa_count_text(int64_t n, char text[FA_COUNT_TEXT]);

#endif
