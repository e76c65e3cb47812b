/* Private to the reference: the geometry of a call, the scores of one tile, and the scratch of one thread.
 *
 * A call is divided into query blocks of FA_BLOCK_M rows of one head; each walks the key blocks of FA_BLOCK_N
 * keys that hold a visible pair. Key indices j are effective ones: they count from the sequence's leftpad. */
#ifndef FA_REF_ENGINE_CALL_H
#define FA_REF_ENGINE_CALL_H

#include "ref/math/gemm.h"
#include "ref/reference.h"

enum { FA_BLOCK_M = 256, FA_BLOCK_N = 256 };

/* One sequence of the batch. */
typedef struct fa_ref_sequence {
  int64_t b;
  int64_t sq, sk;  /* its query rows; its effective keys: used ones minus leftpad */
  int64_t shift;   /* of the mask: 0 or sk - sq */
  int64_t q_first; /* its first row on the token axis (0 unless variable length) */
  int64_t k_first; /* the same for keys, leftpad included; kvcache: leftpad */
  int64_t row;     /* index on the batch axis of K and V (the cache row), -1: variable length or paged */
  int64_t n_old;   /* kvcache: effective keys below this come from the cache, the others from k_new */
} fa_ref_sequence;

/* Rotated rows (kvcache with rotary): rounded to the I/O type as the kernel stores them. */
typedef struct fa_ref_rotated {
  double *q, *k;   /* [B, Sq, Hq, D], [B, n_new, Hk, D] */
  float *dq, *dk;  /* how far the value moves if f32 arithmetic rounds it differently */
  double *exact_k; /* k before the rounding */
  float *exact_k_err;
} fa_ref_rotated;

struct fa_ref_mods;
struct fa_ref_mod_scratch;

typedef struct fa_ref_call {
  const fa_problem *p;
  const fa_tensors *in;
  const fa_profile *profile; /* NULL: values only */
  bool generic;
  double lambda;
  int n_threads;
  fa_ref_sequence *entry; /* [p->batch] */
  int64_t max_sq, max_sk;
  int64_t heads_q, heads_kv, group; /* group = heads_q / heads_kv */
  int64_t d, dv;
  fa_ref_rotated rotated;
  struct fa_ref_mods *mods; /* score_mod and mask_mod (ref/mods/tile.h); NULL: neither */
  fa_wants *out;
  /* backward */
  const fa_tensor *given_o, *given_lse;
  const fa_wants *forward;
} fa_ref_call;

fa_status fa_ref_call_init(fa_ref_call *c, const fa_problem *p, const fa_tensors *in,
                           const fa_ref_options *opt, fa_wants *out, fa_error *err);
void fa_ref_call_free(fa_ref_call *c);

/* ---- mask.c ---- */

/* Keys [*lo, *hi) visible to row i by length, causality and window (block lists are separate). None: 0, 0. */
void fa_ref_visible_range(const fa_ref_call *c, const fa_ref_sequence *e, int64_t i, int64_t *lo, int64_t *hi);
/* Block-sparse: is tile (i / q_block, j / kv_block) listed? Always true without lists. */
bool fa_ref_block_listed(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i, int64_t j);
/* The same as a fa_ref_tile (ref/mods/tile.h). Needs lists. */
int fa_ref_block_kind(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i, int64_t j);

/* One query block of one head. */
typedef struct fa_ref_rows {
  const fa_ref_sequence *e;
  int64_t h, i0, n;                       /* rows i0 .. i0 + n - 1 */
  int64_t lo[FA_BLOCK_M], hi[FA_BLOCK_M]; /* per row: visible keys by range */
  int64_t j_begin, j_end;                 /* union over the rows; none: equal */
} fa_ref_rows;
void fa_ref_rows_init(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i0, fa_ref_rows *r);
/* False if block lists hide the whole tile. */
bool fa_ref_tile_visited(const fa_ref_call *c, const fa_ref_rows *r, int64_t j0, int64_t n);
/* The pairs of a tile that may be visible: for each row, from the tile's key first to end - 1; for each key
 * likewise the rows. */
typedef struct fa_ref_tile_spans {
  int64_t row_first[FA_BLOCK_M], row_end[FA_BLOCK_M], key_first[FA_BLOCK_N], key_end[FA_BLOCK_N];
  fa_gemm_spans rows, keys; /* all of the above */
} fa_ref_tile_spans;
void fa_ref_tile_spans_init(const fa_ref_rows *r, int64_t j0, int64_t n, fa_ref_tile_spans *out);
/* Part of [j0, j0 + n) visible to row r->i0 + k by range, as offsets from j0; none: *begin == *end. */
void fa_ref_row_span(const fa_ref_rows *r, int64_t k, int64_t j0, int64_t n, int64_t *begin, int64_t *end);

/* ---- dropout.c ---- */

/* z[j] = 1/(1-p) or 0 for keys j0 .. j0 + n - 1 of row i. */
void fa_ref_dropout_row(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i, int64_t j0,
                        int64_t n, double *z);
void fa_ref_philox(uint64_t seed, int n_rounds, const uint32_t counter[4], uint32_t out[4]);
/* memeff's linear index of element (i, j), from the launch maxima and the sequence's own number of keys. */

/* ---- load.c: strided tensors to contiguous double ---- */

void fa_ref_load_row(const fa_tensor *t, const char *at, int64_t stride, int64_t n, double *out);
/* Row i of a [B,S,H,D] or [total,H,D] tensor on the query side. */
const char *fa_ref_q_row(const fa_ref_call *c, const fa_tensor *t, const fa_ref_sequence *e, int64_t h,
                         int64_t i);
void fa_ref_load_q(const fa_ref_call *c, fa_tensor_id id, const fa_ref_sequence *e, int64_t h, int64_t i0,
                   int64_t n, double *out);
/* Keys or values (id FA_T_K / FA_T_V) j0 .. j0 + n - 1 of a key/value head. */
void fa_ref_load_k(const fa_ref_call *c, fa_tensor_id id, const fa_ref_sequence *e, int64_t hk, int64_t j0,
                   int64_t n, double *out);
double fa_ref_lse_get(const fa_ref_call *c, const fa_tensor *t, const fa_ref_sequence *e, int64_t h, int64_t i);
int64_t fa_ref_lse_index(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i);
/* Element offset of row (e, h, i) in a row-major [B,S,H,width] or [total,H,width] array. */
int64_t fa_ref_q_index(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i, int64_t width);
int64_t fa_ref_k_index(const fa_ref_call *c, const fa_ref_sequence *e, int64_t hk, int64_t j, int64_t width);

/* ---- kvcache.c ---- */

fa_status fa_ref_rotate_all(fa_ref_call *c, fa_error *err);
/* Offset in elements of key jj (leftpad included) of a contiguous or paged cache. */
int64_t fa_ref_cache_offset(const fa_ref_call *c, const fa_tensor *t, const fa_ref_sequence *e, int64_t hk,
                            int64_t jj);
/* Writes the caches after the call to out->t[FA_T_K], [FA_T_V]. */
fa_status fa_ref_cache_after(fa_ref_call *c, fa_error *err);

/* ---- score.c ---- */

/* Applies the score chain to one tile in place: s[k*ld + j], for row r->i0 + k and key j0 + j, holds scale *
 * q.k and becomes the final score, -inf where masked. tanh_out (same layout) receives tanh(t/c) if there is a
 * softcap; may be NULL. mod: the thread's expressions; mod->before, if present, keeps the inputs of
 * score_mod. */
void fa_ref_score_tile(const fa_ref_call *c, const fa_ref_rows *r, int64_t j0, int64_t n, double *s,
                       int64_t ld, double *tanh_out, struct fa_ref_mod_scratch *mod);
double fa_ref_alibi_slope(const fa_ref_call *c, int64_t b, int64_t h);
/* The bias row (e, h, i) as pointer and element stride along k. */
const char *fa_ref_bias_row(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i);

/* ---- scratch: one thread's memory ---- */

/* Allocates the arrays of one block consecutively. Without a base, it only counts: adding to NULL is
 * undefined. */
typedef struct fa_ref_arena {
  char *base;
  size_t used;
} fa_ref_arena;

static inline void *fa_ref_arena_alloc(fa_ref_arena *a, int64_t n, size_t size) {
  void *p = a->base ? a->base + a->used : NULL;
  a->used += (((size_t)n * size + 63) / 64) * 64;
  return p;
}

typedef struct fa_ref_scratch {
  double *k, *v; /* one key/value head as doubles: [sk, D], [sk, Dv] */
  const fa_ref_sequence *e;
  int64_t hk;               /* the head in k and v; e == NULL: none */
  double *q, *d_o, *o;      /* [FA_BLOCK_M, D | Dv] */
  double *s, *dp, *ds, *th; /* tiles [FA_BLOCK_M, FA_BLOCK_N] */
  double *scores;           /* [FA_BLOCK_M, sk] of a query block, tile after tile, for its bounds; or NULL */
  double *z;                /* [FA_BLOCK_N] */
  double *acc;              /* [FA_BLOCK_M, max(D, Dv)] */
  double *dk, *dv;          /* [sk, D], [sk, Dv] */
  double *m, *l, *delta;    /* [FA_BLOCK_M] */
  struct fa_ref_mod_scratch *mod; /* ref/mods/tile.h; NULL: no expressions */
  char *arena;
} fa_ref_scratch;
fa_status fa_ref_scratch_init(fa_ref_scratch *s, const fa_ref_call *c, bool backward, fa_error *err);
void fa_ref_scratch_free(fa_ref_scratch *s);
/* Loads this head into k and v. */
void fa_ref_scratch_head(fa_ref_scratch *s, const fa_ref_call *c, const fa_ref_sequence *e, int64_t hk);

/* ---- threads.c ---- */

/* Calls work(context, thread, item) for item = 0 .. n_items - 1; up to n_threads threads (the caller
 * included) take items in order. Thread numbers are below n_threads. */
void fa_ref_parallel(int n_threads, int64_t n_items, void (*work)(void *context, int thread, int64_t item),
                     void *context);
/* Lets threads act in item order: wait(t, k) returns once done(t) was called k times. */
typedef struct fa_ref_order fa_ref_order;
fa_ref_order *fa_ref_order_new(int64_t n_queues);
void fa_ref_order_free(fa_ref_order *t);
void fa_ref_order_wait(fa_ref_order *t, int64_t queue, int64_t turn);
void fa_ref_order_done(fa_ref_order *t, int64_t queue);

/* ---- want.c ---- */

/* Allocates value (zeroed) and, with bounds, quant, accum, noise, scale. */
fa_status fa_want_init(fa_want *w, fa_dtype dtype, int rank, const int64_t *shape, bool bounds,
                       fa_error *err);

#endif
