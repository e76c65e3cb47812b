#include "cases/vocabulary/law.h"

#include "cases/base/status.h"

#include <string.h>

static const fa_law_info table[FA_N_LAWS] = {
    [FA_LAW_NONE] = {"none", "no law: the reference judges"},
    [FA_LAW_REPEAT] = {"repeat", "run again and again: the same bits"},
    [FA_LAW_KEY_PERMUTATION] = {"key-permutation", "keys in another order: the same O, dK and dV permuted"},
    [FA_LAW_HEAD_PERMUTATION] = {"head-permutation",
                                 "KV heads with their groups in another order: same bits"},
    [FA_LAW_BATCH_ALONE] = {"batch-alone", "one batch entry by itself: the same bits"},
    [FA_LAW_VARLEN_SEPARATE] = {"varlen-separate",
                                "every packed sequence in a call of its own: the same bits"},
    [FA_LAW_CAUSAL_PREFIX] = {"causal-prefix", "the first rows and the keys they see, alone: the same rows"},
    [FA_LAW_MERGE_RANGES] = {"merge-ranges", "two key ranges, merged through their LSE: the whole"},
    [FA_LAW_WINDOW_OPEN] = {"window-open", "a window that hides nothing: the bits of no window"},
    [FA_LAW_BIAS_SHIFT] = {"bias-shift", "a constant added to a row's bias: LSE moves by it, nothing else"},
    [FA_LAW_BIAS_MASK] = {"bias-mask", "the mask written into the bias as -inf: the same"},
    [FA_LAW_SCALE_POWER] = {"scale-power", "q times 4, scale by 4: the same bits, a quarter of dQ"},
    [FA_LAW_VALUE_POWER] = {"value-power", "v times 2: twice O, to the bit"},
    [FA_LAW_GRAD_POWER] = {"grad-power", "dO times 2: twice the gradients, to the bit"},
    [FA_LAW_DROPOUT_NONE] = {"dropout-none", "dropout that keeps everything: the bits of no dropout"},
    [FA_LAW_SPLIT_COUNT] = {"split-count", "keys in several splits: the same as in one"},
    [FA_LAW_PAGE_PERMUTATION] = {"page-permutation", "cache pages moved, table with them: the same bits"},
    [FA_LAW_CACHE_CONTIGUOUS] = {"cache-contiguous", "the same cache without pages: the same bits"},
    [FA_LAW_CACHE_APPENDED] = {"cache-appended", "new keys in the cache from the start: the same bits"},
    [FA_LAW_PART_PERMUTATION] = {"part-permutation", "parts in another order: the same O and LSE"},
    [FA_LAW_PART_EMPTY] = {"part-empty", "one more part, which is empty: the same O and LSE"},
    [FA_LAW_PART_NESTED] = {"part-nested",
                            "some parts merged first, and what they make with the others: the same"},
    [FA_LAW_SINK_NONE] = {"sink-none", "sinks of -inf: the same as without sinks, and no gradient"},
    [FA_LAW_LIST_ORDER] = {"list-order",
                           "each row's list in another order, with its entries of -1: the same"},
};

const fa_law_info *fa_law_describe(fa_law law) {
  FA_ASSERT((unsigned)law < FA_N_LAWS);
  return &table[law];
}

bool fa_law_from_name(const char *name, fa_law *out) {
  for (int k = 0; k < FA_N_LAWS; ++k)
    if (strcmp(name, table[k].name) == 0) return *out = (fa_law)k, true;
  return false;
}
