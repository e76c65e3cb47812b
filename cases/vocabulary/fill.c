#include "cases/vocabulary/fill.h"

#include "cases/base/status.h"

#include <string.h>

/* Claims about logits are about scale * q.k, before softcap, ALiBi and bias. The values are made in
 * fill_values.c (independent elements) and fill_logits.c (q and k that belong together). */
static const fa_fill_info table[FA_N_FILLS] = {
    [FA_FILL_NORMAL] = {"normal", true, false, false, "N(0,1) in every tensor"},
    [FA_FILL_LOGITS_4X] = {"logits_4x", true, false, false, "q is 4 N(0,1), the rest N(0,1): peaked rows"},
    [FA_FILL_LOGITS_64X] = {"logits_64x", true, false, false,
                            "q is 64 N(0,1), the rest N(0,1): one key takes nearly everything"},
    [FA_FILL_SMALL] = {"small", true, false, false, "0.1 N(0,1): nearly uniform attention"},
    [FA_FILL_HEAVY_TAIL] = {"heavy_tail", true, false, false,
                            "Student t with 3 degrees of freedom, clipped to the dtype's range"},
    [FA_FILL_V_OFFSET] = {"v_offset", true, false, false,
                          "v is 8 + N(0,1): turns a biased rounding of P into a large error"},
    [FA_FILL_OUTLIER] = {"outlier", true, false, false, "one channel of q and k is 20 times as large"},
    [FA_FILL_UNIFORM] = {"uniform", true, false, false, "uniform in (-1, 1)"},
    [FA_FILL_NEGATIVE_LOGITS] = {"negative_logits", false, false, false,
                                 "every logit about -200: a row max that starts at 0 underflows everything"},
    [FA_FILL_STAIRCASE_UP] = {"staircase_up", false, false, false,
                              "logit 0.5 j, exact in bf16: the last visible key dominates"},
    [FA_FILL_STAIRCASE_DOWN] = {"staircase_down", false, false, false,
                                "logit -0.5 j, exact in bf16: the first visible key dominates"},
    [FA_FILL_POSITIONAL_V] = {"positional_v", false, false, false,
                              "v is a small integer hash of (b, h, j, c): a wrong index shows its key"},
    [FA_FILL_ONE_HOT] =
        {"one_hot", false, false, false,
         "each row attends to one visible key alone: O is that row of V bit for bit, LSE is 0"},
    [FA_FILL_UNIFORM_EXACT] = {"uniform_exact", false, false, false,
                               "q is 0, v small integers: O is the mean of v, exact for 2^n visible keys"},
    [FA_FILL_INTEGER] = {"integer", false, false, false,
                         "small integers: every dot product of inputs is exact in f32"},
    [FA_FILL_DUPLICATE_KEYS] = {"duplicate_keys", false, false, false,
                                "4 distinct keys and values, repeated: roundings repeat too"},
    [FA_FILL_DENORMAL] = {"denormal", false, false, false, "v and do among the subnormals of the dtype"},
    [FA_FILL_NEAR_MAX] = {"near_max", false, false, false,
                          "v near 60000, one sign per head (do 2^-6 N(0,1)): close to f16's overflow"},
    [FA_FILL_TIES] = {"ties", false, false, false, "all keys of a head equal: every logit of a row ties"},
    [FA_FILL_CANCELLATION] = {"cancellation", false, false, false,
                              "v alternates in sign from key to key, with equal magnitude"},
    [FA_FILL_SENTINEL] = {"sentinel", false, false, false,
                          "every logit about -6e4: below finite stand-ins for -inf"},
    [FA_FILL_ZERO] = {"zero", false, false, false, "all zeros"},
    [FA_FILL_NEG_INF_PREFIX] = {"neg_inf_prefix", false, true, false,
                                "-inf for the first keys (130, 66 or half of them), N(0,1) after"},
    [FA_FILL_NEG_INF_ROWS] = {"neg_inf_rows", false, true, false,
                              "rows with (b + h + i) % 4 == 1 wholly -inf, the rest N(0,1)"},
    [FA_FILL_FINFO_MIN] = {"finfo_min", false, true, false,
                           "the dtype's lowest finite value where a mask would be, N(0,1) elsewhere"},
    [FA_FILL_DO_ALIGNED] = {"do_aligned", false, false, true,
                            "do along the mean of v, as O is: delta is large"},
    [FA_FILL_DO_ONE_HOT] = {"do_one_hot", false, false, true,
                            "one element of do per head is 1, the rest 0: a column of dV is a row of P"},
};

const fa_fill_info *fa_fill_describe(fa_fill fill) {
  FA_ASSERT((unsigned)fill < FA_N_FILLS);
  return &table[fill];
}

bool fa_fill_from_name(const char *name, fa_fill *out) {
  for (int f = 0; f < FA_N_FILLS; ++f)
    if (strcmp(name, table[f].name) == 0) return *out = (fa_fill)f, true;
  return false;
}
