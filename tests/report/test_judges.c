/* Who judged and who made the data: counted, in words, in reports and back. */
#include "report/judges/record.h"
#include "tests/support/check.h"

#include <cjson/cJSON.h>
#include <string.h>

static const fa_judged_how hows[] = {{.by = FA_JUDGED_BY_GPU, .made = FA_MADE_BY_GPU},
                                     {.by = FA_JUDGED_BY_BOTH, .made = FA_MADE_BY_GPU, .apart = 0x1p-20},
                                     {.by = FA_JUDGED_BY_CPU, .made = FA_MADE_AFTER_GPU, .left = "a bias"},
                                     {.by = FA_JUDGED_BY_GPU},
                                     {.by = FA_JUDGED_BY_CPU}};
enum { N = sizeof hows / sizeof *hows };

static void test_words(void) {
  static const char *const want = "judged on the GPU: 2, by both: 1, whose ratios are 9.5e-07 apart at most, "
                                  "left to the CPU: 1 (1 a bias); its data: 2, failed at: 1";
  fa_judged_counts c = {0};
  char text[FA_JUDGED_TEXT];
  fa_judged_count(&c, &hows[4]);
  fa_judged_text(&c, text);
  CHECK_MSG(text[0] == 0, "%s", text);
  for (int i = 0; i < N; ++i) fa_judged_count(&c, &hows[i]);
  fa_judged_text(&c, text);
  CHECK_MSG(strcmp(text, want) == 0, "%s", text);
}

static void test_entries(void) {
  for (int i = 0; i < N; ++i) {
    cJSON *entry = cJSON_CreateObject();
    fa_judged_add(entry, &hows[i]);
    const fa_judged_how how = fa_judged_read(entry);
    CHECK(how.by == hows[i].by && how.made == hows[i].made && strcmp(how.left, hows[i].left) == 0);
    CHECK(how.apart == hows[i].apart);
    CHECK(i < 4 || cJSON_GetArraySize(entry) == 0);
    cJSON_Delete(entry);
  }
}

/* Twice the counts, of which one of each is taken back. */
static void test_summaries(void) {
  fa_judged_counts c = {0}, read;
  cJSON *one = cJSON_CreateObject(), *two = cJSON_CreateObject();
  for (int i = 0; i < N; ++i) fa_judged_count(&c, &hows[i]);
  fa_judged_counts_add(one, &c);
  fa_judged_counts_add(two, &c);
  fa_judged_counts_merge(one, two);
  fa_judged_counts_read(one, &read);
  CHECK(read.gpu == 4 && read.both == 2 && read.cpu == 2 && read.made_gpu == 4 && read.made_failed == 2);
  CHECK(read.apart == 0x1p-20);
  for (int i = 0; i < N; ++i) {
    cJSON *entry = cJSON_CreateObject();
    fa_judged_add(entry, &hows[i]);
    fa_judged_uncount(one, entry);
    cJSON_Delete(entry);
  }
  fa_judged_counts_read(one, &read);
  CHECK(read.gpu == 2 && read.both == 1 && read.cpu == 1 && read.made_gpu == 2 && read.made_failed == 1);
  cJSON_Delete(one);
  cJSON_Delete(two);
}

int main(void) {
  test_words();
  test_entries();
  test_summaries();
  return check_done();
}
