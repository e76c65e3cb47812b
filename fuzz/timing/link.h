/* What ties one request to the answer before it: seeds that nobody can know before that answer was taken. */
#ifndef FA_FUZZ_TIMING_LINK_H
#define FA_FUZZ_TIMING_LINK_H

#include "cases/tensors/set.h"

/* Zeroed, then started. */
typedef struct fa_link {
  uint64_t secret[4], n_drawn;
  char last[65];  /* digest of what was taken last */
  bool unchanged; /* draws the same seed every time: the defence "chain" left out */
} fa_link;

/* FA_ERR_IO: the system gives no random bytes. */
fa_status fa_link_start(fa_link *x, bool unchanged, fa_error *err);
/* Mixes in what was answered: of a tensor at most 1 MiB, spread over it. */
void fa_link_take_tensor(fa_link *x, const fa_tensor *t);
void fa_link_take_words(fa_link *x, const uint64_t *word, int n);
/* A data seed: fresh noise, the secret and the last answer, hashed. */
uint64_t fa_link_seed(fa_link *x);

/* Random bits of the system, which no seed repeats: for choices that nobody is to foresee. 0 .. n - 1; n >= 1. */
int64_t fa_secret_below(int64_t n);

#endif
