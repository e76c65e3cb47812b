#include "cases/vocabulary/mask_bits.h"

#include "cases/vocabulary/problem.h"

const char *fa_bits_source_name(fa_bits_source source) {
  static const char *const names[FA_N_BITS_SOURCES] = {"density", "random", "chain", "star"};
  return (unsigned)source < FA_N_BITS_SOURCES ? names[source] : "?";
}

static int64_t length_of(const fa_int32_array *cu, int64_t b, int64_t otherwise) {
  return cu->n > 0 ? (int64_t)cu->v[b + 1] - cu->v[b] : otherwise;
}

void fa_problem_pairs(const fa_problem *p, int64_t b, int64_t *rows, int64_t *keys) {
  *rows = length_of(&p->cu_seqlens_q, b, p->seqlen_q);
  *keys = length_of(&p->cu_seqlens_k, b, p->seqlen_k);
  if (p->kvcache.present) *keys = p->kvcache.len.v[b] + p->kvcache.n_new;
  if (p->seqused_k.n > 0) *keys = p->seqused_k.v[b];
  if (p->leftpad_k.n > 0) *keys -= p->leftpad_k.v[b];
}

int64_t fa_problem_mask_bytes(const fa_problem *p, int64_t n) {
  int64_t bytes = 0;
  for (int64_t b = 0; b < n; ++b) {
    int64_t rows, keys;
    fa_problem_pairs(p, b, &rows, &keys); /* each at most 2^30 */
    bytes += (rows * keys + 7) / 8;
    if (bytes > (int64_t)1 << 62) return -1;
  }
  return bytes;
}
