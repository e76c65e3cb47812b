#include "cases/vocabulary/fill.h"

#include "cases/base/status.h"

#include <string.h>

/* Claims about logits are about scale * q.k, before softcap, ALiBi and bias. The values are made in
 * fill_values.c (independent elements) and fill_logits.c (q and k that belong together). */
static const fa_fill_info table[FA_N_FILLS] = {
    [FA_FILL_NORMAL] = {"normal", "N(0,1) in every tensor", .generic = true, .simplicity = 6},
    [FA_FILL_LOGITS_4X] = {"logits_4x", "q is 4 N(0,1), the rest N(0,1): peaked rows", .generic = true,
                           .large_logits = true},
    [FA_FILL_LOGITS_64X] = {"logits_64x", "q is 64 N(0,1), the rest N(0,1): one key takes nearly everything",
                            .generic = true, .large_logits = true, .needs = FA_FILL_NEEDS_NO_LARGER_SCALE},
    [FA_FILL_SMALL] = {"small", "0.1 N(0,1): nearly uniform attention", .generic = true, .flat = true,
                       .size = 0.1},
    [FA_FILL_HEAVY_TAIL] = {"heavy_tail", "Student t with 3 degrees of freedom, clipped to the dtype's range",
                            .generic = true, .large_logits = true, .large_v = true},
    [FA_FILL_V_OFFSET] = {"v_offset", "v is 8 + N(0,1): turns a biased rounding of P into a large error",
                          .generic = true, .large_v = true},
    [FA_FILL_OUTLIER] = {"outlier", "one channel of q and k is 20 times as large", .generic = true,
                         .large_logits = true},
    [FA_FILL_UNIFORM] = {"uniform", "uniform in (-1, 1)", .generic = true, .size = 0.5, .simplicity = 5},
    [FA_FILL_NEGATIVE_LOGITS] = {"negative_logits",
                                 "every logit about -200: a row max that starts at 0 underflows everything",
                                 .needs = FA_FILL_NEEDS_16_BITS | FA_FILL_NEEDS_PLAIN_SCORES},
    [FA_FILL_STAIRCASE_UP] = {"staircase_up", "logit 0.5 j, exact in bf16: the last visible key dominates",
                              .by_row = true,
                              .needs = FA_FILL_NEEDS_16_BITS | FA_FILL_NEEDS_PLAIN_SCORES |
                                       FA_FILL_NEEDS_WIDE_GRADIENTS},
    [FA_FILL_STAIRCASE_DOWN] = {"staircase_down",
                                "logit -0.5 j, exact in bf16: the first visible key dominates",
                                .by_row = true,
                                .needs = FA_FILL_NEEDS_16_BITS | FA_FILL_NEEDS_PLAIN_SCORES |
                                         FA_FILL_NEEDS_WIDE_GRADIENTS},
    [FA_FILL_POSITIONAL_V] = {"positional_v",
                              "v is a small integer hash of (b, h, j, c): a wrong index shows its key",
                              .large_v = true},
    [FA_FILL_ONE_HOT] =
        {"one_hot", "each row attends to one visible key alone: O is that row of V bit for bit, LSE is 0",
         .by_row = true, .needs = FA_FILL_NEEDS_16_BITS | FA_FILL_NEEDS_PLAIN_SCORES, .simplicity = 3},
    [FA_FILL_UNIFORM_EXACT] = {"uniform_exact",
                               "q is 0, v small integers: O is the mean of v, exact for 2^n visible keys",
                               .zero_q = true, .simplicity = 2},
    [FA_FILL_INTEGER] = {"integer", "small integers: every dot product of inputs is exact in f32",
                         .large_v = true, .simplicity = 4},
    [FA_FILL_DUPLICATE_KEYS] = {.name = "duplicate_keys",
                                .what = "4 distinct keys and values, repeated: roundings repeat too"},
    [FA_FILL_DENORMAL] = {.name = "denormal", .what = "v and do among the subnormals of the dtype"},
    [FA_FILL_NEAR_MAX] = {"near_max",
                          "v near 60000, one sign per head (do 2^-6 N(0,1)): close to f16's overflow",
                          .needs = FA_FILL_NEEDS_WIDE_GRADIENTS | FA_FILL_NEEDS_NO_DROPOUT},
    [FA_FILL_TIES] = {.name = "ties", .what = "all keys of a head equal: every logit of a row ties"},
    [FA_FILL_CANCELLATION] = {.name = "cancellation",
                              .what = "v alternates in sign from key to key, with equal magnitude"},
    [FA_FILL_SENTINEL] = {"sentinel", "every logit about -6e4: below finite stand-ins for -inf",
                          .needs = FA_FILL_NEEDS_16_BITS | FA_FILL_NEEDS_PLAIN_SCORES |
                                   FA_FILL_NEEDS_16_DIMENSIONS},
    [FA_FILL_ZERO] = {"zero", "all zeros", .zero_q = true, .zero = true, .simplicity = 1},
    [FA_FILL_NEG_INF_PREFIX] = {"neg_inf_prefix",
                                "-inf for the first keys (130, 66 or half of them), N(0,1) after",
                                .bias_only = true},
    [FA_FILL_NEG_INF_ROWS] = {"neg_inf_rows", "rows with (b + h + i) % 4 == 1 wholly -inf, the rest N(0,1)",
                              .bias_only = true},
    [FA_FILL_FINFO_MIN] = {"finfo_min",
                           "the dtype's lowest finite value where a mask would be, N(0,1) elsewhere",
                           .bias_only = true},
    [FA_FILL_DO_ALIGNED] = {"do_aligned", "do along the mean of v, as O is: delta is large", .do_only = true,
                            .reads_v = true},
    [FA_FILL_DO_ONE_HOT] = {"do_one_hot",
                            "one element of do per head is 1, the rest 0: a column of dV is a row of P",
                            .do_only = true},
    [FA_FILL_LSE_EQUAL] = {"lse_equal", "every part of a row has the same LSE", .lse_only = true},
    [FA_FILL_LSE_NEAR] = {"lse_near", "LSE of the parts 0.1 apart", .lse_only = true},
    [FA_FILL_LSE_20] = {"lse_20", "20 apart: the smaller weight is below a rounding of the larger",
                        .lse_only = true},
    [FA_FILL_LSE_90] = {"lse_90", "90 apart: the smaller weight is subnormal in float32", .lse_only = true},
    [FA_FILL_LSE_200] = {"lse_200", "200 apart: a weight that is not taken from the maximum overflows",
                         .lse_only = true},
    [FA_FILL_LSE_KEYS] = {"lse_keys",
                          "of 3,072 keys in the first part and of 64 in the others, as after a prefix hit",
                          .lse_only = true},
    [FA_FILL_LSE_EMPTY] = {"lse_empty",
                           "empty parts of both signs, alone and all together; O of some of them is NaN",
                           .lse_only = true},
    [FA_FILL_SINK_SIZES] =
        {"sink_sizes", "heads in turn: -inf, -100, -20, near a row's maximum (below, at, above it), 20, 100",
         .sinks_only = true},
    [FA_FILL_EDGES] =
        {.name = "edges",
         .what = "operands of 8 bits: largest numbers, what saturates, subnormals and 0 among N(0,1)",
         .large_logits = true},
    [FA_FILL_SINK_NONE] = {.name = "sink_none", .what = "-inf: as without sinks", .sinks_only = true},
};

bool fa_fill_is_general(fa_fill fill) {
  const fa_fill_info *f = fa_fill_describe(fill);
  return !f->bias_only && !f->do_only && !f->lse_only && !f->sinks_only;
}

const fa_fill_info *fa_fill_describe(fa_fill fill) {
  FA_ASSERT((unsigned)fill < FA_N_FILLS);
  return &table[fill];
}

bool fa_fill_from_name(const char *name, fa_fill *out) {
  for (int f = 0; f < FA_N_FILLS; ++f)
    if (strcmp(name, table[f].name) == 0) return *out = (fa_fill)f, true;
  return false;
}

fa_fill fa_fill_of_simplicity(int simplicity) {
  int f = 0;
  while (f < FA_N_FILLS && table[f].simplicity != simplicity) ++f;
  FA_ASSERT(f < FA_N_FILLS);
  return (fa_fill)f;
}
