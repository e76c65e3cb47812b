/* Inside fuzz/laws*.c: runs of the subject, and how their outputs belong together. */
#ifndef FA_FUZZ_LAWS_PARTS_H
#define FA_FUZZ_LAWS_PARTS_H

#include "cases/tensors/table.h"
#include "fuzz/laws/check.h"

/* One call of the subject. */
typedef struct fa_law_side {
  fa_problem p;       /* owned */
  fa_tensors in, out; /* before and after */
  fa_profile profile;
  int bounded;                 /* what stands below: 0 nothing yet, 1 the reference's bounds, 2 a priori */
  fa_wants want;               /* bounded 1 */
  double *bound_o, *bound_lse; /* bounded 2: [batch][heads_q], infinite where there is none */
} fa_law_side;

typedef struct fa_law_work {
  const fa_case *c;
  const fa_run_config *config;
  fa_result *r;
  fa_law_side base, other;
  unsigned passes; /* that all runs of this law do */
  bool generic;    /* the data lets sqrt(n) bounds hold */
  bool over;       /* the result is settled: skipped, or the subject did not come to its end */
  int64_t n_compared, n_runs;
} fa_law_work;

/* The law says nothing about this case. */
fa_status fa_law_skip(fa_law_work *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define FA_SKIP_IF(condition, ...)                                                                           \
  do {                                                                                                       \
    if (condition) return fa_law_skip(w, __VA_ARGS__);                                                       \
  } while (0)
/* Goes on only while nothing failed and nothing is settled. */
#define FA_LAW_TRY(e)                                                                                        \
  do {                                                                                                       \
    fa_status law_status = (e);                                                                              \
    if (law_status != FA_OK || w->over) return law_status;                                                   \
  } while (0)

/* ---- fuzz/laws/run.c ---- */

/* The case's own tensors; the base's problem may be changed before fa_law_run where shapes stay. */
fa_status fa_law_make_base(fa_law_work *w, fa_error *err);
/* The same problem and inputs again. */
fa_status fa_law_make_like(fa_law_work *w, fa_law_side *to, const fa_law_side *from, fa_error *err);
/* Tensors for another problem, plain strides in the case's layout, the case's data. */
fa_status fa_law_make_for(fa_law_work *w, fa_law_side *to, const fa_problem *p, fa_error *err);
/* Settles the result if the subject cannot do it, does not come to its end, or puts a NaN where none may be.
 */
fa_status fa_law_run(fa_law_work *w, fa_law_side *s, fa_error *err);
void fa_law_side_free(fa_law_side *s);

/* ---- fuzz/laws/nan.c ---- */

/* Raises FAIL, and settles the result, for a NaN in O, LSE, or a gradient: none is ever right, but in a
 * gradient behind a dS that may be too large for its type. FA_ERR_INPUT: an expression has no value there. */
fa_status fa_law_check_nan(fa_law_work *w, fa_law_side *s, fa_error *err);

/* ---- fuzz/laws/compare.c ---- */

typedef enum fa_law_mode { FA_LAW_NOT, FA_LAW_BITS, FA_LAW_BOUND } fa_law_mode;

/* Element `index` of the other run must be factor * base[at] + shift; factor is a power of two. */
typedef struct fa_law_link {
  int64_t at[FA_MAX_RANK];
  double factor, shift;
  bool powers; /* what it is made of was doubled and halved: exact but for underflow, even with factor 1 */
} fa_law_link;
/* Fills in a link that starts as the same index, factor 1, shift 0. False: the element is not compared. */
typedef bool fa_law_map(const fa_law_work *w, const void *ctx, fa_tensor_id id, const int64_t *index,
                        fa_law_link *link);
/* map NULL: element by element. BITS: equal bits (factor != 1: equal values, one unit of the smallest
 * subnormals apart at most); falls back to BOUND for a dQ that atomics may sum in any order, and between
 * kernels of different key tiles. BOUND: within the bounds of both runs. Raises FAIL. */
fa_status fa_law_compare(fa_law_work *w, fa_law_side *other, fa_tensor_id id, fa_law_mode mode,
                         fa_law_map *map, const void *ctx, fa_error *err);
/* How each output is compared; gradients only where they were run. */
typedef struct fa_law_modes {
  fa_law_mode of[FA_T_COUNT];
} fa_law_modes;
/* All outputs in one way, those of buffers left out. */
fa_law_modes fa_law_modes_all(fa_law_mode mode);
void fa_law_modes_dbias(fa_law_modes *modes, fa_law_mode mode);
fa_status fa_law_compare_all(fa_law_work *w, fa_law_side *other, fa_law_modes modes, fa_law_map *map,
                             const void *ctx, fa_error *err);
/* Raises FAIL: "LAW: TENSOR: what". */
void fa_law_break(fa_law_work *w, fa_tensor_id id, bool nan, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void fa_law_mismatch(fa_law_work *w, fa_tensor_id id, int64_t n_bad, int64_t n, const fa_tensor *t,
                     const int64_t *index, double got, double want, double bound);

/* ---- fuzz/laws/bound.c ---- */

/* Bounds of a side's outputs, made once. */
fa_status fa_law_bounds(fa_law_work *w, fa_law_side *s, fa_error *err);
/* Of one element; infinite: unknown. has: false if this tensor has none at all (long gradients). */
double fa_law_bound_at(const fa_law_side *s, fa_tensor_id id, const int64_t *index, int64_t position,
                       bool *has);

/* ---- fuzz/laws/split.c, fuzz/laws/cache.c ---- */

/* Entry b of p as a dense problem of its own. */
fa_status fa_law_sequence_problem(const fa_problem *p, int64_t b, fa_problem *out, fa_error *err);
/* Keys are cut into parts, in numbers that the backend chooses, perhaps by the batch. After both runs. */
bool fa_law_chooses_splits(const fa_law_work *w);
/* Where slot `slot` of entry b lies in the caches of a side: the first two indices. */
void fa_law_slot_at(const fa_law_side *s, int64_t b, int64_t slot, int64_t *index);
/* Entry b of the base, which has run, and its cache: as a batch of one. */
fa_status fa_law_compare_cached_sequence(fa_law_work *w, int64_t b, fa_error *err);

/* ---- fuzz/laws/order.c, fuzz/laws/split.c, fuzz/laws/scale.c, fuzz/laws/mask.c, fuzz/laws/cache.c: the laws ---- */

typedef fa_status fa_law_fn(fa_law_work *w, fa_error *err);
fa_law_fn fa_law_repeat, fa_law_key_permutation, fa_law_head_permutation, fa_law_page_permutation;
fa_law_fn fa_law_batch_alone, fa_law_varlen_separate, fa_law_causal_prefix, fa_law_merge_ranges,
    fa_law_split_count;
fa_law_fn fa_law_scale_power, fa_law_value_power, fa_law_grad_power, fa_law_bias_shift;
fa_law_fn fa_law_window_open, fa_law_bias_mask, fa_law_dropout_none;
fa_law_fn fa_law_cache_contiguous, fa_law_cache_appended;

#endif
