/* A case: a problem, and the recipe for its data. A case stores no tensors; everything is rebuilt from the
 * recipe. The JSON text, the one-line form, the repro line and the fuzzer's output are all this object. */
#ifndef FA_CASES_RECIPE_CASE_H
#define FA_CASES_RECIPE_CASE_H

#include "cases/tensors/set.h"
#include "cases/vocabulary/fill.h"
#include "cases/vocabulary/law.h"
#include "cases/vocabulary/problem.h"

typedef enum fa_layout { FA_LAYOUT_BSHD, FA_LAYOUT_BHSD, FA_LAYOUT_SBHD } fa_layout;
/* KV, QKV: the tensors are interleaved in one buffer. */
typedef enum fa_packing { FA_PACK_NONE, FA_PACK_KV, FA_PACK_QKV } fa_packing;
/* Whether queries, keys and values have what QKV needs alike: lengths and types. */
bool fa_can_pack_qkv(const fa_problem *p);
typedef enum fa_expect { FA_EXPECT_PASS, FA_EXPECT_REJECT } fa_expect;

#define FA_MAX_NAME_CHARACTERS 1000 /* UTF-8 characters, no control characters */
#define FA_MAX_NOTE_CHARACTERS 10000
#define FA_MAX_REPEAT 10000

/* How one tensor differs from the plain strides of its layout; axes 0 b, 1 s, 2 h. */
typedef struct fa_stride_recipe {
  int64_t gap[3]; /* unused elements after each batch index, row, head; >= 0 */
  bool expand[3]; /* stride 0 along that axis (inputs only): all its indices read the same memory */
  int64_t offset; /* elements from the aligned start of the buffer to the first element: unaligned bases */
  int64_t tail;   /* elements after the last one that belong to the buffer: tokens past cu_seqlens[B] */
} fa_stride_recipe;

typedef struct fa_case {
  char *name, *note; /* owned, never NULL after fa_case_init ("" = none) */
  char *
      place; /* owned: "cases/causal.json:12", where it was read; NULL: in no file. It is no part of the recipe:
                  not compared, not written */
  fa_problem problem;
  fa_layout layout;
  fa_packing packing;
  fa_stride_recipe strides[FA_T_COUNT]; /* used where fa_case_has_strides */
  fa_fill fill[FA_T_COUNT];             /* used where fa_case_has_fill */
  /* Rows set to 0 after the fill: ascending, disjoint pairs from, to (one past the last), within the longest
   * sequence. Rows are counted within a sequence, as the fills count them, and are 0 in every sequence and
   * head. Used where fa_case_has_zero. A shrunk case uses it to show which rows its failure needs. */
  fa_int32_array zero[FA_T_COUNT]; /* owned */
  uint64_t data_seed;
  fa_poison poison;       /* of the outputs before the second and later runs; the first gets FA_POISON_A */
  int64_t repeat;         /* runs of the subject compared bit for bit, >= 1 */
  uint64_t schedule_seed; /* host: added to the run's own seed for the order of fibers and completions */
  fa_law law;             /* what judges: FA_LAW_NONE = the reference */
  fa_expect expect;
} fa_case;

fa_status fa_case_init(fa_case *c);
void fa_case_free(fa_case *c);
fa_status fa_case_copy(fa_case *dst, const fa_case *src); /* dst is overwritten, not freed */
fa_status fa_case_set_name(fa_case *c, const char *name);
bool fa_case_equal(const fa_case *a, const fa_case *b); /* every field, also unused fills and strides */
bool fa_case_has_fill(fa_tensor_id id);                 /* fa_tensor_is_filled */
bool fa_case_has_strides(
    fa_tensor_id id); /* every tensor whose axes are named, except the scores and one number a head */
/* The call has this tensor, which is one of those, and is not columns of another one. */
bool fa_case_uses(const fa_case *c, fa_tensor_id id);
bool fa_case_has_zero(fa_tensor_id id); /* filled tensors of tokens: q k v do */
bool fa_case_row_is_zero(const fa_case *c, fa_tensor_id id, int64_t row);
/* Number of rows that "zero" may name: those of the longest sequence. */
int64_t fa_case_zero_rows(const fa_case *c, fa_tensor_id id);
/* The part of fa_case_validate about "zero". */
fa_status fa_case_check_zero(const fa_case *c, fa_error *err);
bool fa_stride_recipe_is_plain(const fa_stride_recipe *r);
/* fa_tensor_shape of one of those tensors. */
void fa_case_tensor_shape(const fa_case *c, fa_tensor_id id, int64_t shape[4]);
#define FA_SPARE_PAGES 3 /* pages of a cache that no sequence owns: they stay NaN */
/* Shape of a cache with its spare rows or pages; d is its head dim. */
void fa_case_cache_shape(const fa_problem *p, int64_t d, int64_t shape[4]);
/* Validates problem, strides, packing and fills together; messages as in fa_problem_validate. For packed
 * tensors the recipe of the owner (q for qkv, k for kv) describes the shared buffer, and the others have
 * none. */
fa_status fa_case_validate(const fa_case *c, fa_error *err);
/* Sets every float input's fill. */
void fa_case_set_fill(fa_case *c, fa_fill fill);
/* True if every fill in use is generic, no input axis is expanded, and scale, softcap and score_mod do not
 * make logits equal. Then the sqrt(n) bounds apply. */
bool fa_case_is_generic(const fa_case *c);

typedef struct fa_case_list {
  fa_case *v; /* owned */
  int64_t n, capacity;
} fa_case_list;
void fa_case_list_free(fa_case_list *l);
/* Moves the case to the list; *c becomes empty. */
fa_status fa_case_list_push(fa_case_list *l, fa_case *c);

#endif
