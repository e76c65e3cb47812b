/* The command line: what the user asked for. The commands and options: fuzz/options/table.h. */
#ifndef FA_FUZZ_OPTIONS_COMMAND_H
#define FA_FUZZ_OPTIONS_COMMAND_H

#include "cases/vocabulary/sample.h"
#include "gpu/backend.h"

#include <stdio.h>

enum {
  FA_EXIT_PASSED = 0,
  FA_EXIT_MISMATCH = 1,
  FA_EXIT_USAGE = 2,          /* usage or malformed input */
  FA_EXIT_INFRASTRUCTURE = 3, /* device lost, out of memory, I/O */
  FA_EXIT_NOTHING_JUDGED = 4
};

/* Strings of argv in an array that we own. */
typedef struct fa_words {
  const char **v;
  int n;
} fa_words;

typedef struct fa_cli {
  const char *program; /* argv[0] */
  int argc;
  char **argv;
  const fa_backend *const *backends; /* NULL-terminated */
  const char *command;
  fa_words words; /* arguments after the command that belong to no option */
  fa_words cases, case_text, backend, law, dtype, without, allow, hide, rival;
  const char *report, *filter, *shard, *keep, *profile, *emit, *waivers, *require, *baseline, *slower,
      *annotations, *tier, *judge, *secret, *arithmetic, *json, *junit, *merge, *score, *html, *out, *color;
  int64_t jobs, lanes, count, memory_limit; /* 0 = not given; memory_limit in bytes */
  double timeout_s, seconds;
  uint64_t seed, schedule_seed;
  fa_sample sample;
  bool shrink, shrunk; /* after a run: shrink its failures; repro: use the shrunk cases */
  uint64_t given;      /* bit i: option i of the table */
  bool compare, strict, no_probe, no_explain, fail_fast, resume, no_times, as_drawn, laws, coverage, cold,
      no_isolate, no_progress, end_to_end, untrusted, verbose, quiet, help, version;
} fa_cli;

/* Parses argv into *cli, of which only .backends is set before; if it is invalid, prints a message on stderr and
 * returns FA_EXIT_USAGE. In any case fa_cli_free follows. */
int fa_cli_parse(fa_cli *cli, int argc, char **argv);
void fa_cli_free(fa_cli *cli);
/* About cli->command alone, or about all commands if it is NULL. */
void fa_cli_print_help(const fa_cli *cli, FILE *out);

/* "fa-verify: message" on stderr; returns FA_EXIT_USAGE. */
int fa_cli_usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for an error of the world; returns its exit code. */
int fa_cli_fail(fa_status status, const fa_error *err);

#endif
