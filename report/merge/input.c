#include "report/merge/input.h"

#include "cases/base/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* So much is read at once: with less, calls of the system cost more than reading. */
enum { AHEAD = 1 << 20 };

/* ---- inputs ---- */

static fa_status hold(fa_input *in, const fa_merge_source *source, fa_error *err) {
  size_t n = source->n;
  fa_status status = FA_OK;
  if (source->text) {
    in->text = malloc(n + 1);
    if (!in->text) return fa_fail(err, FA_ERR_MEMORY, "%s: out of memory", in->path);
    memcpy(in->text, source->text, n);
    in->text[n] = 0;
  } else {
    status = fa_file_read(in->path, &in->text, &n, err);
  }
  in->n = (int64_t)n;
  return status == FA_ERR_IO ? FA_ERR_INPUT : status; /* the user named the file */
}

fa_status fa_input_open(fa_input *in, const fa_merge_source *source, fa_error *err) {
  *in = (fa_input){.path = source->path};
  const bool on_disk = !source->text && strcmp(source->path, "-") != 0 && stat(in->path, &in->seen) == 0;
  if (!on_disk || !S_ISREG(in->seen.st_mode)) return hold(in, source, err);
  in->n = in->seen.st_size;
  return FA_OK;
}

void fa_input_close(fa_input *in) {
  free(in->text);
  in->text = NULL;
}

/* ---- windows ---- */

fa_view fa_view_make(void) {
  return (fa_view){.fd = -1};
}

static void leave(fa_view *w) {
  if (w->fd >= 0) close(w->fd);
  w->fd = -1;
  w->in = NULL;
  w->n = 0;
}

void fa_view_free(fa_view *w) {
  leave(w);
  free(w->buffer);
  *w = fa_view_make();
}

static bool is_the_same(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
         a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Only the files in use are open, so that a thousand reports do not need a thousand descriptors. */
static fa_status enter(fa_view *w, const fa_input *in, fa_error *err) {
  struct stat now;
  leave(w);
  w->in = in;
  if (in->text) return FA_OK;
  w->fd = open(in->path, O_RDONLY | O_CLOEXEC);
  if (w->fd < 0 || fstat(w->fd, &now) != 0) {
    const fa_status status = fa_fail(err, FA_ERR_INPUT, "%s: %s", in->path, strerror(errno));
    leave(w);
    return status;
  }
  if (is_the_same(&now, &in->seen)) return FA_OK;
  leave(w);
  return fa_fail(err, FA_ERR_IO, "%s: changed while it was read", in->path);
}

static bool grow(fa_view *w, int64_t capacity) {
  if (w->capacity >= capacity) return true;
  char *more = realloc(w->buffer, (size_t)capacity);
  if (!more) return false;
  w->buffer = more;
  w->capacity = capacity;
  return true;
}

static fa_status fill(fa_view *w, int64_t offset, int64_t n, fa_error *err) {
  const int64_t left = w->in->n - offset, want = n + AHEAD < left ? n + AHEAD : left;
  w->n = 0;
  if (!grow(w, want)) return fa_fail(err, FA_ERR_MEMORY, "%s: out of memory", w->in->path);
  w->start = offset;
  while (w->n < want) {
    const ssize_t got = pread(w->fd, w->buffer + w->n, (size_t)(want - w->n), (off_t)(offset + w->n));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fa_fail(err, FA_ERR_IO, "%s: %s", w->in->path, strerror(errno));
    if (got == 0) return fa_fail(err, FA_ERR_IO, "%s: changed while it was read", w->in->path);
    w->n += got;
  }
  return FA_OK;
}

fa_status fa_view_get(fa_view *w, const fa_input *in, int64_t offset, int64_t n, const char **out,
                      fa_error *err) {
  fa_status status = w->in == in ? FA_OK : enter(w, in, err);
  if (status != FA_OK) return status;
  FA_ASSERT(offset >= 0 && n >= 0 && offset + n <= in->n);
  if (in->text) {
    *out = in->text + offset;
    return FA_OK;
  }
  if (offset < w->start || offset + n > w->start + w->n) status = fill(w, offset, n, err);
  *out = w->buffer + (offset - w->start);
  return status;
}

int64_t fa_view_has(const fa_view *w, int64_t offset) {
  return w->in->text ? w->in->n - offset : w->start + w->n - offset;
}
