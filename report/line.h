/* Results as text for people: one line per case, details under a failure, a last line with the counts. */
#ifndef FA_REPORT_LINE_H
#define FA_REPORT_LINE_H

#include "report/result.h"

#include <stdio.h>

typedef struct fa_line_style {
  bool color;
  int verbosity;       /* -1 only failures, 0 one line per case, 1 also statistics and notes */
  const char *program; /* argv[0], for the repro command; NULL: print no such command */
} fa_line_style;

/* One line: state, name, backend, passes, worst ratio, time. A failure's line continues with what is wrong
 * and ends with a command that reproduces it. Its worst points follow, indented, each with the parts of its
 * bound. */
void fa_line_print(FILE *out, const fa_result *r, const fa_line_style *style);

/* "tests:N passed:N failed:N skipped:N error:N"; if verbose, after the skips by reason and the counts by
 * kernel. */
void fa_line_summary(FILE *out, const fa_summary *s, const fa_line_style *style);

/* Prints a shell word, single-quoted if necessary. */
void fa_print_shell_word(FILE *out, const char *word);

/* "[0,17,2,5]" */
void fa_index_text(const int64_t *index, int rank, char *text, size_t size);

#endif
