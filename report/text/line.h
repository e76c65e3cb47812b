/* Results as text for people: one line per case, details under a failure, a last line with the counts. */
#ifndef FA_REPORT_LINE_H
#define FA_REPORT_LINE_H

#include "report/result.h"

#include <stdio.h>

typedef struct fa_line_style {
  bool color;
  int verbosity;       /* -1 only failures, 0 one line per case and six of a failure, 1 all that is known */
  const char *program; /* argv[0], for the repro command; NULL: print no such command */
  const char *mode;    /* options that the repro command of a case without a report needs; NULL: none */
  const char *report; /* the file that will hold this failure as its number-th, from 0; NULL: there is none */
  int64_t number;
  bool unasked; /* nobody looked for explanations, so that none is no news */
} fa_line_style;

/* One line: state, name, backend, passes, worst ratio, time. A failure has at most five more, indented: what is wrong
 * and where, what explains it, the worst element, its bound taken apart, and the command that repeats it. With
 * verbosity 1 its first line says what is wrong in all tensors and how to repeat it; the worst points of each follow,
 * indented, and statistics. */
void fa_line_print(FILE *out, const fa_result *r, const fa_line_style *style);

/* "tests:N passed:N failed:N skipped:N error:N"; if verbose, after the skips by reason and the counts by
 * kernel. */
void fa_line_summary(FILE *out, const fa_summary *s, const fa_line_style *style);

/* Prints a shell word, single-quoted if necessary. */
void fa_print_shell_word(FILE *out, const char *word);

/* "[0,17,2,5]" */
void fa_index_text(const int64_t *index, int rank, char *text, size_t size);

#endif
