/* What the makers of the three scripts share. */
#ifndef FA_FUZZ_MANUAL_PARTS_H
#define FA_FUZZ_MANUAL_PARTS_H

#include "fuzz/options/choices.h"

#include <stdio.h>

/* complete.bash, complete.fish, complete.zsh */
extern const char fa_script_bash[], fa_script_fish[], fa_script_zsh[];

/* The choices as they are typed, separated by blanks: a backend that needs an argument is "plugin:". */
void fa_script_words(FILE *out, fa_value_kind kind, const char *one_of, const fa_backend *const *backends);
/* "plugin:" for plugin, "" for host. */
const char *fa_script_colon(fa_value_kind kind, const char *name, const char *what);
/* The text with each of these characters behind a backslash, and ' as '\'' does it. */
void fa_script_escaped(FILE *out, const char *text, const char *special);

void fa_script_print_bash(const fa_backend *const *backends, FILE *out);
void fa_script_print_fish(const fa_backend *const *backends, FILE *out);
void fa_script_print_zsh(const fa_backend *const *backends, FILE *out);

#endif
