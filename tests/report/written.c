#include "tests/report/written.h"

#include "cases/base/atomic_file.h"
#include "report/html/page.h"
#include "report/junit.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <unistd.h>

char *written(const struct cJSON *root, bool page) {
  char path[] = "test_report_written.XXXXXX", *text = NULL;
  const int file = mkstemp(path);
  size_t n = 0;
  fa_error err = {""};
  REQUIRE(file >= 0 && close(file) == 0);
  REQUIRE((page ? fa_page_write(root, NULL, path, &err) : fa_report_write_junit(root, path, &err)) == FA_OK);
  REQUIRE(fa_file_read(path, &text, &n, &err) == FA_OK);
  unlink(path);
  return text;
}
