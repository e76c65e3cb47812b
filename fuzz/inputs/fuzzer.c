#include "fuzz/inputs/fuzzer.h"
#include "cases/codec/json.h"

#include "fuzz/one/dump.h"
#include "report/text/line.h"

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

bool fa_fuzzer_is_finding(const fa_result *r, fa_status status) {
  switch (r->state) {
  case FA_PASS:
  case FA_SKIP: /* the backend said in advance that it cannot do this */
    return false;
  case FA_VACUOUS: /* data for which a wrong answer would pass, which `random` does not judge either */
    return false;
  case FA_ERROR:
    /* An expression without a value, or a lack of memory, is no kernel's fault. Any other error is a bug:
     * nothing here comes from a file or a device, so some launch or call was wrong. */
    return !r->malformed && status != FA_ERR_MEMORY;
  case FA_UNTESTED: /* no result was set: a bug of the harness */
  case FA_FAIL:
  case FA_CRASH:
  case FA_HANG:
  case FA_OOB:
  case FA_INPUT_MODIFIED:
  case FA_NONDETERMINISTIC:
  case FA_RACE:
  case FA_DEADLOCK:
  case FA_NOT_REJECTED:
  case FA_N_STATES:
    return true;
  }
  return true;
}

static uint32_t hash_of(uint32_t hash, const void *bytes, size_t n) {
  for (const uint8_t *p = bytes; n > 0; ++p, --n) hash = (hash ^ *p) * 16777619u;
  return hash;
}

/* $FA_ARTIFACT_DIR/finding-<hash>.<kind>; false when it cannot be written. */
static bool keep(uint32_t hash, const char *kind, const void *bytes, size_t n, char *path, size_t path_size) {
  const char *folder = getenv("FA_ARTIFACT_DIR");
  snprintf(path, path_size, "%s/finding-%08x.%s", folder && *folder ? folder : ".", hash, kind);
  FILE *file = fopen(path, "wb");
  bool ok = file && fwrite(bytes, 1, n, file) == n;
  if (file && fclose(file) != 0) ok = false;
  fprintf(stderr, ok ? "%s written to %s\n" : "%s cannot be written to %s\n", kind, path);
  return ok;
}

/* Prints the line and writes the files. target: NULL, or the target whose input repeats it. */
static void show(const fa_case *c, fa_result *r, const char *target, const uint8_t *data, size_t size) {
  const fa_line_style style = {.verbosity = 1, .program = target ? NULL : "fa-verify"};
  char path[4096];
  r->name = strdup(c->name);
  r->case_line = fa_case_to_line(c);
  FA_ASSERT(r->name && r->case_line);
  if (!r->backend[0]) snprintf(r->backend, sizeof r->backend, "host");
  fa_line_print(stderr, r, &style);
  const uint32_t hash = hash_of(hash_of(2166136261u, r->case_line, strlen(r->case_line)), data, size);
  keep(hash, "json", r->case_line, strlen(r->case_line), path, sizeof path);
  fprintf(stderr, "case: %s\n", r->case_line);
  if (!target) return;
  const bool kept = keep(hash, "input", data, size, path, sizeof path);
  fprintf(stderr,
          "The case alone does not repeat this: the order of its run is in the input.\n  repro: replay_%s ",
          target);
  fa_print_shell_word(stderr, kept ? path : "INPUT");
  fputc('\n', stderr);
}

void fa_fuzzer_finding(const fa_case *c, fa_result *r) {
  show(c, r, NULL, NULL, 0);
  abort();
}

void fa_fuzzer_finding_of_input(const fa_case *c, fa_result *r, const char *target, const uint8_t *data,
                                size_t size) {
  show(c, r, target, data, size);
  abort();
}

char *fa_fuzzer_text(const uint8_t *data, size_t n) {
  char *text = malloc(n + 1);
  FA_ASSERT(text);
  if (n) memcpy(text, data, n);
  text[n] = 0;
  return text;
}
