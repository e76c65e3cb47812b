/* The text after an option, read as what its row says. */
#include "fuzz/options/choices.h"
#include "fuzz/options/parts.h"
#include "gpu/wall/limits.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void fa_words_add(fa_words *w, const char *text) {
  const char **bigger = realloc(w->v, (size_t)(w->n + 1) * sizeof *w->v);
  FA_ASSERT(bigger);
  w->v = bigger;
  w->v[w->n++] = text;
}

/* Not a backend: the commands themselves say which of them this build has. */
static int check_choice(const fa_cli *cli, const fa_option_row *o, const char *text) {
  char what[64];
  fa_choices choices;
  fa_choices_of(o->value, o->argument, cli->backends, &choices);
  snprintf(what, sizeof what, "--%s", o->name);
  return choices.is_all ? fa_choices_check(&choices, what, text) : 0;
}

/* A number of bytes, with K, M, G or T for powers of 1024; -1: it is none. */
static int64_t read_bytes(const char *text) {
  static const char units[] = "KMGT";
  char *end = NULL;
  errno = 0;
  const long long n = strtoll(text, &end, 10);
  const char *unit = *end ? strchr(units, *end) : NULL;
  const int shift = unit ? 10 * (int)(unit - units + 1) : 0;
  if (errno || end == text || n < 0 || end[unit != NULL] || n > INT64_MAX >> shift) return -1;
  return (int64_t)n << shift;
}

int fa_cli_set_value(fa_cli *cli, const fa_option_row *o, const char *text) {
  void *field = (char *)cli + o->offset;
  char *end = NULL;
  if (check_choice(cli, o, text)) return FA_EXIT_USAGE;
  errno = 0;
  if (o->kind == FA_KIND_WORD || o->kind == FA_KIND_WORDS) {
    fa_words_add(field, text);
  } else if (o->kind == FA_KIND_STRING) {
    *(const char **)field = text;
  } else if (o->kind == FA_KIND_COUNT) {
    long long n = strtoll(text, &end, 10);
    if (errno || *end || end == text || n < 1 || n > 1000000000000)
      return fa_cli_usage_error("--%s %s: a whole number >= 1 is needed", o->name, text);
    *(int64_t *)field = n;
  } else if (o->kind == FA_KIND_U64) {
    unsigned long long n = strtoull(text, &end, 0);
    if (errno || *end || end == text || text[strspn(text, " \t")] == '-')
      return fa_cli_usage_error("--%s %s: a whole number from 0 to 2^64-1 is needed", o->name, text);
    *(uint64_t *)field = n;
  } else if (o->kind == FA_KIND_BYTES) {
    const int64_t n = read_bytes(text);
    if (n < (int64_t)FA_WALL_LEAST_MEMORY)
      return fa_cli_usage_error("--%s %s: a size of at least %zuM is needed, such as 512M or 4G", o->name,
                                text, FA_WALL_LEAST_MEMORY >> 20);
    *(int64_t *)field = n;
  } else if (o->kind == FA_KIND_SAMPLE) {
    fa_error err;
    if (fa_sample_parse(text, field, &err) != FA_OK) return fa_cli_usage_error("--%s %s", o->name, err.text);
  } else {
    double x = strtod(text, &end);
    if (errno || *end || end == text || !(x > 0) || !isfinite(x))
      return fa_cli_usage_error("--%s %s: a number of seconds > 0 is needed", o->name, text);
    *(double *)field = x;
  }
  return 0;
}
