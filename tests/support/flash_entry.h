/* What a host kernel's entry is and sees, by the letter of docs/reference/semantics.md. */
#ifndef FA_TESTS_SUPPORT_FLASH_ENTRY_H
#define FA_TESTS_SUPPORT_FLASH_ENTRY_H

#include "cases/vocabulary/problem.h"

typedef struct entry {
  int64_t q0, k0, sq, sk;
} entry;

static inline entry entry_of(const fa_problem *p, int64_t b) {
  entry e = {0, 0, p->seqlen_q, p->seqlen_k};
  if (p->cu_seqlens_q.n)
    e = (entry){p->cu_seqlens_q.v[b], p->cu_seqlens_k.v[b], p->cu_seqlens_q.v[b + 1] - p->cu_seqlens_q.v[b],
                p->cu_seqlens_k.v[b + 1] - p->cu_seqlens_k.v[b]};
  if (p->seqused_k.n) e.sk = p->seqused_k.v[b];
  if (p->leftpad_k.n) {
    e.k0 += p->leftpad_k.v[b];
    e.sk -= p->leftpad_k.v[b];
  }
  return e;
}

static inline bool sees(const fa_problem *p, const entry *e, int64_t i, int64_t j) {
  const int64_t d = i + e->sk - e->sq;
  if (p->mask.type == FA_MASK_CAUSAL) return j <= d;
  if (p->mask.type == FA_MASK_WINDOW)
    return (p->mask.left < 0 || j >= d - p->mask.left) && (p->mask.right < 0 || j <= d + p->mask.right);
  return true;
}

#endif
