/* A mistake in the reference: what the judge imagines that a subject got wrong.
 *
 * fuzz/explain runs the reference with such a mistake, values and bounds, and asks whether what a subject computed is
 * what comes out. Without a twist (NULL in fa_ref_options) nothing is consulted. Mistakes that a changed problem or
 * changed inputs can express need no twist. Every field's zero value means: right. */
#ifndef FA_REF_ENGINE_TWIST_H
#define FA_REF_ENGINE_TWIST_H

#include "cases/tensors/set.h"

struct fa_ref_call;
struct fa_ref_sequence;

/* Some rows of one head, or some keys of a key/value head, of a sequence: those that are to be computed. */
typedef struct fa_ref_part {
  int64_t b, h, first, n; /* rows of one query block (FA_BLOCK_M); any keys */
} fa_ref_part;

/* A row's running maximum and sums, walked over by the kernel's own tiles of keys. */
typedef struct fa_ref_walk {
  int64_t tile;   /* keys of a tile; 0: no such mistake */
  bool backwards; /* from the last tile to the first */
  bool o_stays;   /* O is not rescaled when the maximum rises */
  bool sum_stays; /* nor is the sum */
  int64_t only;   /* so only in this tile, counted from the first key; 0: in all */
} fa_ref_walk;

/* A rounding that should not be: to so many bits, the hidden one included; exponents from lowest on. */
typedef struct fa_ref_rounding {
  int bits, lowest; /* bits 0: none */
  double max;       /* what is larger becomes this */
  bool cut;         /* towards 0 and not to nearest */
} fa_ref_rounding;
double fa_ref_round(const fa_ref_rounding *r, double x);

/* Sums of products that are kept in fewer bits than they should be. */
typedef struct fa_ref_coarse {
  fa_ref_rounding to; /* bits 0: none are */
  int within;         /* they are rounded after so many products; 0: at the end of a tile only */
  int tile;           /* keys, and rows, that are added at once; O, dQ, dK, dV. 0: these are right */
  bool sum, part;     /* what is rounded: the sum so far, the tile's part of it before it is added, or both */
  bool scores, dp;    /* Q K^T and dO V^T are rounded as well */
  bool backwards;     /* tiles of keys from the last to the first */
} fa_ref_coarse;

typedef struct fa_ref_twist fa_ref_twist;
struct fa_ref_twist {
  /* Changes the keys [*lo, *hi) that row i sees; none: lo >= hi. They lie within 0 .. e->sk. */
  void (*range)(const fa_ref_twist *t, const struct fa_ref_call *c, const struct fa_ref_sequence *e,
                int64_t i, int64_t *lo, int64_t *hi);
  /* Changes where a key/value head's rows (id: FA_T_K or FA_T_V) are read. */
  void (*source)(const fa_ref_twist *t, const struct fa_ref_call *c, fa_tensor_id id,
                 const struct fa_ref_sequence **e, int64_t *head);
  int64_t number[3]; /* what these two want to know */

  bool heads_modulo;   /* query head h reads head h % heads_kv */
  int64_t heads_shift; /* or the head so many after the right one */
  int64_t one_member;  /* backward: of a group's heads only this one, counted from 1; -1: the last */
  int64_t lost_member; /* or all of them but this one */
  fa_ref_walk walk;
  bool o_not_divided; /* by the row's sum */
  bool lse_astray;    /* the LSE is by_max times the maximum and by_log times the log of the sum */
  double lse_by_max, lse_by_log;
  bool mask_of_first_pair; /* a listed block of which mask_mod shows the first pair counts as full */
  bool softcap_twice, softcap_not_derived;
  bool alibi_from_top;        /* distances as if there were as many keys as rows */
  bool alibi_signed;          /* of distances: keys after the diagonal come nearer */
  bool drop_inverted;         /* kept pairs are dropped, the others kept */
  int drop_rounds;            /* of the generator; 0: the right number */
  double drop_factor;         /* of kept pairs; 0: the right one */
  fa_ref_rounding p, ds;      /* of P before it is multiplied by V or dO, and of dS */
  fa_ref_rounding p_in_ds;    /* of the P in dS = P (dP - delta) */
  fa_ref_rounding p_in_delta; /* of the P in delta = sum P dP, where the profile has it so */
  fa_ref_coarse coarse;
  bool delta_missing;
  bool delta_negated;

  /* Only these; the others' wants are not set, nor dBias and gradients of buffers. No part: all. Rows count for the
   * forward and dQ, keys for dK, dV. */
  int n_rows, n_keys;
  const fa_ref_part *rows, *keys;
};

#endif
