/* The values that may stand where a row says so: for checking them, and for completions. */
#ifndef FA_FUZZ_OPTIONS_CHOICES_H
#define FA_FUZZ_OPTIONS_CHOICES_H

#include "fuzz/options/table.h"

enum { FA_MAX_CHOICES = 64 };

/* What --without may leave out of bench alone (fuzz/timing/defences.h), in this order. */
#define FA_BENCH_DEFENCES "chain", "pool", "warmup", "sample", "claim"

typedef struct fa_choices {
  int n;
  struct {
    char name[40];
    const char *what; /* a line, or NULL */
  } v[FA_MAX_CHOICES];
  bool is_all; /* nothing else is allowed */
} fa_choices;

/* one_of: what the row lists, NULL for none; capital letters in it stand for something, and are no choice.
 * backends: as in fa_cli. */
void fa_choices_of(fa_value_kind kind, const char *one_of, const fa_backend *const *backends,
                   fa_choices *out);

/* 0, or FA_EXIT_USAGE after a message that names the choices and the nearest of them. what: "--color". */
int fa_choices_check(const fa_choices *choices, const char *what, const char *given);

/* What was probably meant by a name that is none of these; NULL: nothing is near. */
const char *fa_choices_nearest(const fa_choices *choices, const char *given);

#endif
