/* What the sources of parsing share. */
#ifndef FA_FUZZ_OPTIONS_PARTS_H
#define FA_FUZZ_OPTIONS_PARTS_H

#include "fuzz/options/table.h"

void fa_words_add(fa_words *w, const char *text);

/* Puts the value into the option's member of *cli. The functions below and this one return 0, or print a message
 * and return FA_EXIT_USAGE. */
int fa_cli_set_value(fa_cli *cli, const fa_option_row *o, const char *text);
/* Two outputs to one file would leave only the last. */
int fa_cli_check_outputs(const fa_cli *cli);
int fa_cli_unknown_option(const char *given);
int fa_cli_unknown_command(const char *given);

#endif
