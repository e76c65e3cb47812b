/* Files that appear whole or not at all: what they may replace, and what they must not. */
#include "cases/base/atomic_file.h"
#include "tests/support/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/fa_atomic_XXXXXX";

static bool holds(const char *path, const char *text) {
  char *bytes = NULL;
  size_t n = 0;
  if (fa_file_read(path, &bytes, &n, NULL) != FA_OK) return false;
  const bool same = n == strlen(text) && memcmp(bytes, text, n) == 0;
  free(bytes);
  return same;
}

static int n_files(void) {
  int n = 0;
  DIR *d = opendir(".");
  REQUIRE(d != NULL);
  while (readdir(d)) ++n;
  closedir(d);
  return n - 2; /* . and .. */
}

static fa_status put(const char *path, const char *text, fa_error *err) {
  return fa_file_write_atomic(path, text, strlen(text), err);
}

static void test_replaces(void) {
  fa_error err = {""};
  struct stat s;
  umask(027);
  CHECK(fa_file_check_writable("a", &err) == FA_OK);
  CHECK(put("a", "one", &err) == FA_OK && holds("a", "one"));
  CHECK(stat("a", &s) == 0 && (s.st_mode & 0777) == 0640);
  CHECK(fa_file_check_writable("a", &err) == FA_OK);
  CHECK(put("a", "two", &err) == FA_OK && holds("a", "two"));
  CHECK(put("a", "", &err) == FA_OK && holds("a", ""));
  CHECK(n_files() == 1);
}

/* A link stays a link: /dev/stdout is one. */
static void test_links(void) {
  fa_error err = {""};
  struct stat s;
  REQUIRE(mkdir("inner", 0777) == 0 && symlink("inner/real", "link") == 0);
  CHECK(put("link", "through nothing", &err) == FA_OK && holds("link", "through nothing"));
  REQUIRE(put("inner/real", "old", &err) == FA_OK && unlink("link") == 0 &&
          symlink("inner/real", "link") == 0);
  CHECK(fa_file_check_writable("link", &err) == FA_OK);
  CHECK(put("link", "new", &err) == FA_OK && holds("inner/real", "new"));
  CHECK(lstat("link", &s) == 0 && S_ISLNK(s.st_mode));
  unlink("link"), unlink("inner/real"), rmdir("inner");
  CHECK(n_files() == 1);
}

static void refused(const char *path, const char *why) {
  fa_error err = {""};
  CHECK_MSG(fa_file_check_writable(path, &err) == FA_ERR_INPUT && strstr(err.text, why), "%s: %s", path,
            err.text);
  CHECK_MSG(put(path, "text", &err) == FA_ERR_IO && strstr(err.text, why), "%s: %s", path, err.text);
}

static void test_other_things(void) {
  struct stat s;
  REQUIRE(mkfifo("pipe", 0666) == 0 && mkdir("inner", 0777) == 0 && symlink("/dev/null", "null") == 0);
  refused("pipe", "is a device or a pipe");
  refused("null", "is a device or a pipe");
  refused("inner", "is a directory");
  CHECK(stat("null", &s) == 0 && S_ISCHR(s.st_mode));
  unlink("pipe"), unlink("null"), rmdir("inner");
  fa_error err = {""};
  CHECK(fa_file_check_writable("none/x", &err) == FA_ERR_INPUT && put("none/x", "text", &err) == FA_ERR_IO);
  CHECK(n_files() == 1);
}

/* As on a full disk: in the first write, or after some that succeeded. */
static void test_does_not_fit(void) {
  static char large[1 << 20];
  const struct rlimit little = {100000, RLIM_INFINITY}, all = {RLIM_INFINITY, RLIM_INFINITY};
  fa_error err = {""};
  fa_new_file f;
  memset(large, 'x', sizeof large - 1);
  signal(SIGXFSZ, SIG_IGN);
  REQUIRE(put("a", "old", &err) == FA_OK);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &little) == 0);
  CHECK_MSG(put("a", large, &err) == FA_ERR_IO && strstr(err.text, "a: cannot write: File too large"), "%s",
            err.text);
  REQUIRE(fa_new_file_open(&f, "a", &err) == FA_OK);
  for (int i = 0; i < 40000; ++i) fprintf(f.file, "%d\n", i);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &all) == 0); /* there is room again from here on */
  fprintf(f.file, "the end\n");
  CHECK_MSG(fa_new_file_close(&f, FA_OK, &err) == FA_ERR_IO && strstr(err.text, "a: cannot write: "), "%s",
            err.text);
  REQUIRE(fa_new_file_open(&f, "a", &err) == FA_OK);
  fa_fail(&err, FA_ERR_MEMORY, "whoever wrote had no memory");
  CHECK(fa_new_file_close(&f, FA_ERR_MEMORY, &err) == FA_ERR_MEMORY && strstr(err.text, "no memory"));
  CHECK(holds("a", "old") && n_files() == 1);
}

int main(void) {
  REQUIRE(mkdtemp(folder) && chdir(folder) == 0);
  test_replaces();
  test_links();
  test_other_things();
  test_does_not_fit();
  unlink("a");
  REQUIRE(chdir("/") == 0 && rmdir(folder) == 0);
  return check_done();
}
