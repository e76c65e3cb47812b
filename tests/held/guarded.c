#include "tests/held/guarded.h"

#include "tests/support/check.h"

#include <cblas.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

void *__real_malloc(size_t n);
void __real_free(void *p);
int __real_posix_memalign(void **p, size_t alignment, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
char *__wrap_strdup(const char *s);
int __wrap_posix_memalign(void **p, size_t alignment, size_t n);
void __wrap_free(void *p);

/* BEHIND: a write to a member of one element too many falls into it. */
enum { ROOM = 64, BEHIND = 1024, GARBAGE = 0xff };
static const char guard[BEHIND] = "behind a block";
static const uint32_t OURS = 0x67756172;

/* Before a block, in the last bytes of its room. */
typedef struct header {
  uint64_t n;
  uint32_t counts,
      ours; /* counts: not OpenBLAS's own; ours: the last, which a write before the block changes */
} header;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long live, countdown = -1;

long guarded_live(void) {
  return live;
}

void guarded_fail_after(long n) {
  countdown = n;
}

bool guarded_waits(void) {
  return countdown >= 0;
}

/* OpenBLAS does not look whether it got what it asked for. */
static _Thread_local bool in_blas;

void __real_cblas_sgemm(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE ta, enum CBLAS_TRANSPOSE tb, blasint m,
                        blasint n, blasint k, float alpha, const float *a, blasint lda, const float *b,
                        blasint ldb, float beta, float *c, blasint ldc);
void __real_cblas_dgemm(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE ta, enum CBLAS_TRANSPOSE tb, blasint m,
                        blasint n, blasint k, double alpha, const double *a, blasint lda, const double *b,
                        blasint ldb, double beta, double *c, blasint ldc);
void __wrap_cblas_sgemm(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE ta, enum CBLAS_TRANSPOSE tb, blasint m,
                        blasint n, blasint k, float alpha, const float *a, blasint lda, const float *b,
                        blasint ldb, float beta, float *c, blasint ldc);
void __wrap_cblas_dgemm(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE ta, enum CBLAS_TRANSPOSE tb, blasint m,
                        blasint n, blasint k, double alpha, const double *a, blasint lda, const double *b,
                        blasint ldb, double beta, double *c, blasint ldc);

void __wrap_cblas_sgemm(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE ta, enum CBLAS_TRANSPOSE tb, blasint m,
                        blasint n, blasint k, float alpha, const float *a, blasint lda, const float *b,
                        blasint ldb, float beta, float *c, blasint ldc) {
  in_blas = true;
  __real_cblas_sgemm(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  in_blas = false;
}

void __wrap_cblas_dgemm(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE ta, enum CBLAS_TRANSPOSE tb, blasint m,
                        blasint n, blasint k, double alpha, const double *a, blasint lda, const double *b,
                        blasint ldb, double beta, double *c, blasint ldc) {
  in_blas = true;
  __real_cblas_dgemm(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  in_blas = false;
}

static bool fails(void) {
  pthread_mutex_lock(&lock);
  const bool now = !in_blas && countdown >= 0 && countdown-- == 0;
  live += !now && !in_blas;
  pthread_mutex_unlock(&lock);
  return now;
}

static header *header_of(void *p) {
  return (header *)((char *)p - sizeof(header));
}

static void *block(size_t n, int filled_with) {
  char *room = NULL;
  if (fails() || __real_posix_memalign((void **)&room, ROOM, n + ROOM + BEHIND) != 0) return NULL;
  void *p = room + ROOM;
  *header_of(p) = (header){.n = n, .counts = !in_blas, .ours = OURS};
  memset(p, filled_with, n);
  memcpy((char *)p + n, guard, BEHIND);
  return p;
}

void *__wrap_malloc(size_t n) {
  return block(n, GARBAGE);
}

void *__wrap_calloc(size_t n, size_t size) {
  return block(n * size, 0);
}

int __wrap_posix_memalign(void **p, size_t alignment, size_t n) {
  if (alignment > ROOM) return __real_posix_memalign(p, alignment, n); /* the tensors' own pages */
  *p = block(n, GARBAGE);
  return *p ? 0 : 12;
}

char *__wrap_strdup(const char *s) {
  char *to = block(strlen(s) + 1, 0);
  return to ? strcpy(to, s) : NULL;
}

void *__wrap_realloc(void *p, size_t n) {
  void *to = block(n, GARBAGE);
  if (!to || !p) return to;
  const uint64_t had = header_of(p)->n;
  memcpy(to, p, had < n ? had : n);
  __wrap_free(p);
  return to;
}

void __wrap_free(void *p) {
  if (!p) return;
  header *h = header_of(p);
  if (h->ours != OURS) { /* a page, or what a library took */
    __real_free(p);
    return;
  }
  REQUIRE(memcmp((char *)p + h->n, guard, BEHIND) == 0);
  h->ours = 0;
  memset(p, GARBAGE, h->n);
  pthread_mutex_lock(&lock);
  live -= h->counts;
  pthread_mutex_unlock(&lock);
  __real_free((char *)p - ROOM);
}
