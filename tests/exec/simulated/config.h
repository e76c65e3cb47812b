/* What the simulated kernel computes with and by which conventions: one field for each, chosen by name. */
#ifndef FA_TESTS_EXEC_SIMULATED_CONFIG_H
#define FA_TESTS_EXEC_SIMULATED_CONFIG_H

#include "tests/exec/simulated/format.h"

#include <stddef.h>

typedef enum sim_product { SIM_QK, SIM_PV, SIM_DP, SIM_DV, SIM_DQ, SIM_DK, SIM_N_PRODUCTS } sim_product;

/* LANES: eight partial sums. MMA, NARROW: blocks that truncate. F16, BF16: that type after every block. */
typedef enum sim_sum {
  SIM_LANES,
  SIM_SEQUENTIAL,
  SIM_PAIRWISE,
  SIM_MMA,
  SIM_NARROW,
  SIM_SUM_F16,
  SIM_SUM_BF16
} sim_sum;
typedef enum sim_delta { SIM_STORED_O, SIM_EXACT_O, SIM_SUM_P_DP } sim_delta;
typedef enum sim_exponential { SIM_EXP_LIBM, SIM_EXP_APPROX, SIM_EXP_POLY } sim_exponential;
typedef enum sim_empty { SIM_AS_CASE, SIM_POS_INF, SIM_NEG_INF, SIM_ZERO, SIM_NAN, SIM_MEAN_V } sim_empty;

typedef enum sim_only {
  SIM_ANY_CALL,
  SIM_PACKED,
  SIM_CACHE,
  SIM_PAGED,
  SIM_DECODE,
  SIM_PAGED_DECODE
} sim_only;
typedef enum sim_failure { SIM_NO_FAILURE, SIM_HANGS, SIM_CRASHES } sim_failure;
typedef enum sim_fails_at { SIM_AT_SOFTCAP, SIM_AT_BACKWARD, SIM_ALWAYS } sim_fails_at;

/* Where V's descale goes: behind the sum, or each key's into P. A format in k_descaled or v_descaled: before products. */
typedef enum sim_descale_bug {
  SIM_DESCALED_RIGHT,
  SIM_NEXT_HEAD,
  SIM_FIRST_SEQUENCE,
  SIM_NEXT_KEY,
  SIM_K_TWICE,
  SIM_V_TWICE,
  SIM_K_MISSING,
  SIM_V_MISSING,
  SIM_Q_MISSING,
  SIM_K_AND_V_SWAPPED,
  SIM_RECIPROCAL
} sim_descale_bug;

/* Of caches of 4 bits. */
typedef enum sim_four_bug {
  SIM_FOUR_RIGHT,
  SIM_HIGH_FIRST,     /* the second number of a byte is taken for the first */
  SIM_NEXT_BLOCK,     /* the scale of the next block of the row, where there is one */
  SIM_BLOCKS_OF_32,   /* one scale for two blocks */
  SIM_NEXT_SLOT,      /* the scales of the next key */
  SIM_SCALES_MISSING, /* all 1 */
  SIM_SCALES_OF_K,    /* V with K's */
  SIM_HALVES_LOST,    /* 0.5, the subnormal, is 0 */
  SIM_SIX_IS_EIGHT,   /* the largest pattern as if it had no fraction bit */
  SIM_SIGN_OF_ZERO    /* the sign is the byte's upper bit */
} sim_four_bug;

/* What amax_p or amax_o lacks or has too much. */
typedef enum sim_amax_bug {
  SIM_AMAX_RIGHT,
  SIM_FIRST_KEYS,     /* of P: only its first tile of keys */
  SIM_FIRST_ROWS,     /* of the first 64 rows */
  SIM_FIRST_HEAD,     /* of the first head */
  SIM_LAST_SEQUENCE,  /* of the last sequence */
  SIM_RELATIVE,       /* P relative to its row's largest */
  SIM_SCALED,         /* times the scale of a P in 8 bits */
  SIM_BEFORE_DESCALE, /* of O before V's descale */
  SIM_SIGNED,         /* the largest O, and not its largest magnitude */
  SIM_DROPPED,        /* of P with dropout, in the type that it is multiplied in */
  SIM_UNCLEARED       /* from what the outputs held before */
} sim_amax_bug;

/* What becomes of an O of 8 bits. */
typedef enum sim_o_bug {
  SIM_O_RIGHT,
  SIM_O_SCALED_TWICE,
  SIM_O_UNSCALED,
  SIM_O_DIVIDED,   /* by the scale */
  SIM_O_OVERFLOWS, /* beyond the largest number NaN, of e5m2 infinity, as conversions of PyTorch's have it */
  SIM_O_TRUNCATED, /* and not rounded to nearest */
  SIM_O_FLUSHED,   /* below the normal range 0 */
  SIM_O_STOPS_EARLY,     /* saturates at 240, the largest number of another format of 8 bits */
  SIM_AMAX_BEHIND_SCALE, /* amax_o of O times its scale */
  SIM_O_ROUNDED_TWICE,   /* to 8 bits before V's descale too, where it is that late */
} sim_o_bug;

typedef struct sim_config {
  int operand[SIM_N_PRODUCTS], sum[SIM_N_PRODUCTS]; /* sim_format, sim_sum */
  int operand_truncate;
  int block, extra_bits;              /* of MMA and NARROW; block also of F16 and BF16 */
  int scores;                         /* format of the scores after each step of their chain */
  int p, ds, p_truncate, ds_truncate; /* P and dS as operands */
  int dp;                             /* dP, and with dropout Z dP, as the softmax gradient receives it */
  double p_scale;
  double max_lag;        /* the maximum is kept where it would rise by less: in units of log 2 */
  int fresh_accumulator; /* of every tile, added in f32; otherwise one accumulator goes on */
  int p_nan;             /* a P that is too large becomes NaN, and not the largest */
  int k_descaled, v_descaled, o_descaled_late; /* as fa_arithmetic's; SIM_IO: not before products */
  int descale_bug, amax_bug, four_bug, o_bug;
  int amax_from_lse;    /* the largest P is exp(m - LSE), and not 1 / sum */
  int normalise_before; /* P is divided by its sum before the product with V */
  int block_n, splits;  /* 0: the whole row at once; 0: no splits */
  int partial, partial_unnormalised;
  int exp, exp_scaled;
  int delta, p_kept, p_in_ds, gqa_partials_rounded;
  int ds_scaled, delta_rounded, dropout_rounded; /* as fa_arithmetic's */
  int lse_base2, lse_unscaled, lse_none, lse_of_empty, o_of_empty, lse_alibi_column;
  int top_left, window_left_more, window_right_more, gqa_modulo, drop_last_key;
  int softcap_before_scale, alibi_flipped;
  int tall_unmasked; /* no mask in a tile of 64 rows whose first row stands before the first key */
  int root_scale;    /* Q and K are multiplied by the root of the scale */
  double scale_factor;
  int dq_unscaled, dk_unscaled, dlse_ignored;
  int dropout_rounds, dropout_layout; /* 0: as the family has it; layout 1: flash, 2: memeff */
  int nondeterministic, f32_only;
  int only;            /* sim_only: it takes no other calls */
  int fails, fails_at; /* sim_failure, sim_fails_at */
} sim_config;

/* text: "NAME,key=value,...": NAME one of the named variants, or left out; NULL or "": plain float32. A key "operand"
 * or "sum" sets all products at once. Returns false and says why. */
bool sim_config_read(const char *text, sim_config *out, char *message, size_t size);

#endif
