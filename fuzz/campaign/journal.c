#include "fuzz/campaign/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A record lock, not flock: a forked worker that briefly outlives a killed parent must not hold it. */
static fa_status lock(int fd, const char *path, fa_error *err) {
  struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  if (fcntl(fd, F_SETLK, &whole) == 0) return FA_OK;
  if (errno != EACCES && errno != EAGAIN) return FA_OK; /* a file system without locks */
  struct flock other = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  char who[64] = "another process";
  if (fcntl(fd, F_GETLK, &other) == 0 && other.l_type != F_UNLCK && other.l_pid > 0)
    snprintf(who, sizeof who, "process %ld", (long)other.l_pid);
  return fa_fail(err, FA_ERR_INPUT, "%s: %s is writing it", path, who);
}

/* Reads through the same descriptor, because closing a second one would release the lock. */
static fa_status read_whole_lines(int fd, const char *path, char **text, fa_error *err) {
  struct stat st;
  if (fstat(fd, &st) != 0) return fa_fail(err, FA_ERR_IO, "%s: %s", path, strerror(errno));
  size_t n = (size_t)st.st_size, used = 0;
  char *bytes = malloc(n + 1);
  if (!bytes) return fa_fail(err, FA_ERR_MEMORY, "%s: out of memory", path);
  while (used < n) {
    ssize_t got = pread(fd, bytes + used, n - used, (off_t)used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      free(bytes);
      return fa_fail(err, FA_ERR_IO, "%s: %s", path, strerror(errno));
    }
    if (got == 0) break;
    used += (size_t)got;
  }
  while (used > 0 && bytes[used - 1] != '\n') --used; /* an incomplete line: its case is run again */
  bytes[used] = 0;
  if (memchr(bytes, 0, used)) { /* from the disk, not from us: do not silently lose what follows */
    free(bytes);
    return fa_fail(err, FA_ERR_INPUT, "%s: damaged: there is a NUL byte in it", path);
  }
  if (used < n && ftruncate(fd, (off_t)used) != 0) {
    free(bytes);
    return fa_fail(err, FA_ERR_IO, "%s: %s", path, strerror(errno));
  }
  *text = bytes;
  return FA_OK;
}

/* The file at path may have been removed or renamed between open and lock. */
static bool is_still_there(int fd, const char *path) {
  struct stat ours, named;
  return fstat(fd, &ours) == 0 && stat(path, &named) == 0 && ours.st_ino == named.st_ino &&
         ours.st_dev == named.st_dev;
}

static fa_status move_away(const char *path, fa_error *err) {
  size_t n = strlen(path) + 8;
  char *old = malloc(n);
  if (!old) return fa_fail(err, FA_ERR_MEMORY, "%s: out of memory", path);
  snprintf(old, n, "%s.old", path);
  fa_status status = FA_OK;
  if (rename(path, old) != 0)
    status = fa_fail(err, FA_ERR_IO, "%s: cannot become %s: %s", path, old, strerror(errno));
  else
    fprintf(stderr, "%s: of a run that did not end (--resume would go on with it); kept as %s\n", path, old);
  free(old);
  return status;
}

static fa_status try_open(fa_journal *j, bool keep, char **text, bool *again, fa_error *err) {
  j->fd = open(j->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (j->fd < 0) return fa_fail(err, FA_ERR_IO, "%s: %s", j->path, strerror(errno));
  fa_status status = lock(j->fd, j->path, err);
  *again = status == FA_OK && !is_still_there(j->fd, j->path);
  if (status == FA_OK && !*again) status = read_whole_lines(j->fd, j->path, text, err);
  if (status == FA_OK && !*again && !keep && (*text)[0]) {
    status = move_away(j->path, err);
    *again = true;
  }
  if (status == FA_OK && !*again) return FA_OK;
  free(*text);
  *text = NULL;
  close(j->fd);
  j->fd = -1;
  return status;
}

fa_status fa_journal_open(fa_journal *j, const char *path, bool keep, char **text, fa_error *err) {
  *j = (fa_journal){.path = strdup(path), .fd = -1};
  *text = NULL;
  bool again = true;
  fa_status status = j->path ? FA_OK : fa_fail(err, FA_ERR_MEMORY, "%s: out of memory", path);
  for (int i = 0; status == FA_OK && again; ++i) {
    status = i < 100 ? try_open(j, keep, text, &again, err)
                     : fa_fail(err, FA_ERR_IO, "%s: others keep removing it", path);
  }
  if (status == FA_OK) return FA_OK;
  free(j->path);
  *j = (fa_journal){.fd = -1};
  return status;
}

/* Continues where the last write stopped, in the middle of a line if necessary. */
static bool write_waiting(fa_journal *j) {
  while (j->n_waiting > 0) {
    ssize_t put = write(j->fd, j->waiting, j->n_waiting);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    j->n_waiting -= (size_t)put;
    memmove(j->waiting, j->waiting + put, j->n_waiting);
  }
  return true;
}

void fa_journal_append(fa_journal *j, const char *line) {
  size_t n = strlen(line);
  if (j->capacity - j->n_waiting < n + 1) {
    size_t capacity = 2 * (j->n_waiting + n + 1);
    char *bigger = realloc(j->waiting, capacity);
    if (!bigger) {
      j->lost = true; /* this result is computed again after --resume */
      return;
    }
    j->waiting = bigger;
    j->capacity = capacity;
  }
  memcpy(j->waiting + j->n_waiting, line, n);
  j->waiting[j->n_waiting + n] = '\n';
  j->n_waiting += n + 1;
  if (write_waiting(j) || j->told) return;
  fprintf(stderr, "fa-verify: %s: cannot write: %s; the run goes on, and its results wait in memory\n",
          j->path, strerror(errno));
  j->told = true;
}

fa_status fa_journal_close(fa_journal *j, bool remove_it, fa_error *err) {
  fa_status status = FA_OK;
  if (!j->path) return FA_OK;
  if (!write_waiting(j) || j->lost)
    status = fa_fail(err, FA_ERR_IO, "%s: cannot write: %s; what it lacks is run again by --resume", j->path,
                     j->lost ? "out of memory" : strerror(errno));
  if (status == FA_OK && remove_it) unlink(j->path); /* before the lock is released */
  close(j->fd);
  free(j->path);
  free(j->waiting);
  *j = (fa_journal){.fd = -1};
  return status;
}
