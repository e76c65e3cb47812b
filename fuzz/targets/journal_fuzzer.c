/* Arbitrary bytes as journals: what --resume accepts are a run's results, in order and each once; they make a
 * report, and lines appended afterwards follow them. Everything else is rejected with a message. */
#include "fuzz/inputs/fuzzer.h"

#include "fuzz/campaign/journal.h"
#include "fuzz/campaign/resume.h"

#include <cjson/cJSON.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ADDED "{\"name\":\"added\",\"state\":\"PASS\",\"item\":1099511627776,\"elapsed\":1}"

/* A file in memory that can be opened by name. */
static const char *journal_path(const uint8_t *data, size_t size) {
  static char path[64];
  static int fd = -1;
  if (fd < 0) {
    fd = memfd_create("journal", 0);
    FA_ASSERT(fd >= 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  }
  FA_ASSERT(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
  return path;
}

static void check_message(const fa_error *err, const char *path) {
  FA_FUZZ_CHECK(strncmp(err->text, path, strlen(path)) == 0, "no file in \"%s\"", err->text);
}

static void check_lines(const fa_resume *r) {
  const fa_report_pair host[] = {{NULL, NULL}};
  const fa_report_head head = {"1", "", "", "", "", "", host};
  fa_report report;
  fa_error err = {""};
  FA_ASSERT(fa_report_init(&report, &head, &err) == FA_OK);
  for (int64_t i = 0; i < r->n; ++i) {
    fa_report_line line;
    FA_FUZZ_CHECK(i == 0 || r->line[i - 1].item < r->line[i].item, "line %lld", (long long)i);
    FA_FUZZ_CHECK(fa_resume_has(r, r->line[i].item) && r->line[i].item < r->end, "line %lld", (long long)i);
    FA_FUZZ_CHECK(fa_report_line_parse(r->line[i].text, &line, &err) == FA_OK, "%s", err.text);
    FA_FUZZ_CHECK(fa_report_add_line(&report, &line, &err) == FA_OK, "%s", err.text);
    fa_report_line_free(&line);
  }
  FA_FUZZ_CHECK(cJSON_GetArraySize(report.cases) == r->n && report.summary.total == r->n, "%lld lines",
                (long long)r->n);
  char *text = cJSON_PrintUnformatted(report.root);
  if (text) { /* as a file would be read back, except the summary, which comes last */
    cJSON *again = cJSON_Parse(text);
    FA_FUZZ_CHECK(again, "%s", text);
    cJSON_Delete(again);
  }
  cJSON_free(text);
  fa_report_free(&report);
}

/* Opens, reads and closes it. Returns the number of results, -1: rejected. */
static int64_t read_journal(const char *path, const cJSON *run, const char *append) {
  fa_journal journal;
  fa_resume resume;
  fa_error err = {""};
  char *text = NULL;
  if (fa_journal_open(&journal, path, true, &text, &err) != FA_OK) {
    check_message(&err, path);
    return -1;
  }
  const size_t n = strlen(text);
  FA_FUZZ_CHECK(n == 0 || text[n - 1] == '\n', "a torn line: %s", text);
  int64_t n_results = -1;
  if (fa_resume_read(&resume, text, path, run, &err) == FA_OK) {
    n_results = resume.n;
    if (n_results > 0) check_lines(&resume);
    if (append && resume.command) fa_journal_append(&journal, append);
    fa_resume_free(&resume);
  } else {
    check_message(&err, path);
  }
  FA_FUZZ_CHECK(fa_journal_close(&journal, false, &err) == FA_OK, "%s", err.text);
  return n_results;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  cJSON *run = cJSON_Parse("{\"seed\":\"7\"}");
  FA_ASSERT(run);
  const char *path = journal_path(data, size);
  const bool had_it = memmem(data, size, "1099511627776", 13) != NULL;
  const int64_t n = read_journal(path, run, ADDED);
  const int64_t now = n < 0 || had_it ? n : read_journal(path, run, NULL);
  FA_FUZZ_CHECK(n <= 0 || had_it || now == n + 1, "%lld results, then %lld", (long long)n, (long long)now);
  cJSON_Delete(run);
  return 0;
}
