/* Fills: the recipes for the data of input tensors.
 *
 * A value depends only on (data_seed, tensor, logical index): not on threads, order or strides, nor on the
 * size of the other dimensions, so that a shrunk case keeps its remaining elements. Values are rounded to the
 * tensor's dtype. The purpose of each fill is in the table in fill.c and in `fa-verify list fills`.
 *
 * A fill acts on the tensors that its description names; the others are N(0,1). Claims about logits are about
 * scale * q.k (before softcap, ALiBi and bias); they hold if q and k both have the fill, the scale is not 0,
 * and no rotary embedding turns the last dimensions. Keys that share memory along an expanded axis hold the
 * first one's values. */
#ifndef FA_CASES_VOCABULARY_FILL_H
#define FA_CASES_VOCABULARY_FILL_H

#include <stdbool.h>
#include <stdint.h>

typedef enum fa_fill {
  FA_FILL_NORMAL,    /* N(0,1) */
  FA_FILL_LOGITS_4X, /* q scaled so that logits are 4 times as large */
  FA_FILL_LOGITS_64X,
  FA_FILL_SMALL,      /* 0.1 N(0,1) */
  FA_FILL_HEAVY_TAIL, /* Student t, 3 degrees of freedom, clipped to the dtype's range */
  FA_FILL_V_OFFSET,   /* v = 8 + N(0,1): turns a biased rounding into a large error */
  FA_FILL_OUTLIER,    /* one channel of q and k 20 times as large */
  FA_FILL_UNIFORM,    /* U(-1,1) */
  /* not generic: roundings repeat or cancel, so only worst-case bounds hold */
  FA_FILL_NEGATIVE_LOGITS, /* every logit about -200: a row max that starts at 0 makes everything underflow */
  FA_FILL_STAIRCASE_UP,    /* logit 0.5 j, exact in bf16: the last visible key dominates */
  FA_FILL_STAIRCASE_DOWN,  /* the first visible key dominates */
  FA_FILL_POSITIONAL_V,    /* v = small-integer hash of (b, h, j, c): a wrong value names the key read */
  FA_FILL_ONE_HOT, /* logits differ by at least 128: p is exactly 0 or 1, O is one row of V bit for bit */
  FA_FILL_UNIFORM_EXACT,  /* q = 0, integer v: O is a dyadic mean */
  FA_FILL_INTEGER,        /* small integers: every dot product exact in f32 */
  FA_FILL_DUPLICATE_KEYS, /* 4 distinct keys and values, repeated */
  FA_FILL_DENORMAL,       /* v and do among the subnormals of the dtype */
  FA_FILL_NEAR_MAX,       /* v near the largest finite f16 */
  FA_FILL_TIES,           /* equal logits: ties in the row max */
  FA_FILL_CANCELLATION,   /* v alternates in sign with equal magnitude */
  FA_FILL_SENTINEL,       /* all logits below -5e4: below finite stand-ins for -inf */
  FA_FILL_ZERO,
  FA_FILL_NEG_INF_PREFIX, /* bias only: -inf for the first keys (a whole tile and more), N(0,1) after */
  FA_FILL_NEG_INF_ROWS,   /* bias only: some rows wholly -inf */
  FA_FILL_FINFO_MIN,      /* bias only: the dtype's lowest finite value where a mask would be */
  FA_FILL_DO_ALIGNED,     /* do only: dO has O's direction (v-like means), so that delta is large */
  FA_FILL_DO_ONE_HOT,     /* do only: one element of a row is 1: the gradient is one row of P */
  /* lse_parts only: how far apart the parts' logarithms are, in turn from row to row (cases/data/fill_parts.c) */
  FA_FILL_LSE_EQUAL,
  FA_FILL_LSE_NEAR, /* 0.1 apart */
  FA_FILL_LSE_20,   /* 20 apart: the smaller weight is below a rounding of the larger */
  FA_FILL_LSE_90,   /* 90 apart: the smaller weight is subnormal */
  FA_FILL_LSE_200,  /* 200 apart: the smaller weight underflows, and without a maximum the larger overflows */
  FA_FILL_LSE_KEYS, /* of 3,072 keys in the first part, of 64 in the others: a prefix and a suffix */
  FA_FILL_LSE_EMPTY,  /* empty parts of both signs, alone and all together; O of some of them is NaN */
  FA_FILL_SINK_SIZES, /* sinks only: none, far below the scores, among them, above and far above, by head */
  FA_FILL_SINK_NONE,  /* sinks only: -inf, which is no sink */
  FA_FILL_EDGES, /* operands of 8 bits: the largest numbers and what saturates to them, subnormals, 0, among N(0,1) */
  FA_N_FILLS
} fa_fill;

/* What a fill needs of the problem: elsewhere it does not mean what it says, or right answers overflow. */
typedef enum fa_fill_needs {
  /* It gives scale * q.k a certain size or order: the default scale, and no other step in the score chain. */
  FA_FILL_NEEDS_PLAIN_SCORES = 1,
  /* Logits of 6e4 are only as accurate as f32 sums: over many dimensions they have no useful bound. */
  FA_FILL_NEEDS_16_DIMENSIONS = 2,
  /* A larger scale on top of 64-fold logits leaves only one-hot rows. */
  FA_FILL_NEEDS_NO_LARGER_SCALE = 4,
  /* No f16 gradients: queries of 2^10 and more make such a dK, and dO.v near 65504 such a dS, that they are
   * beyond its largest number, by right. */
  FA_FILL_NEEDS_WIDE_GRADIENTS = 8,
  /* 1/(1-p) would make an O that f16 cannot hold. */
  FA_FILL_NEEDS_NO_DROPOUT = 16,
  /* Queries and keys of 8 bits are not exact enough for what it says about logits. */
  FA_FILL_NEEDS_16_BITS = 32
} fa_fill_needs;

typedef struct fa_fill_info {
  const char *name; /* as in the case JSON: "normal", "logits_4x", ... */
  const char *what; /* one line for `list fills` */
  bool generic;     /* rounding errors are like independent noise: the sqrt(n) bound may be used */
  bool bias_only, do_only, lse_only; /* lse_only: of parts that are merged */
  bool sinks_only;
  bool reads_v;      /* what it puts into do follows the values of v */
  bool by_row;       /* rows of q and k are made as a whole: elements do not follow from their own draws */
  bool large_logits; /* a softcap saturates them: what it returns is the cap */
  bool flat;         /* logits so small that the weights of a row are nearly equal */
  bool large_v;      /* v of several units and more */
  bool zero_q, zero; /* puts nothing but zeros into q; into every tensor */
  double size;       /* about the standard deviation of q and k; 0 = 1 */
  int simplicity;    /* shrinking tries it in place of what is less simple: 1 is the simplest, 0 = never */
  unsigned needs;    /* fa_fill_needs */
} fa_fill_info;

const fa_fill_info *fa_fill_describe(fa_fill fill); /* asserts fill < FA_N_FILLS */
/* For every tensor, not for one role alone. */
bool fa_fill_is_general(fa_fill fill);
bool fa_fill_from_name(const char *name, fa_fill *out);
#define FA_N_SIMPLE_FILLS 6
fa_fill fa_fill_of_simplicity(int simplicity); /* 1 .. FA_N_SIMPLE_FILLS */

#endif
