/* For test_schema.py: reads one JSON document per line and prints the parser's result for each: "accept",
 * "structural" (an error that schema.json must state too) or "cross" (a contradiction, which only the parser
 * finds), then a tab and the message. With an argument it prints what the parser knows: --keys or --fills. */
#include "cases/codec/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fa_status generate(const char *profile, uint64_t seed, int64_t index, fa_case *out, fa_error *err) {
  (void)profile, (void)seed, (void)index;
  if (fa_case_init(out) == FA_OK) return FA_OK;
  return fa_fail(err, FA_ERR_MEMORY, "out of memory");
}

static void classify(const char *text, size_t n) {
  fa_case_list list = {0};
  fa_error err = {""};
  bool structural;
  fa_status status = fa_case_file_classify(text, n, "doc", generate, &list, &structural, &err);
  const int first_line = (int)strcspn(err.text, "\n"); /* messages about expressions have several; one here */
  printf("%s\t%.*s\n",
         status == FA_OK ? "accept"
         : structural    ? "structural"
                         : "cross",
         first_line, err.text);
  fa_case_list_free(&list);
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "--keys") == 0)
    for (const fa_case_key *k = fa_case_keys; k->key; ++k) puts(k->key);
  else if (argc > 1 && strcmp(argv[1], "--fills") == 0)
    for (int f = 0; f < FA_N_FILLS; ++f) {
      const fa_fill_info *info = fa_fill_describe(f);
      printf("%s %s\n",
             info->bias_only    ? "bias"
             : info->do_only    ? "do"
             : info->lse_only   ? "lse"
             : info->sinks_only ? "sinks"
                                : "any",
             info->name);
    }
  else {
    char *line = NULL;
    size_t size = 0;
    ssize_t n;
    while ((n = getline(&line, &size, stdin)) > 0) classify(line, (size_t)n);
    free(line);
  }
  return 0;
}
