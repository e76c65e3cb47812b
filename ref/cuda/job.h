/* What the kernels of the judge on a device are told: a call's heads and query blocks, and where everything lies. All
 * pointers are to the machine's memory (ref/cuda/machine.h); plain data, so that it is copied there as it is. */
#ifndef FA_REF_CUDA_JOB_H
#define FA_REF_CUDA_JOB_H

#include "cases/data/fill_plan.h"
#include "cases/expr/ast.h"
#include "ref/bounds/amax_formula.h"
#include "ref/bounds/gradient_formula.h"
#include "ref/bounds/narrow_formula.h"
#include "ref/bounds/sink_formula.h"

/* The elements of a tensor in row-major order. */
typedef struct fa_judge_tensor {
  const void *data; /* NULL: absent */
  fa_dtype dtype;
  int64_t n;
} fa_judge_tensor;

/* One key/value head of a sequence; one for each query head that reads it, where these round their parts of dK and dV. Keys are counted through the heads of a turn, which is as many as memory has room
 * for; blocks through those of a call. */
typedef struct fa_judge_head {
  int64_t b, sk, sq;
  int64_t key, key_strip;         /* keys, and strips of FA_STRIP keys, of the turn's heads before it */
  int64_t want;                   /* row of dK that is its key 0's; the next key's is heads_kv further */
  int64_t load;                   /* the same of K as it was uploaded; the next is k_step further */
  int64_t query;                  /* rows of the query heads of the turn's heads before it */
  int64_t first_block, end_block; /* of the query heads that read it */
  int64_t bytes;                  /* of a mask of bits: its sequence's first */
  int64_t
      members; /* heads whose sums of dK and dV are joined in this one's, itself and what follows; 0: it is one of these */
  double largest_k, largest_v; /* magnitudes; 0, written on the machine */
} fa_judge_head;

/* One query block of FA_BLOCK_M rows. Its panels hold all pairs of its rows and the keys j_begin .. j_end - 1. A wave is as
 * many blocks as memory has room for. */
typedef struct fa_judge_block {
  int64_t head; /* of the turn */
  int64_t b, h, i0, n;
  int64_t first_visit; /* of its tiles of FA_BLOCK_N keys, where some may be left out */
  int64_t j_begin, j_end;
  int64_t first_row, first_strip, first_tile, first_key,
      first_pair; /* of the wave: rows, strips of FA_STRIP rows, tiles, keys, pairs before it */
  int64_t
      load; /* its first row of Q, dO and, backward, O as they were uploaded; the next is q_step further */
  int64_t want,
      want_lse; /* row of Q and O that is its first (the next one's is heads_q further); element of the LSE */
  double slope; /* ALiBi's */
  double sink;  /* of its head; -inf: none */
} fa_judge_block;

enum { FA_STRIP = 64 }; /* rows and columns of a product's tile */
enum {
  FA_WIDE_M = 128,
  FA_WIDE_N_64 = 64,
  FA_WIDE_N_32 = 128
};                        /* of one in a large wave, of float64 and of float32 */
enum { FA_PART = 2048 };  /* keys that a row's sums are taken over at once */
enum { FA_PIECE = 1024 }; /* elements of a tensor that are looked at together */

/* A row between two kernels. */
typedef struct fa_judge_row {
  double max, sum;         /* forward: of scores; of exponentials; the sink's included */
  double key_max, key_sum; /* of the keys alone */
  double lse, rest;        /* backward: what P is made from, a sink included; what the nearest double lacks */
  double delta, extra;     /* extra: part of each exponent's error */
  fa_bound_dsink dsink;
  double terms;       /* sum of the terms of its bounds */
  double plain_terms; /* without what the score chain multiplies them by */
  double least;       /* fa_bound_least_spread_of_ds */
  float e_delta, max_q;
  fa_bound_spread spread;
  fa_bound_row t;
  fa_bound_largest largest; /* where the largest P of the call is wanted */
} fa_judge_row;

/* Sums of a part of a row's keys. */
typedef struct fa_judge_row_part {
  double terms, plain_terms, spread;
  int64_t n; /* of spread */
} fa_judge_row_part;

/* An output as fa_want has it. */
typedef struct fa_judge_want {
  double *value, *rest;
  float *sum_error, *quant, *accum, *noise, *scale;
} fa_judge_want;

/* An output of the subject beside what is wanted of it, both row-major, by items of `piece` elements of a row. Steps are
 * from a row to its neighbour on an axis, in rows; 0: there is none. */
typedef struct fa_judge_output {
  fa_judge_want want;
  fa_judge_tensor got;
  int64_t width, piece;
  int64_t n_heads, head_step, n_batch, batch_step;
  bool is_lse;
  fa_ulp ulp;
  double narrow,
      wide; /* factors of bounds: what passes is inside of the first, trivial answers are outside of the second */
  double by_scale, floor; /* an answer is another one if it is further off than by_scale * scale + floor */
  struct fa_judge_check *check;
} fa_judge_output;

/* Trivially wrong answers that pass an item (ref/compare/vacuous.c). */
enum { FA_JUDGE_ZEROS = 1, FA_JUDGE_HEAD = 2, FA_JUDGE_BATCH = 4, FA_JUDGE_ALL = 7 };
/* Shifted by so much: those that are surely right there, as far as that can be told. */
enum { FA_JUDGE_SAME = 3 };
/* Rows of a block that are tried with the mean of V. */
enum { FA_JUDGE_MEANS = 8 };

/* What the comparison says of an item. */
typedef struct fa_judge_check {
  uint64_t nonce;            /* the job's: it is no record of another call */
  int32_t count, odd, wrong; /* compared; not surely right; of these, surely not */
  int32_t n, n_diffuse;      /* statistics: fa_stats_row */
  uint32_t passes;           /* FA_JUDGE_ZEROS ... */
  uint64_t print;            /* fa_element_print of its elements */
  double sum, sum_squares, diffuse_squares;
  double widest, scale;           /* the largest bound, and the size of the item's terms */
  double ratio, got, want, bound; /* of the worst element */
  float quant, accum;
  int64_t worst; /* its position; ratio 0: all are exactly right */
} fa_judge_check;

/* C = alpha A B, of all blocks or heads: which of the three forms says what the operands are (ref/cuda/product.cuh). */
typedef struct fa_judge_product {
  const void *a, *b;
  void *c;
  int64_t width;
  double alpha;
  int64_t columns;     /* tiles beside each other: of a row's widest panel if they are wide, of `width` */
  int64_t strips;      /* wide tiles of keys of a head */
  int64_t parts, rows; /* of a row's sums, and the wave's rows */
} fa_judge_product;

/* What the judge on a device leaves to the one on the CPU, found while it computed. */
enum { FA_JUDGE_COARSE_LSE = 1, FA_JUDGE_UNKNOWN_P = 2, FA_JUDGE_OVERFLOW = 16, FA_JUDGE_NO_VALUE = 32 };
/* Besides: the mean of the visible V, in place of O, is outside of a bound; may be another answer. */
enum { FA_JUDGE_MEAN_FAILS = 4, FA_JUDGE_MEAN_DIFFERS = 8 };

/* What all kernels tell the host, zeros before. */
typedef struct fa_judge_found {
  double q, d_o, dlse;                         /* largest magnitudes of the whole tensors */
  double steepest, unit_ds;                    /* largest factor of the score chain, and unit of dS */
  double amax_p, least_amax_p, most_amax_p;    /* largest P, and between which numbers a kernel's may be */
  double amax_o;                               /* largest |O| that the subject returned */
  int some_o;                                  /* an O is not exactly 0 */
  int flags;                                   /* FA_JUDGE_COARSE_LSE ..., FA_JUDGE_MEAN_FAILS */
  int64_t debug_count, debug_odd, debug_wrong; /* elements of dropout's matrix, as fa_judge_check has it */
} fa_judge_found;

/* Sums over a row or a key, [width] each, in units but for value: the worst case, squares, and f32's errors. */
typedef struct fa_judge_sums_of {
  double *value;
  float *worst, *squares, *errors;
} fa_judge_sums_of;

/* score_mod, as the kernels read it: behind it its nodes and, as float64 in row-major order, the buffers that it reads. Pointers
 * are to the machine's memory. */
typedef struct fa_judge_program {
  fa_expr expr;
  fa_tensors in; /* the buffers alone */
} fa_judge_program;

/* One evaluation at a time in each of so many places, a warp's rows of FA_JUDGE_LANES for each node. */
enum { FA_JUDGE_LANES = 32 };
typedef struct fa_judge_mod {
  const fa_judge_program *program; /* NULL: there is no score_mod */
  char *scratch;                   /* [places][place_bytes] */
  int64_t places, place_bytes;
  int64_t rows; /* of the wave */
  /* pairs, backward: derivative of softcap and score_mod; its magnitude for bounds, and that one's error */
  double *slope;
  float *cap, *cap_err;
  /* the same where gradients of buffers are asked for: what score_mod was given, and its error */
  double *before;
  float *before_error;
  /* sums of these [gradient_places][elements], and number of each buffer's first element; -1: not asked for */
  fa_bound_element *sums;
  int64_t gradient_places, elements;
  int64_t first[FA_MAX_CAPTURES];
} fa_judge_mod;

/* Of a buffer whose gradient is settled: what is wanted of it, and its first element. */
typedef struct fa_judge_gradient {
  double *value;
  float *accum, *scale;
  int64_t first, width;
} fa_judge_gradient;

/* Data to make: of each tensor the rows, one behind the other (cases/data/fill_plan.h). */
typedef struct fa_judge_fill {
  const fa_fill_tensor *tensor;
  int64_t n;
  const fa_fill_sequence *sequence;
  char *images;
} fa_judge_fill;

typedef struct fa_judge_job {
  const fa_ref_call
      *c;         /* with profile, p and entry in the machine's memory; nothing else in it is followed */
  uint64_t nonce; /* of this call */
  int64_t n;      /* items of this launch */
  int strand;     /* 0 or 1: launches of one strand do not wait for those of the other */
  bool beside;    /* this launch does not wait for the one before it either, if that is of the same kernel */
  fa_judge_head *head;             /* of the turn */
  const fa_judge_block *block;     /* of the wave */
  int64_t n_heads, n_blocks, wave; /* wave: its first block, of the call's */
  int64_t q_step, k_step;
  fa_judge_found *found;
  fa_judge_tensor q, k, v, d_o, o, lse, dlse, got_dq, got_dk, got_dv; /* O ..: the subject's */
  fa_judge_tensor debug;                                              /* dropout's matrix, the subject's */
  fa_ulp debug_ulp;
  bool debug_without_zeros;       /* a 0 in it has lost its sign, and says nothing */
  int64_t debug_rows, debug_keys; /* of a head in it; behind the sequence's nothing is wanted */
  fa_judge_tensor bias, got_dbias, got_dsinks, bits; /* bits: bytes */
  fa_judge_tensor rotated, flip_q,
      flip_k; /* queries after rotary embedding, and how far they and keys may be off */
  fa_judge_tensor q_descale, k_descale, v_descale; /* of operands of 8 bits: [rows][tiles], as these lie */
  fa_judge_tensor times; /* how often a row's list names a key: [rows][times_width] */
  fa_judge_tensor hidden,
      visits; /* bits of pairs [batch][heads_q][seqlen_q][hidden_width]; bytes of blocks' tiles */
  int64_t times_width, hidden_width;
  bool kept_scores; /* fa_ref_keeps_scores */
  fa_judge_mod mod;
  fa_judge_gradient gradient; /* that is settled */
  fa_judge_tensor whole;      /* where its largest element is looked for, and goes */
  double *whole_to;
  /* operands: [keys of the turn][D | Dv], [rows of the wave][D | Dv]; magnitudes are in units, 2: squares */
  double *k64, *v64, *q64, *do64;
  float *k1, *k2, *v1, *v2, *q1, *q2, *do1, *do2, *max_k, *max_v;
  float *stored_q,
      *stored_k; /* [D]: numbers of 8 bits, and their exponents, where narrow sums are walked over */
  int *exponent_q, *exponent_k;
  float *turned_q,
      *turned_k;     /* [2 D]: q + flip, flip; and flip, k: their product is what flips do to a score */
  fa_judge_row *row; /* [rows of the wave] */
  int64_t row_parts; /* what a row is differentiated in, FA_PART keys each */
  fa_judge_row_part *row_part; /* [parts][rows of the wave] */
  /* panels; s: scores, then P Z; dp: dP, then dS. e, d: products of magnitudes, then sums' terms by key */
  double *s, *dp;
  float *e, *d, *w, *w2, *we, *g, *g2, *ge;
  double *
      plain_ds; /* NULL without dBias and gradients of buffers; before the score chain and roundings: dS, its bound's terms and errors */
  float *plain_g, *plain_ge;
  float *key_terms, *key_exact; /* [keys of the wave's blocks] */
  void *part;                   /* of sums of rows of the wave: [parts][rows][D | Dv] */
  fa_judge_sums_of acc;         /* [rows of the wave]: O, or dQ */
  fa_judge_sums_of dk, dv;      /* [keys of the turn] */
  float *dk_terms, *dv_exact;
  float *parts_dk,
      *parts_dv; /* [keys of the turn][D | Dv]: sums of the members' magnitudes; NULL: not wanted */
  fa_bound_io io;
  fa_judge_want want_o, want_lse, want_dq, want_dk, want_dv, want_dbias, want_dsinks;
  fa_bound_dsink *dsinks; /* [heads_q]: of what is summed so far; its value is want_dsinks' */
  fa_judge_product product;
  fa_judge_output output; /* that is compared */
  fa_judge_fill fill;
} fa_judge_job;

#endif
