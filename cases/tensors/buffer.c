/* Guarded buffers. A large, mostly unused one (strides of 2^31 elements) is reserved address space with
 * memory only under the pages that its tensors touch, and one page on either side: a kernel whose offset
 * overflows hits either a gap that must not change, or a page that does not exist. */
#include "cases/tensors/guard.h"

#include "cases/threads/bulk.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

_Static_assert(FA_GUARD_BYTES % 65536 == 0, "the payload begins on a page, whatever size pages have");

struct fa_islands {
  size_t reserved; /* bytes of address space */
  int n;
  fa_span span[]; /* ascending, disjoint; whole pages except at the payload's end */
};

static size_t page_size(void) {
  const long n = sysconf(_SC_PAGESIZE);
  return n > 0 ? (size_t)n : 4096;
}

static size_t round_up(size_t x, size_t to) {
  return (x + to - 1) / to * to;
}

/* ---- patterns ---- */

/* Doubling copies run at memcpy speed. */
static void fill(char *p, size_t bytes, uint32_t pattern) {
  for (size_t i = 0; i < bytes && i < 4; ++i) p[i] = (char)(pattern >> 8 * i);
  for (size_t done = 4; done < bytes;) {
    size_t step = done < bytes - done ? done : bytes - done;
    if (step > 65536) step = 65536; /* larger copies would leave the cache */
    memcpy(p + done, p, step);
    done += step;
  }
}

typedef struct filling {
  char *p;
  uint32_t pattern;
} filling;

/* Pieces begin at whole words. */
static void fill_piece(void *context, size_t begin, size_t end) {
  const filling *f = context;
  fill(f->p + begin, end - begin, f->pattern);
}

void fa_pattern_fill(char *p, size_t bytes, uint32_t pattern) {
  filling f = {p, pattern};
  fa_bulk(bytes, fill_piece, &f);
}

size_t fa_pattern_first_difference(const char *p, size_t bytes, uint32_t pattern) {
  size_t i = 0;
  while (i < bytes && i < 4 && p[i] == (char)(pattern >> 8 * i)) ++i;
  /* If the first word is right and every byte equals the one four before it, all of it is right. */
  if (i == bytes || (i == 4 && memcmp(p, p + 4, bytes - 4) == 0)) return bytes;
  while (i < bytes && p[i] == (char)(pattern >> 8 * (i & 3))) ++i;
  return i;
}

/* ---- plain buffers ---- */

/* Compares with physical memory, because a system that overcommits grants any size and then kills the process
 * while the buffer is being filled. Small sizes spare the question, which is a system call. */
static bool fits_memory(size_t bytes) {
  if (bytes < (size_t)64 << 20) return true;
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages <= 0 || page <= 0 || bytes / (size_t)page < (size_t)pages;
}

static void set_guards(const fa_buffer *b) {
  fa_pattern_fill(b->base, FA_GUARD_BYTES, FA_PATTERN_WORD(FA_PATTERN_GUARD));
  fa_pattern_fill(fa_buffer_payload(b) + b->bytes, FA_GUARD_BYTES, FA_PATTERN_WORD(FA_PATTERN_GUARD));
}

fa_status fa_buffer_alloc(fa_buffer *b, size_t bytes, fa_error *err) {
  void *p = NULL;
  *b = (fa_buffer){0};
  if (!fits_memory(bytes) || posix_memalign(&p, 256, bytes + 2 * FA_GUARD_BYTES) != 0)
    return fa_fail(err, FA_ERR_MEMORY, "out of memory: %zu bytes", bytes);
  *b = (fa_buffer){.base = p, .bytes = bytes};
  fa_bulk_expect(p, bytes + 2 * FA_GUARD_BYTES);
  set_guards(b);
  return FA_OK;
}

fa_buffer fa_buffer_at(char *memory, size_t bytes) {
  const fa_buffer b = {.base = memory, .bytes = bytes, .borrowed = true};
  set_guards(&b);
  return b;
}

void fa_buffer_free(fa_buffer *b) {
  if (b->islands)
    munmap(b->base, b->islands->reserved);
  else if (!b->borrowed)
    free(b->base);
  free(b->islands);
  *b = (fa_buffer){0};
}

char *fa_buffer_payload(const fa_buffer *b) {
  return b->base + FA_GUARD_BYTES;
}

void fa_buffer_fill_word(const fa_buffer *b, uint32_t pattern) {
  for (int i = 0; i < fa_buffer_n_spans(b); ++i) {
    const fa_span s = fa_buffer_span(b, i);
    fa_pattern_fill(fa_buffer_payload(b) + s.begin, s.end - s.begin, pattern);
  }
}

void fa_buffer_fill(const fa_buffer *b, uint16_t pattern) {
  fa_buffer_fill_word(b, FA_PATTERN_WORD(pattern));
}

/* ---- islands ---- */

bool fa_buffer_is_virtual(const fa_buffer *b) {
  return b->islands != NULL;
}

int fa_buffer_n_spans(const fa_buffer *b) {
  return b->islands ? b->islands->n : 1;
}

fa_span fa_buffer_span(const fa_buffer *b, int i) {
  return b->islands ? b->islands->span[i] : (fa_span){0, b->bytes};
}

static int compare_spans(const void *a, const void *b) {
  const size_t x = ((const fa_span *)a)->begin, y = ((const fa_span *)b)->begin;
  return x < y ? -1 : x > y;
}

/* Extends spans to whole pages plus one on either side, sorts them and merges those that touch; returns how
 * many remain. */
static int64_t whole_pages(fa_span *s, int64_t n, size_t bytes) {
  const size_t page = page_size();
  for (int64_t i = 0; i < n; ++i) {
    s[i].begin = s[i].begin / page * page;
    s[i].begin -= s[i].begin > 0 ? page : 0;
    s[i].end = round_up(s[i].end, page) + page;
    if (s[i].end > bytes) s[i].end = bytes;
  }
  qsort(s, (size_t)n, sizeof *s, compare_spans);
  int64_t kept = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (kept > 0 && s[i].begin <= s[kept - 1].end) {
      if (s[i].end > s[kept - 1].end) s[kept - 1].end = s[i].end;
    } else {
      s[kept++] = s[i];
    }
  }
  return kept;
}

static bool make_accessible(const fa_buffer *b, fa_span s) {
  const size_t page = page_size(), begin = s.begin / page * page, end = round_up(s.end, page);
  return mprotect(fa_buffer_payload(b) + begin, end - begin, PROT_READ | PROT_WRITE) == 0;
}

bool fa_spans_are_sparse(const fa_span *touched, int64_t n, size_t bytes) {
  size_t used = 0;
  for (int64_t i = 0; i < n; ++i) used += touched[i].end - touched[i].begin + 4 * page_size();
  return bytes > FA_VIRTUAL_BYTES && used < bytes / 2;
}

fa_status fa_buffer_reserve(fa_buffer *b, size_t bytes, const fa_span *touched, int64_t n, fa_error *err) {
  const size_t page = page_size(), back = bytes / page * page;
  const size_t reserved = FA_GUARD_BYTES + round_up(bytes + FA_GUARD_BYTES, page);
  *b = (fa_buffer){0};
  struct fa_islands *islands = malloc(sizeof *islands + (size_t)(n + 1) * sizeof(fa_span));
  if (!islands) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  void *p = mmap(NULL, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) {
    free(islands);
    return fa_fail(err, FA_ERR_MEMORY, "no address space: %zu bytes", reserved);
  }
  if (n > 0) memcpy(islands->span, touched, (size_t)n * sizeof *touched);
  islands->reserved = reserved;
  islands->n = (int)whole_pages(islands->span, n, bytes);
  *b = (fa_buffer){.base = p, .bytes = bytes, .islands = islands};
  bool ok = mprotect(b->base, FA_GUARD_BYTES, PROT_READ | PROT_WRITE) == 0;
  ok = ok &&
       mprotect(fa_buffer_payload(b) + back, reserved - FA_GUARD_BYTES - back, PROT_READ | PROT_WRITE) == 0;
  for (int i = 0; ok && i < islands->n; ++i) ok = make_accessible(b, islands->span[i]);
  if (!ok) {
    fa_buffer_free(b);
    return fa_fail(err, FA_ERR_MEMORY, "no memory for the islands of %zu bytes", bytes);
  }
  set_guards(b);
  return FA_OK;
}

/* Fills the pages of a span that had no memory before; others keep their content. */
static void fill_new(const fa_buffer *b, const struct fa_islands *old, fa_span s, uint32_t pattern) {
  const size_t page = page_size();
  for (size_t at = s.begin; at < s.end; at += page - at % page) {
    const size_t end = s.end - at < page - at % page ? s.end : at + page - at % page;
    bool known = false;
    for (int i = 0; i < old->n && !known; ++i) known = at >= old->span[i].begin && end <= old->span[i].end;
    if (!known) fa_pattern_fill(fa_buffer_payload(b) + at, end - at, pattern);
  }
}

fa_status fa_buffer_touch(fa_buffer *b, const fa_span *touched, int64_t n, uint16_t pattern, fa_error *err) {
  struct fa_islands *old = b->islands;
  if (!old) return FA_OK;
  struct fa_islands *islands = malloc(sizeof *islands + (size_t)(old->n + n) * sizeof(fa_span));
  if (!islands) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  memcpy(islands->span, touched, (size_t)n * sizeof *touched);
  const int64_t more = whole_pages(islands->span, n, b->bytes);
  for (int64_t i = 0; i < more; ++i)
    if (!make_accessible(b, islands->span[i])) {
      free(islands);
      return fa_fail(err, FA_ERR_MEMORY, "no memory for the islands of %zu bytes", b->bytes);
    }
  for (int64_t i = 0; i < more; ++i) fill_new(b, old, islands->span[i], FA_PATTERN_WORD(pattern));
  memcpy(islands->span + more, old->span, (size_t)old->n * sizeof(fa_span));
  islands->reserved = old->reserved;
  qsort(islands->span, (size_t)(more + old->n), sizeof(fa_span), compare_spans);
  islands->n = 0;
  for (int64_t i = 0; i < more + old->n; ++i) { /* both lists are whole pages already: only merge them */
    fa_span *last = islands->n ? &islands->span[islands->n - 1] : NULL;
    const fa_span s = islands->span[i];
    if (last && s.begin <= last->end)
      last->end = s.end > last->end ? s.end : last->end;
    else
      islands->span[islands->n++] = s;
  }
  b->islands = islands;
  free(old);
  return FA_OK;
}

fa_status fa_buffer_alloc_like(fa_buffer *dst, const fa_buffer *src, fa_error *err) {
  if (!src->islands) return fa_buffer_alloc(dst, src->bytes, err);
  /* these islands include their extra pages */
  struct fa_islands *islands = malloc(sizeof *islands + (size_t)(src->islands->n + 1) * sizeof(fa_span));
  if (!islands) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  const fa_status status = fa_buffer_reserve(dst, src->bytes, NULL, 0, err);
  if (status != FA_OK) {
    free(islands);
    return status;
  }
  memcpy(islands, src->islands, sizeof *islands + (size_t)src->islands->n * sizeof(fa_span));
  free(dst->islands);
  dst->islands = islands;
  for (int i = 0; i < islands->n; ++i)
    if (!make_accessible(dst, islands->span[i])) {
      fa_buffer_free(dst);
      return fa_fail(err, FA_ERR_MEMORY, "no memory for the islands of %zu bytes", src->bytes);
    }
  return FA_OK;
}

fa_status fa_buffer_clone(fa_buffer *dst, const fa_buffer *src, fa_error *err) {
  const fa_status status = fa_buffer_alloc_like(dst, src, err);
  for (int i = 0; status == FA_OK && i < fa_buffer_n_spans(src); ++i) {
    const fa_span s = fa_buffer_span(src, i);
    fa_bulk_copy(fa_buffer_payload(dst) + s.begin, fa_buffer_payload(src) + s.begin, s.end - s.begin);
  }
  return status;
}
