/* Case files on disk. */
#include "cases/base/atomic_file.h"
#include "cases/codec/file.h"
#include "cases/codec/json.h"
#include "cases/recipe/case.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILE_BYTES ((size_t)256 << 20)

/* Reads the whole stream into malloc'd memory. It may be a pipe, so its length is unknown. */
static fa_status read_stream(FILE *in, const char *name, char **text, size_t *n_bytes, fa_error *err) {
  size_t n = 0, capacity = 0;
  char *buffer = NULL;
  for (;;) {
    if (n == capacity) {
      capacity = capacity ? 2 * capacity : 1 << 16;
      char *grown = n < MAX_FILE_BYTES ? realloc(buffer, capacity) : NULL;
      if (!grown) {
        free(buffer);
        if (n >= MAX_FILE_BYTES)
          return fa_fail(err, FA_ERR_INPUT, "%s: more than %zu bytes", name, MAX_FILE_BYTES);
        return fa_fail(err, FA_ERR_MEMORY, "%s: out of memory", name);
      }
      buffer = grown;
    }
    size_t got = fread(buffer + n, 1, capacity - n, in);
    n += got;
    if (got == 0) break;
  }
  if (ferror(in)) {
    free(buffer);
    return fa_fail(err, FA_ERR_IO, "%s: %s", name, strerror(errno));
  }
  *text = buffer;
  *n_bytes = n;
  return FA_OK;
}

fa_status fa_case_file_load(const char *path, fa_generate_fn generate, fa_case_list *out, fa_error *err) {
  bool is_stdin = strcmp(path, "-") == 0;
  char *text = NULL;
  size_t n_bytes = 0;
  FILE *in = is_stdin ? stdin : fopen(path, "rb");
  if (!in) return fa_fail(err, FA_ERR_IO, "%s: %s", path, strerror(errno));
  fa_status status = read_stream(in, path, &text, &n_bytes, err);
  if (!is_stdin) fclose(in);
  if (status != FA_OK) return status;
  status = fa_case_file_parse(text, n_bytes, path, generate, out, err);
  free(text);
  return status;
}

static fa_status write_cases(FILE *out, const fa_case *cases, int64_t n) {
  fprintf(out, "{ \"fa_cases\": 1,\n  \"cases\": [");
  for (int64_t i = 0; i < n; ++i) {
    char *line = fa_case_to_line(&cases[i]);
    if (!line) return FA_ERR_MEMORY;
    fprintf(out, "%s\n    %s", i ? "," : "", line);
    free(line);
  }
  fprintf(out, "%s] }\n", n ? "\n  " : "");
  return FA_OK;
}

fa_status fa_case_file_save(const char *path, const fa_case *cases, int64_t n, fa_error *err) {
  fa_new_file f;
  fa_status status = fa_new_file_open(&f, path, err);
  if (status != FA_OK) return status;
  status = write_cases(f.file, cases, n);
  if (status != FA_OK) fa_fail(err, status, "%s: out of memory", path);
  return fa_new_file_close(&f, status, err);
}
