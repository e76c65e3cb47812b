/* Numbers, names and commands as they are printed for people. */
#ifndef FA_REPORT_WORDS_H
#define FA_REPORT_WORDS_H

#include "cases/base/figures.h"
#include "report/text/line.h"

/* got and want with four significant digits, or with as many as it takes to tell them apart (at most 17). */
#define FA_PAIR_TEXT 32
void fa_pair_text(double got, double want, char got_text[FA_PAIR_TEXT], char want_text[FA_PAIR_TEXT]);

/* The command that repeats the failure: by the report and the failure's number in it if the style has them, else
 * with the whole case. */
/* " --sample rows=..."; nothing if it is not asked. */
void fa_print_sample(FILE *out, const fa_sample *s);
void fa_print_repro(FILE *out, const fa_result *r, const fa_line_style *style);

#endif
