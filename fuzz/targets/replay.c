/* A fuzz target without libFuzzer: runs every given file, and every file of the given folders, once, in the
 * order of their names, so that the corpus is a plain test with any compiler. Exit 1 if there was nothing to
 * run, 2 if something cannot be read; a finding ends it. $FA_REPLAY_VERBOSE: prints each file's name before
 * it runs. */
#include "fuzz/inputs/fuzzer.h"

#include "fuzz/workers/memory.h"
#include "report/text/progress.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Never called: nothing mutates here. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size) {
  (void)data;
  (void)max_size;
  return size;
}

static int run_file(const char *path, int64_t *n_run) {
  FILE *file = fopen(path, "rb");
  struct stat info;
  if (!file || fstat(fileno(file), &info) != 0 || !S_ISREG(info.st_mode)) {
    fprintf(stderr, "replay: %s cannot be read\n", path);
    if (file) fclose(file);
    return 2;
  }
  const size_t size = (size_t)info.st_size;
  uint8_t *data = malloc(size + 1);
  const bool ok = data && fread(data, 1, size, file) == size;
  fclose(file);
  if (ok) {
    if (getenv("FA_REPLAY_VERBOSE")) fprintf(stderr, "%s\n", path);
    LLVMFuzzerTestOneInput(data, size);
    ++*n_run;
  } else {
    fprintf(stderr, "replay: %s cannot be read\n", path);
  }
  free(data);
  return ok ? 0 : 2;
}

static int is_visible(const struct dirent *e) {
  return e->d_name[0] != '.';
}

static int run_folder(const char *path, int64_t *n_run) {
  struct dirent **entry;
  const int n = scandir(path, &entry, is_visible, alphasort);
  int code = n < 0 ? 2 : 0;
  if (n < 0) fprintf(stderr, "replay: folder %s cannot be read\n", path);
  for (int i = 0; i < n; ++i) {
    char name[4096];
    snprintf(name, sizeof name, "%s/%s", path, entry[i]->d_name);
    if (code == 0) code = run_file(name, n_run);
    free(entry[i]);
  }
  if (n >= 0) free(entry);
  return code;
}

int main(int argc, char **argv) {
  struct stat info;
  int64_t n_run = 0;
  int code = 0;
  fa_memory_startup();
  const double start = fa_seconds_now();
  for (int i = 1; i < argc && code == 0; ++i)
    code = stat(argv[i], &info) == 0 && S_ISDIR(info.st_mode) ? run_folder(argv[i], &n_run)
                                                              : run_file(argv[i], &n_run);
  printf("%lld inputs, %.2f s\n", (long long)n_run, fa_seconds_now() - start);
  if (code == 0 && n_run == 0) fprintf(stderr, "replay: no input was given\n"), code = 1;
  return code;
}
