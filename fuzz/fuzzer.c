#include "fuzz/fuzzer.h"

#include "fuzz/dump.h"
#include "report/line.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fa_fuzzer_fail(const char *expression, const char *file, int line, const char *format, ...) {
  va_list args;
  fprintf(stderr, "%s:%d: does not hold: %s: ", file, line, expression);
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fputc('\n', stderr);
  abort();
}

void fa_fuzzer_finding(const fa_case *c, fa_result *r) {
  const fa_line_style style = {.verbosity = 1, .program = "fa-verify"};
  const char *folder = getenv("FA_ARTIFACT_DIR");
  char path[4096];
  uint32_t hash = 2166136261u;
  r->name = strdup(c->name);
  r->case_line = fa_case_to_line(c);
  FA_ASSERT(r->name && r->case_line);
  snprintf(r->backend, sizeof r->backend, "host");
  fa_line_print(stderr, r, &style);
  for (const char *p = r->case_line; *p; ++p) hash = (hash ^ (unsigned char)*p) * 16777619u;
  snprintf(path, sizeof path, "%s/finding-%08x.json", folder && *folder ? folder : ".", hash);
  FILE *file = fopen(path, "w");
  if (file) {
    fprintf(file, "%s\n", r->case_line);
    fclose(file);
    fprintf(stderr, "case written to %s\n", path);
  }
  fprintf(stderr, "case: %s\nschedule seed: %llu\n", r->case_line, (unsigned long long)r->schedule_seed);
  abort();
}

char *fa_fuzzer_text(const uint8_t *data, size_t n) {
  char *text = malloc(n + 1);
  FA_ASSERT(text);
  if (n) memcpy(text, data, n);
  text[n] = 0;
  return text;
}
