#include "gpu/backends/exec_memory.h"

#include "cases/tensors/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FIRST_BYTES ((size_t)8 << 20)
#define LARGE_BYTES ((size_t)1 << 30) /* given back to the system once it is no longer needed */
#define ALIGNMENT ((size_t)4096)

static size_t size_of(const fa_buffer *b) {
  return (2 * FA_GUARD_BYTES + b->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static fa_status fail(size_t bytes, fa_error *err) {
  return fa_fail(err, FA_ERR_MEMORY, "no shared memory of %zu bytes: %s", bytes, strerror(errno));
}

/* Twice the size each time, so that the child seldom has to map it again. Pages exist once they are touched. */
static fa_status reserve(fa_exec_memory *m, size_t bytes, fa_error *err) {
  size_t want = m->map ? m->bytes : FIRST_BYTES;
  while (want < bytes) want *= 2;
  if (m->map && want == m->bytes) return FA_OK;
  const int fd = m->map ? m->fd : memfd_create("fa-exec", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return fail(want, err);
  fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK); /* a child that made it shorter would kill this process */
  if (m->map) munmap(m->map, m->bytes);
  m->map = NULL;
  void *map = ftruncate(fd, (off_t)want) == 0 ? mmap(NULL, want, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                                              : MAP_FAILED;
  if (map == MAP_FAILED) {
    const fa_status status = fail(want, err);
    close(fd);
    return status;
  }
  m->map = map, m->bytes = want, m->fd = fd;
  snprintf(m->path, sizeof m->path, "/proc/%lld/fd/%d", (long long)getpid(), fd);
  return FA_OK;
}

static const struct fa_exec_part *part_of(const fa_exec_memory *m, const fa_buffer *b) {
  for (int i = 0; i < m->n_parts; ++i)
    if (m->part[i].buffer == b) return &m->part[i];
  return NULL;
}

fa_status fa_exec_memory_place(fa_exec_memory *m, const fa_exec_tensors *x, fa_error *err) {
  size_t bytes = 0, before = 0;
  for (int i = 0; i < m->n_parts; ++i) before = m->part[i].at;
  m->n_parts = 0;
  for (int i = 0; i < x->n; ++i) {
    if (part_of(m, x->at[i].buffer)) continue;
    m->part[m->n_parts++] = (struct fa_exec_part){x->at[i].buffer, bytes};
    bytes += size_of(x->at[i].buffer);
  }
  if (m->map && before > LARGE_BYTES) /* a child that fails here only keeps the pages */
    fallocate(m->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)m->bytes);
  return reserve(m, bytes, err);
}

size_t fa_exec_memory_offset(const fa_exec_memory *m, const fa_exec_tensor *e) {
  const struct fa_exec_part *part = part_of(m, e->buffer);
  FA_ASSERT(part);
  return part->at + (size_t)(e->tensor->data - e->buffer->base);
}

/* Copies a buffer's guards and the parts of its payload that exist. */
static void copy(const struct fa_exec_part *p, char *region, bool out) {
  const fa_buffer *b = p->buffer;
  const size_t back = FA_GUARD_BYTES + b->bytes;
  for (int i = -2; i < fa_buffer_n_spans(b); ++i) {
    const fa_span s = i >= 0 ? fa_buffer_span(b, i) : (fa_span){0, 0};
    const size_t from = i == -2 ? 0 : i == -1 ? back : FA_GUARD_BYTES + s.begin;
    const size_t bytes = i < 0 ? FA_GUARD_BYTES : s.end - s.begin;
    char *here = b->base + from, *there = region + p->at + from;
    memcpy(out ? here : there, out ? there : here, bytes);
  }
}

void fa_exec_memory_copy_in(const fa_exec_memory *m) {
  for (int i = 0; i < m->n_parts; ++i) copy(&m->part[i], m->map, false);
}

void fa_exec_memory_copy_out(const fa_exec_memory *m) {
  for (int i = 0; i < m->n_parts; ++i) copy(&m->part[i], m->map, true);
}

bool fa_exec_memory_differs(const fa_exec_memory *m, const fa_buffer *b) {
  const struct fa_exec_part *part = part_of(m, b);
  FA_ASSERT(part && !fa_buffer_is_virtual(b));
  return memcmp(m->map + part->at, b->base, 2 * FA_GUARD_BYTES + b->bytes) != 0;
}

void fa_exec_memory_close(fa_exec_memory *m) {
  if (m->map) munmap(m->map, m->bytes), close(m->fd);
  memset(m, 0, sizeof *m);
}
