#include "cases/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static fa_status write_all(int fd, const char *bytes, size_t n) {
  while (n > 0) {
    ssize_t done = write(fd, bytes, n);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return FA_ERR_IO;
    bytes += done;
    n -= (size_t)done;
  }
  return FA_OK;
}

fa_status fa_file_write_atomic(const char *path, const char *bytes, size_t n_bytes, fa_error *err) {
  size_t length = strlen(path) + 40;
  char *temp = malloc(length);
  if (!temp) return fa_fail(err, FA_ERR_MEMORY, "%s: out of memory", path);
  snprintf(temp, length, "%s.%ld.tmp", path, (long)getpid());
  fa_status status = FA_ERR_IO;
  int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) {
    fa_fail(err, FA_ERR_IO, "%s: cannot write: %s", path, strerror(errno));
    free(temp);
    return FA_ERR_IO;
  }
  if (write_all(fd, bytes, n_bytes) != FA_OK || fsync(fd) != 0) {
    fa_fail(err, FA_ERR_IO, "%s: cannot write: %s", path, strerror(errno));
    close(fd);
  } else if (close(fd) != 0 || rename(temp, path) != 0) {
    fa_fail(err, FA_ERR_IO, "%s: cannot write: %s", path, strerror(errno));
  } else {
    status = FA_OK;
  }
  if (status != FA_OK) unlink(temp);
  free(temp);
  return status;
}

fa_status fa_file_check_writable(const char *path, fa_error *err) {
  struct stat s;
  if (stat(path, &s) == 0 && S_ISDIR(s.st_mode))
    return fa_fail(err, FA_ERR_INPUT, "%s: is a directory; a file name is needed", path);
  const char *slash = strrchr(path, '/');
  size_t n = slash ? (size_t)(slash - path) : 0;
  char *folder = slash && n ? strndup(path, n) : strdup(slash ? "/" : ".");
  if (!folder) return fa_fail(err, FA_ERR_MEMORY, "%s: out of memory", path);
  fa_status status = FA_OK;
  if (access(folder, W_OK | X_OK) != 0)
    status =
        fa_fail(err, FA_ERR_INPUT, "%s: cannot write there: folder %s: %s", path, folder, strerror(errno));
  free(folder);
  return status;
}

fa_status fa_file_read(const char *path, char **bytes, size_t *n_bytes, fa_error *err) {
  bool is_stdin = strcmp(path, "-") == 0;
  FILE *f = is_stdin ? stdin : fopen(path, "rb");
  if (!f) return fa_fail(err, FA_ERR_IO, "%s: %s", path, strerror(errno));
  size_t used = 0, capacity = 65536;
  char *text = malloc(capacity);
  fa_status status = FA_OK;
  while (text) {
    size_t got = fread(text + used, 1, capacity - 1 - used, f);
    if (got == 0) break;
    used += got;
    if (used + 1 < capacity) continue;
    char *bigger = realloc(text, capacity *= 2);
    if (!bigger) free(text);
    text = bigger;
  }
  if (!text)
    status = fa_fail(err, FA_ERR_MEMORY, "%s: out of memory", path);
  else if (ferror(f))
    status = fa_fail(err, FA_ERR_IO, "%s: %s", path, strerror(errno));
  if (!is_stdin) fclose(f);
  if (status != FA_OK) {
    free(text);
    return status;
  }
  text[used] = 0;
  *bytes = text;
  *n_bytes = used;
  return FA_OK;
}
