#include "cases/base/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Checks what is at path already: nothing, or a file that may be replaced. Returns NULL, or why it may
 * not. */
static const char *obstacle(const char *path) {
  struct stat s;
  if (stat(path, &s) != 0 || S_ISREG(s.st_mode)) return NULL;
  return S_ISDIR(s.st_mode) ? "is a directory; a file name is needed"
                            : "is a device or a pipe; a file name is needed";
}

/* The target of a symbolic link, also when that target does not exist. */
static char *behind_links(const char *path) {
  char *target = realpath(path, NULL);
  return target || errno == ENOMEM ? target : strdup(path);
}

/* O_EXCL and a plain mode, not mkstemp: the new file must have the permissions that the user's umask asks
 * for. */
static FILE *open_beside(const char *target, char *temporary, size_t size) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    snprintf(temporary, size, "%s.%ld.%d.tmp", target, (long)getpid(), attempt);
    const int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) return fdopen(fd, "wb");
    if (errno != EEXIST) return NULL;
  }
  return NULL;
}

fa_status fa_new_file_open(fa_new_file *f, const char *path, fa_error *err) {
  const char *why = obstacle(path);
  *f = (fa_new_file){.path = path};
  if (why) return fa_fail(err, FA_ERR_IO, "%s: cannot write: %s", path, why);
  f->target = behind_links(path);
  const size_t size = f->target ? strlen(f->target) + 64 : 0;
  f->temporary = f->target ? malloc(size) : NULL;
  if (f->temporary) f->file = open_beside(f->target, f->temporary, size);
  if (f->file) errno = 0;
  if (f->file) return FA_OK;
  const fa_status status = f->temporary
                               ? fa_fail(err, FA_ERR_IO, "%s: cannot write: %s", path, strerror(errno))
                               : fa_fail(err, FA_ERR_MEMORY, "%s: out of memory", path);
  free(f->temporary);
  free(f->target);
  return status;
}

fa_status fa_new_file_close(fa_new_file *f, fa_status status, fa_error *err) {
  bool ok = status == FA_OK && fflush(f->file) == 0 && !ferror(f->file) && fsync(fileno(f->file)) == 0;
  int why = errno ? errno : EIO; /* probably set by an earlier write, which only ferror remembers */
  if (fclose(f->file) != 0 && ok) ok = false, why = errno;
  if (ok && rename(f->temporary, f->target) != 0) ok = false, why = errno;
  if (!ok) unlink(f->temporary);
  if (!ok && status == FA_OK)
    status = fa_fail(err, FA_ERR_IO, "%s: cannot write: %s", f->path, strerror(why));
  free(f->temporary);
  free(f->target);
  return status;
}

fa_status fa_file_write_atomic(const char *path, const char *bytes, size_t n_bytes, fa_error *err) {
  fa_new_file f;
  fa_status status = fa_new_file_open(&f, path, err);
  if (status != FA_OK) return status;
  fwrite(bytes, 1, n_bytes, f.file); /* closing reports a failure */
  return fa_new_file_close(&f, FA_OK, err);
}

fa_status fa_file_check_writable(const char *path, fa_error *err) {
  const char *why = obstacle(path);
  if (why) return fa_fail(err, FA_ERR_INPUT, "%s: %s", path, why);
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
