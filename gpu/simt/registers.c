/* Checks wgmma_fence: registers that other code has used must not be an MMA's before the next fence. The
 * executor cannot see code use registers. It sees that their contents differ from those at the fence, and
 * that there was no fence between the wait that made them readable and the next MMA on them. */
#include "gpu/simt/async.h"

#include <string.h>

static uint64_t sum_of(const uint32_t *p, int n_words) {
  uint64_t sum = 0x9e3779b97f4a7c15ull;
  for (int i = 0; i < n_words; i += 2) {
    uint64_t pair;
    memcpy(&pair, p + i, sizeof pair);
    sum = (sum ^ pair) * 0xbf58476d1ce4e5b9ull;
    sum ^= sum >> 32;
  }
  return sum;
}

/* Registers are identified by their addresses in the lanes. A new set replaces the oldest. */
static fa_registers *find(fa_warp_mmas *w, const uint32_t *const lane[FA_WARP], int n_words) {
  for (int i = 0; i < w->n_known; ++i)
    if (w->known[i].lane[0] == lane[0] && w->known[i].n_words == n_words &&
        memcmp(w->known[i].lane, lane, sizeof w->known[i].lane) == 0)
      return &w->known[i];
  fa_registers *r = &w->known[w->n_seen++ % FA_MAX_REGISTERS];
  if (w->n_known < FA_MAX_REGISTERS) ++w->n_known;
  *r = (fa_registers){.n_words = n_words};
  memcpy(r->lane, lane, sizeof r->lane);
  return r;
}

static bool is_as_fenced(const fa_registers *r) {
  for (int l = 0; l < FA_WARP; ++l)
    if (sum_of(r->lane[l], r->n_words) != r->sum[l]) return false;
  return true;
}

void fa_simt_registers_fence(fa_warp_mmas *w) {
  w->n_fenced = w->n_waits + 1;
  for (int i = 0; i < w->n_known; ++i) {
    fa_registers *r = &w->known[i];
    r->fenced = true;
    for (int l = 0; l < FA_WARP; ++l) r->sum[l] = sum_of(r->lane[l], r->n_words);
  }
}

void fa_simt_registers_in(fa_warp_mmas *w, const uint32_t *const lane[FA_WARP], int n_words, bool is_read,
                          bool is_written, fa_simt_place at) {
  if (!w->n_fenced) fa_simt_violation(FA_SUBJECT_RACE, at, "no wgmma_fence before the warp's first product");
  const fa_registers *r = find(w, lane, n_words);
  if (is_written && r->out && r->out >= w->n_fenced)
    fa_simt_violation(
        FA_SUBJECT_RACE, at,
        "no wgmma_fence since the wait that these accumulators came out at: other code may still "
        "use them");
  if (is_read && r->fenced && !is_as_fenced(r))
    fa_simt_violation(FA_SUBJECT_RACE, at,
                      "%s registers of this product were written with no wgmma_fence since",
                      is_written ? "accumulator" : "A");
}

void fa_simt_registers_out(fa_warp_mmas *w, const uint32_t *const lane[FA_WARP], int n_words) {
  find(w, lane, n_words)->out = w->n_waits;
}
