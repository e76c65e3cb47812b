/* Text as roff. No line that is written is longer than 80 bytes, as mandoc asks. */
#ifndef FA_FUZZ_MANUAL_ROFF_H
#define FA_FUZZ_MANUAL_ROFF_H

#include <stdio.h>

/* A paragraph's text, ended by a line break. */
void fa_roff_prose(FILE *out, const char *text);
/* The same in bold, on what counts as one line: for commands to be typed. */
void fa_roff_command(FILE *out, const char *text);
/* The same where some words stand for something: lower case in bold, upper case in italics. */
void fa_roff_usage(FILE *out, const char *text);

#endif
