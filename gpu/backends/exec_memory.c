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

/* So large that few children have to be started anew for a larger one: pages exist once they are touched. */
#define FIRST_INHERITED_BYTES ((size_t)256 << 20)

static int seals(const fa_exec_memory *m) {
  if (!m->inherited) return F_SEAL_SHRINK; /* a child that made it shorter would kill this process */
  return m->sealed ? F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL : 0;
}

static void unmap(fa_exec_memory *m, bool close_it) {
  if (m->map) munmap(m->map, m->bytes);
  if (m->map && close_it) close(m->fd);
  m->map = NULL;
}

static fa_status map(fa_exec_memory *m, int fd, size_t bytes, fa_error *err) {
  void *there = ftruncate(fd, (off_t)bytes) == 0 && fcntl(fd, F_ADD_SEALS, seals(m)) == 0
                    ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                    : MAP_FAILED;
  if (there == MAP_FAILED) {
    const fa_status status = fail(bytes, err);
    close(fd);
    return status;
  }
  m->map = there, m->bytes = bytes, m->fd = fd;
  if (!m->inherited) snprintf(m->path, sizeof m->path, "/proc/%lld/fd/%d", (long long)getpid(), fd);
  return FA_OK;
}

/* Twice the size each time, so that the child seldom has to map it again. */
static fa_status reserve(fa_exec_memory *m, size_t bytes, fa_error *err) {
  const bool another = !m->map || m->inherited; /* than the one that there is */
  size_t want = m->map ? m->bytes : m->inherited ? FIRST_INHERITED_BYTES : FIRST_BYTES;
  while (want < bytes) want *= 2;
  if (m->map && want == m->bytes) return FA_OK;
  const int fd = another ? memfd_create("fa-exec", MFD_CLOEXEC | MFD_ALLOW_SEALING) : m->fd;
  if (fd < 0) return fail(want, err);
  unmap(m, another);
  m->renewed = m->inherited;
  for (int i = 0; i < m->n_parts && another; ++i) m->part[i].guarded = false;
  return map(m, fd, want, err);
}

fa_status fa_exec_memory_inherit(fa_exec_memory *m, int as, bool sealed, fa_error *err) {
  m->inherited = true, m->sealed = sealed;
  snprintf(m->path, sizeof m->path, "/proc/self/fd/%d", as);
  return reserve(m, 1, err);
}

static const struct fa_exec_part *part_of(const fa_exec_memory *m, const fa_buffer *b) {
  for (int i = 0; i < m->n_parts; ++i)
    if (m->part[i].buffer == b) return &m->part[i];
  return NULL;
}

/* A part of the last layout may be one of the new layout too: then its guards stand. */
static bool was_guarded(const struct fa_exec_part *old, int n, size_t at, size_t bytes) {
  for (int i = 0; i < n; ++i)
    if (old[i].at == at && old[i].bytes == bytes) return old[i].guarded;
  return false;
}

fa_status fa_exec_memory_place(fa_exec_memory *m, const fa_exec_tensors *x, fa_error *err) {
  struct fa_exec_part old[FA_EXEC_MAX_TENSORS];
  int n_old = m->n_parts;
  size_t at = m->first;
  const bool was_large = n_old > 0 && m->part[n_old - 1].at > LARGE_BYTES;
  memcpy(old, m->part, (size_t)n_old * sizeof *old);
  if (m->map && was_large) /* where this fails, pages are only kept */
    fallocate(m->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)m->bytes);
  if (!m->map || was_large) n_old = 0;
  m->n_parts = 0;
  for (int i = 0; i < x->n; ++i) {
    const fa_buffer *b = x->at[i].buffer;
    if (part_of(m, b)) continue;
    m->part[m->n_parts++] = (struct fa_exec_part){
        .buffer = b, .at = at, .bytes = b->bytes, .guarded = was_guarded(old, n_old, at, b->bytes)};
    at += size_of(b);
  }
  return reserve(m, at, err);
}

size_t fa_exec_memory_offset(const fa_exec_memory *m, const fa_exec_tensor *e) {
  const struct fa_exec_part *part = part_of(m, e->buffer);
  FA_ASSERT(part);
  return part->at + (size_t)(e->tensor->data - e->buffer->base);
}

/* Copies the parts of a buffer's payload that exist. */
static void copy_payload(const struct fa_exec_part *p, char *region, bool out) {
  const fa_buffer *b = p->buffer;
  for (int i = 0; i < fa_buffer_n_spans(b); ++i) {
    const fa_span s = fa_buffer_span(b, i);
    char *here = fa_buffer_payload(b) + s.begin, *there = region + p->at + FA_GUARD_BYTES + s.begin;
    memcpy(out ? here : there, out ? there : here, s.end - s.begin);
  }
}

/* Byte of a buffer, or of its part of the region, where its front or back guard begins. */
static size_t guard_at(const struct fa_exec_part *p, bool back) {
  return back ? FA_GUARD_BYTES + p->bytes : 0;
}

void fa_exec_memory_copy_in(fa_exec_memory *m) {
  const uint32_t word = FA_PATTERN_WORD(FA_PATTERN_GUARD);
  for (int i = 0; i < m->n_parts; ++i) {
    struct fa_exec_part *p = &m->part[i];
    copy_payload(p, m->map, false);
    for (int back = 0; back < 2 && !p->guarded; ++back)
      fa_pattern_fill(m->map + p->at + guard_at(p, back), FA_GUARD_BYTES, word);
    p->guarded = false;
  }
}

void fa_exec_memory_copy_out(fa_exec_memory *m) {
  const uint32_t word = FA_PATTERN_WORD(FA_PATTERN_GUARD);
  for (int i = 0; i < m->n_parts; ++i) {
    struct fa_exec_part *p = &m->part[i];
    copy_payload(p, m->map, true);
    p->guarded = true;
    for (int back = 0; back < 2; ++back) {
      const char *there = m->map + p->at + guard_at(p, back);
      if (fa_pattern_first_difference(there, FA_GUARD_BYTES, word) == FA_GUARD_BYTES) continue;
      memcpy(p->buffer->base + guard_at(p, back), there, FA_GUARD_BYTES);
      p->guarded = false;
    }
  }
}

bool fa_exec_memory_differs(const fa_exec_memory *m, const fa_buffer *b) {
  const struct fa_exec_part *part = part_of(m, b);
  FA_ASSERT(part && !fa_buffer_is_virtual(b));
  return memcmp(m->map + part->at, b->base, 2 * FA_GUARD_BYTES + b->bytes) != 0;
}

void fa_exec_memory_close(fa_exec_memory *m) {
  unmap(m, true);
  memset(m, 0, sizeof *m);
}
