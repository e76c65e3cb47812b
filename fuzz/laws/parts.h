/* Private to fuzz/laws: runs of the subject, and how their outputs correspond. */
#ifndef FA_FUZZ_LAWS_PARTS_H
#define FA_FUZZ_LAWS_PARTS_H

#include "cases/tensors/table.h"
#include "fuzz/laws/check.h"

/* One call of the subject. */
typedef struct fa_law_side {
  fa_problem p;       /* owned */
  fa_tensors in, out; /* before and after */
  fa_profile profile;
  int bounded;                 /* kind of bounds below: 0 none yet, 1 the reference's, 2 a priori */
  fa_wants want;               /* bounded 1 */
  double *bound_o, *bound_lse; /* bounded 2: [batch][heads_q], infinite if there is none */
} fa_law_side;

typedef struct fa_law_work {
  const fa_case *c;
  const fa_run_config *config;
  fa_result *r;
  fa_law_side base, other;
  unsigned passes; /* the passes of all runs of this law */
  bool generic;    /* the data allows sqrt(n) bounds */
  bool over;       /* the result is final: skipped, or the subject did not finish */
  int64_t n_compared, n_runs;
} fa_law_work;

/* The law does not apply to this case. */
fa_status fa_law_skip(fa_law_work *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define FA_SKIP_IF(condition, ...)                                                                           \
  do {                                                                                                       \
    if (condition) return fa_law_skip(w, __VA_ARGS__);                                                       \
  } while (0)
/* Continues only if nothing failed and the result is not final. */
#define FA_LAW_TRY(e)                                                                                        \
  do {                                                                                                       \
    fa_status law_status = (e);                                                                              \
    if (law_status != FA_OK || w->over) return law_status;                                                   \
  } while (0)

/* ---- fuzz/laws/run.c ---- */

/* Makes the case's own tensors; the base's problem may be changed before fa_law_run if shapes stay the
 * same. */
fa_status fa_law_make_base(fa_law_work *w, fa_error *err);
/* Makes a side with the same problem and inputs. */
fa_status fa_law_make_like(fa_law_work *w, fa_law_side *to, const fa_law_side *from, fa_error *err);
/* Makes tensors for another problem, with plain strides in the case's layout, and the case's data. */
fa_status fa_law_make_for(fa_law_work *w, fa_law_side *to, const fa_problem *p, fa_error *err);
/* Makes the result final if the subject cannot run it, does not finish, or returns a NaN where none is
 * allowed. Outputs that it does not deliver are absent from out afterwards. */
fa_status fa_law_run(fa_law_work *w, fa_law_side *s, fa_error *err);
void fa_law_side_free(fa_law_side *s);

/* ---- fuzz/laws/nan.c ---- */

/* Raises FAIL, and makes the result final, for a NaN in O, LSE, or a gradient. None is ever right, except in
 * a gradient if dS may be too large for its type. FA_ERR_INPUT: an expression has no value there. */
fa_status fa_law_check_nan(fa_law_work *w, fa_law_side *s, fa_error *err);

/* ---- fuzz/laws/compare.c ---- */

typedef enum fa_law_mode { FA_LAW_NOT, FA_LAW_BITS, FA_LAW_BOUND } fa_law_mode;

/* Element `index` of the other run must equal factor * base[at] + shift; factor is a power of two. */
typedef struct fa_law_link {
  int64_t at[FA_MAX_RANK];
  double factor, shift;
  bool powers; /* its operands were doubled and halved: exact except for underflow, even with factor 1 */
} fa_law_link;
/* Sets a link that is initially the same index, factor 1, shift 0. False: the element is not compared. */
typedef bool fa_law_map(const fa_law_work *w, const void *ctx, fa_tensor_id id, const int64_t *index,
                        fa_law_link *link);
/* map NULL: element by element. BITS: equal bits (factor != 1: equal values, at most one unit of the smallest
 * subnormals apart). It falls back to BOUND for a dQ that atomics may sum in any order, and between kernels
 * with different key tiles, which calls may have whose rows are aligned in one of them alone. BOUND: within the bounds of both runs. Raises FAIL. */
fa_status fa_law_compare(fa_law_work *w, fa_law_side *other, fa_tensor_id id, fa_law_mode mode,
                         fa_law_map *map, const void *ctx, fa_error *err);
/* How each output is compared; gradients only if they were computed. */
typedef struct fa_law_modes {
  fa_law_mode of[FA_T_COUNT];
} fa_law_modes;
/* All outputs in one way, except those of buffers. */
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

/* Computes the bounds of a side's outputs, once. */
fa_status fa_law_bounds(fa_law_work *w, fa_law_side *s, fa_error *err);
/* Bound of one element; infinite: unknown. has: false if the tensor has no bounds at all (long gradients). */
double fa_law_bound_at(const fa_law_side *s, fa_tensor_id id, const int64_t *index, int64_t position,
                       bool *has);

/* ---- fuzz/laws/split.c, fuzz/laws/cache.c ---- */

/* Sequence b of p as a separate dense problem. */
fa_status fa_law_sequence_problem(const fa_problem *p, int64_t b, fa_problem *out, fa_error *err);
/* True if the backend chooses the number of splits, perhaps by the batch. After both runs. */
bool fa_law_chooses_splits(const fa_law_work *w);
/* The first two indices of slot `slot` of sequence b in the caches of a side. */
void fa_law_slot_at(const fa_law_side *s, int64_t b, int64_t slot, int64_t *index);
/* Compares sequence b of the base, which has run, with a batch of one and its cache. */
fa_status fa_law_compare_cached_sequence(fa_law_work *w, int64_t b, fa_error *err);

/* ---- fuzz/laws/order.c, fuzz/laws/split.c, fuzz/laws/scale.c, fuzz/laws/mask.c, fuzz/laws/cache.c: the laws ---- */

typedef fa_status fa_law_fn(fa_law_work *w, fa_error *err);
fa_law_fn fa_law_repeat, fa_law_key_permutation, fa_law_head_permutation, fa_law_page_permutation;
fa_law_fn fa_law_batch_alone, fa_law_varlen_separate, fa_law_causal_prefix, fa_law_merge_ranges,
    fa_law_split_count;
fa_law_fn fa_law_scale_power, fa_law_value_power, fa_law_grad_power, fa_law_bias_shift;
fa_law_fn fa_law_window_open, fa_law_bias_mask, fa_law_dropout_none;
fa_law_fn fa_law_cache_contiguous, fa_law_cache_appended;
fa_law_fn fa_law_part_permutation, fa_law_part_empty, fa_law_part_nested; /* fuzz/laws/states.c */
fa_law_fn fa_law_sink_none;
fa_law_fn fa_law_list_order; /* fuzz/laws/lists.c */

#endif
