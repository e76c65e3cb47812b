/* Arbitrary bytes as case files: what is accepted is valid and survives being written and read again;
 * everything else is rejected with a message. */
#include "cases/codec/file.h"
#include "cases/codec/json.h"
#include "fuzz/inputs/fuzzer.h"

#include "fuzz/generate/draw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file may ask for a million random cases: these are enough of them. */
#define MAX_RANDOM 8
/* Number of cases that are checked, because sweeps multiply. */
#define MAX_CHECKED 64

static fa_status generate_few(const char *profile, uint64_t seed, int64_t index, fa_case *out,
                              fa_error *err) {
  if (index >= MAX_RANDOM) return fa_fail(err, FA_ERR_INPUT, "enough random cases");
  return fa_generate(profile, seed, index, out, err);
}

static void check_case(const fa_case *c) {
  fa_case again;
  fa_error err = {""};
  FA_FUZZ_CHECK(fa_case_validate(c, &err) == FA_OK, "%s", err.text);
  char *line = fa_case_to_line(c);
  FA_ASSERT(line);
  FA_FUZZ_CHECK(fa_case_from_text(line, &again, &err) == FA_OK, "%s\n%s", err.text, line);
  FA_FUZZ_CHECK(fa_case_equal(c, &again), "another case comes back from %s", line);
  char *second = fa_case_to_line(&again);
  FA_ASSERT(second);
  FA_FUZZ_CHECK(strcmp(line, second) == 0, "%s\n%s", line, second);
  fa_case_free(&again);
  free(second);
  free(line);
}

/* The cases as JSON lines must give the same cases. */
static void check_file(const fa_case_list *l) {
  char *text = NULL;
  size_t n = 0;
  fa_case_list again = {0};
  fa_error err = {""};
  FILE *file = open_memstream(&text, &n);
  FA_ASSERT(file);
  for (int64_t i = 0; i < l->n; ++i) {
    char *line = fa_case_to_line(&l->v[i]);
    FA_ASSERT(line);
    fprintf(file, "%s\n", line);
    free(line);
  }
  FA_ASSERT(fclose(file) == 0);
  FA_FUZZ_CHECK(fa_case_file_parse(text, n, "again.jsonl", NULL, &again, &err) == FA_OK, "%s\n%s", err.text,
                text);
  FA_FUZZ_CHECK(again.n == l->n, "%lld cases of %lld:\n%s", (long long)again.n, (long long)l->n, text);
  for (int64_t i = 0; i < l->n; ++i)
    if (l->v[i].name[0])
      FA_FUZZ_CHECK(fa_case_equal(&l->v[i], &again.v[i]), "case %lld of\n%s", (long long)i, text);
  fa_case_list_free(&again);
  free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fa_case_list list = {0};
  fa_error err = {""};
  char *text = fa_fuzzer_text(data, size);
  const fa_status status = fa_case_file_parse(text, size, "fuzz.json", generate_few, &list, &err);
  if (status == FA_OK) {
    for (int64_t i = 0; i < list.n && i < MAX_CHECKED; ++i) check_case(&list.v[i]);
    if (list.n > 0 && list.n <= MAX_CHECKED) check_file(&list);
  } else {
    FA_FUZZ_CHECK(status == FA_ERR_INPUT || status == FA_ERR_MEMORY, "status %d", (int)status);
    FA_FUZZ_CHECK(strncmp(err.text, "fuzz.json", 9) == 0, "no file in \"%s\"", err.text);
    FA_FUZZ_CHECK(list.n == 0, "%lld cases of a refused file", (long long)list.n);
  }
  fa_case_list_free(&list);
  free(text);
  return 0;
}
