/* The manual page and the shells' completions, made from the tables of fuzz/options/table.h.
 * backends: what --backend can choose, NULL-terminated. Errors of writing are the stream's. */
#ifndef FA_FUZZ_MANUAL_PRINT_H
#define FA_FUZZ_MANUAL_PRINT_H

#include "gpu/backend.h"

#include <stdio.h>

/* fa-verify(1), for man (the macros of man(7)). */
void fa_manual_page(const fa_backend *const *backends, FILE *out);

/* A script for "bash", "zsh" or "fish". */
void fa_manual_completion(const char *shell, const fa_backend *const *backends, FILE *out);

#endif
