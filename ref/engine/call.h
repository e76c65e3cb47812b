/* Inside of the reference: one call's geometry, and its tensors' rows.
 *
 * A call is divided into query blocks of FA_BLOCK_M rows of one head; each walks the key blocks of FA_BLOCK_N
 * keys that hold a visible pair. Key indices j are effective ones: they count from the sequence's leftpad. */
#ifndef FA_REF_ENGINE_CALL_H
#define FA_REF_ENGINE_CALL_H

#include "cases/vocabulary/problem.h"
#include "ref/engine/options.h"
#include "ref/engine/want.h"

enum { FA_BLOCK_M = 256, FA_BLOCK_N = 256 };

/* One sequence of the batch. */
typedef struct fa_ref_sequence {
  int64_t b;
  int64_t sq, sk;    /* its query rows; its effective keys: used ones minus leftpad */
  int64_t shift;     /* of the mask: 0 or sk - sq */
  int64_t q_first;   /* its first row on the token axis (0 unless variable length) */
  int64_t k_first;   /* the same for keys, leftpad included; kvcache: leftpad */
  int64_t row;       /* index on the batch axis of K and V (the cache row), -1: variable length or paged */
  int64_t drop_keys; /* fa_ref_dropout_keys */
  int64_t n_old;     /* kvcache: effective keys below this come from the cache, the others from k_new */
} fa_ref_sequence;

/* Rotated rows (kvcache with rotary): rounded to the I/O type as the kernel stores them. */
typedef struct fa_ref_rotated {
  double *q, *k;   /* [B, Sq, Hq, D], [B, n_new, Hk, D] */
  float *dq, *dk;  /* how far the value moves if f32 arithmetic rounds it differently */
  double *exact_k; /* k before the rounding */
  float *exact_k_err;
} fa_ref_rotated;

struct fa_ref_mods;
struct fa_ref_topk;

typedef struct fa_ref_call {
  const fa_problem *p;
  const fa_tensors *in;
  const fa_profile *profile; /* NULL: values only */
  bool generic;
  double lambda;
  const fa_ref_twist *twist;   /* NULL: none */
  const fa_ref_sample *sample; /* NULL: everything */
  int n_threads;
  fa_ref_sequence *entry; /* [p->batch] */
  int64_t max_sq, max_sk;
  int64_t heads_q, heads_kv, group; /* group = heads_q / heads_kv */
  int64_t d, dv;
  double q_descale_most, v_descale_least, v_descale_most; /* of descales; 1 of what is not of 8 bits */
  fa_ref_rotated rotated;
  struct fa_ref_mods *mods; /* score_mod and mask_mod (ref/mods/tile.h); NULL: neither */
  struct fa_ref_topk *topk; /* ref/engine/topk.h; NULL: no lists of keys */
  fa_wants *out;
  bool shapes_alone;
  /* backward */
  const fa_tensor *given_o, *given_lse;
  const fa_wants *forward;
} fa_ref_call;

/* The key/value head that query head h reads, and the query head at a place of such a head's group. */
int64_t fa_ref_kv_head(const fa_ref_call *c, int64_t h);
int64_t fa_ref_group_member(const fa_ref_call *c, int64_t hk, int64_t place);

/* Sets everything except mods (fa_ref_mods_init; free mods before the call). */
fa_status fa_ref_call_init(fa_ref_call *c, const fa_problem *p, const fa_tensors *in,
                           const fa_ref_options *opt, fa_wants *out, fa_error *err);
void fa_ref_call_free(fa_ref_call *c);

/* ---- load.c: strided tensors to contiguous double ---- */

void fa_ref_load_row(const fa_tensor *t, const char *at, int64_t stride, int64_t n, double *out);
/* Row i of a [B,S,H,D] or [total,H,D] tensor on the query side. */
const char *fa_ref_q_row(const fa_ref_call *c, const fa_tensor *t, const fa_ref_sequence *e, int64_t h,
                         int64_t i);
/* The n rows that are listed. */
void fa_ref_load_q(const fa_ref_call *c, fa_tensor_id id, const fa_ref_sequence *e, int64_t h,
                   const int64_t *row, int64_t n, double *out);
/* Keys or values (id FA_T_K / FA_T_V) j0 .. j0 + n - 1 of a key/value head. */
void fa_ref_load_k(const fa_ref_call *c, fa_tensor_id id, const fa_ref_sequence *e, int64_t hk, int64_t j0,
                   int64_t n, double *out);
double fa_ref_lse_get(const fa_ref_call *c, const fa_tensor *t, const fa_ref_sequence *e, int64_t h,
                      int64_t i);
int64_t fa_ref_lse_index(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i);
/* Element offset of row (e, h, i) in a row-major [B,S,H,width] or [total,H,width] array. */
int64_t fa_ref_q_index(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i, int64_t width);
int64_t fa_ref_k_index(const fa_ref_call *c, const fa_ref_sequence *e, int64_t hk, int64_t j, int64_t width);

/* An LSE of one float from here on is rounded by more than 1/2, and no longer says what P is. */
#define FA_COARSE_LSE 0x1p24

/* ---- spans.c: the elements of an output that a call's sample has ---- */

/* The sample's rows of O, dQ or the LSE, and the keys of its strips of dK or dV. */
fa_status fa_ref_span_rows(const fa_ref_call *c, fa_want *w, fa_error *err);
fa_status fa_ref_span_keys(const fa_ref_call *c, fa_want *w, fa_error *err);

/* ---- kvcache.c ---- */

fa_status fa_ref_rotate_all(fa_ref_call *c, fa_error *err);
/* Offset in elements of key jj (leftpad included) of a contiguous or paged cache. */
int64_t fa_ref_cache_offset(const fa_ref_call *c, const fa_tensor *t, const fa_ref_sequence *e, int64_t hk,
                            int64_t jj);
/* Writes the caches after the call to out->t[FA_T_K], [FA_T_V]. */
fa_status fa_ref_cache_after(fa_ref_call *c, fa_error *err);

#endif
