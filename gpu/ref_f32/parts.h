/* The parts of the `ref-f32` backend: a plain float32 attention that works on one tile of scores at a time.
 *
 * It is a second, independent implementation of docs/reference/semantics.md in the arithmetic of a simple kernel, with
 * its own masks, dropout bits and address arithmetic. Every product and sum is one fmaf (one rounding per
 * step), P and dS are rounded to the element type before they are multiplied, and outputs are rounded
 * once. */
#ifndef FA_GPU_REF_F32_PARTS_H
#define FA_GPU_REF_F32_PARTS_H

#include "cases/tensors/set.h"
#include "cases/vocabulary/problem.h"

#define FA_F32_TILE_M 64 /* query rows per tile */
#define FA_F32_TILE_N 64 /* keys per tile */
#define FA_F32_LANES 16  /* rows of float buffers are padded with zeros to a multiple of this */

static inline int64_t fa_f32_padded(int64_t n) {
  return (n + FA_F32_LANES - 1) / FA_F32_LANES * FA_F32_LANES;
}

/* ---- tiles of floats (gpu/ref_f32/tile.c) ---- */

/* C[m x n] += A[m x k] B[k x n]: each element is a chain of k fmaf in ascending k, starting from C. A's
 * element (i, l) is at a[i * a_row + l * a_col]; B and C are row-major with leading dimensions ldb, ldc; n is
 * rounded up to FA_F32_LANES, so the rows of B and C must be padded. */
void fa_f32_gemm(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row, int64_t a_col,
                 const float *b, int64_t ldb, float *c, int64_t ldc);
/* dst[c * ld + r] = src[r * ld_src + c] for r < rows, c < cols. */
void fa_f32_transpose(int64_t rows, int64_t cols, const float *src, int64_t ld_src, float *dst, int64_t ld);
/* n elements of type t, stride elements apart, to and from floats (rounding). */
void fa_f32_load(fa_dtype t, const char *src, int64_t stride, int64_t n, float *dst);
void fa_f32_store(fa_dtype t, char *dst, int64_t stride, int64_t n, const float *src);
/* Rounds n floats in place to type t; no-op for f32. */
void fa_f32_round(fa_dtype t, int64_t n, float *x);

/* ---- addresses of rows (gpu/ref_f32/rows.c) ---- */

/* One sequence: its lengths, and where its rows start in packed tensors. */
typedef struct fa_f32_sequence {
  int64_t b;
  int64_t q_first, k_first; /* first token in a packed (variable-length) tensor; 0 otherwise */
  int64_t n_q, n_k;         /* Sq, and Sk = the keys that exist: effective key j counts from leftpad */
  int64_t leftpad;
  int64_t k_extent; /* key rows of the sequence in memory, existing or not */
} fa_f32_sequence;

fa_f32_sequence fa_f32_sequence_make(const fa_problem *p, const fa_tensors *t, int64_t b);
/* Row i of head h of a tensor shaped like q (q, o, do, dq). */
char *fa_f32_q_row(const fa_problem *p, const fa_tensor *t, const fa_f32_sequence *e, int64_t h, int64_t i);
/* Row s (counted from the start of the sequence's extent, leftpad included) of KV head hk, through the cache
 * row or the page table if there is one. */
char *fa_f32_k_row(const fa_problem *p, const fa_tensors *set, const fa_tensor *t, const fa_f32_sequence *e,
                   int64_t hk, int64_t s);
/* Element (h, i) of a tensor shaped like lse. */
float *fa_f32_lse_at(const fa_problem *p, const fa_tensor *t, const fa_f32_sequence *e, int64_t h, int64_t i);
/* Loads rows [first, first + n) into a float tile with leading dimension ld, and zeroes its rows up to
 * n_padded. */
void fa_f32_load_q(const fa_problem *p, const fa_tensors *set, const fa_tensor *t, const fa_f32_sequence *e,
                   int64_t h, int64_t first, int64_t n, int64_t n_padded, float *dst, int64_t ld);
void fa_f32_load_k(const fa_problem *p, const fa_tensors *set, const fa_tensor *t, const fa_f32_sequence *e,
                   int64_t hk, int64_t first_key, int64_t n, int64_t n_padded, float *dst, int64_t ld);

/* ---- operands of 8 bits (gpu/ref_f32/descale.c) ---- */

/* Multiplies a row of q, k or v by its descale, if it has one: row s of head h of the sequence, where k and v count from the
 * start of its extent. */
void fa_f32_descale_q(const fa_problem *p, const fa_tensors *set, const fa_f32_sequence *e, int64_t h,
                      int64_t s, float *x);
void fa_f32_descale_k(const fa_problem *p, const fa_tensors *set, const fa_tensor *t,
                      const fa_f32_sequence *e, int64_t hk, int64_t s, float *x);
/* Loads n columns of a row of a cache that mixes types (cases/tensors/mixed.h). */
void fa_f32_load_mixed(const fa_problem *p, const char *row, int64_t n, float *x);
/* The same of a cache of numbers of 4 bits (cases/tensors/nibbles.h), n of them, times the scales of their blocks. */
void fa_f32_load_nibbles(const char *row, const char *scales, int64_t n, float *x);
/* Makes of a new key, or value, what is stored of it where the call quantises. */
void fa_f32_quantise_k(const fa_problem *p, const fa_tensors *set, const fa_tensor *t,
                       const fa_f32_sequence *e, int64_t hk, int64_t s, float *x);
/* The type that P is rounded to: f32 beside queries of 8 bits. */
fa_dtype fa_f32_p_dtype(const fa_problem *p);

/* ---- scores, masks (gpu/ref_f32/score.c) ---- */

typedef struct fa_f32_mods fa_f32_mods; /* score_mod and mask_mod (gpu/ref_f32/mods.c) */

typedef struct fa_f32_score {
  const fa_problem *p;
  const fa_tensors *t;
  const fa_f32_sequence *e;
  int64_t h;
  float scale, softcap, slope;
  int64_t shift;
  fa_window window; /* j - i - shift in [-left, right] where bounded */
  int64_t chunk;    /* keys of a chunk; 0: no chunks */
  const uint8_t
      *tiles; /* block-sparse: [n_q_blocks][n_kv_blocks] 1 = partial, 2 = full; NULL = all partial */
  int64_t n_kv_blocks;
  fa_f32_mods *mods; /* NULL: none; set by the pass */
} fa_f32_score;

/* tiles: room for the tile map of one head (fa_f32_tiles_size bytes); NULL if that is 0. */
size_t fa_f32_tiles_size(const fa_problem *p, const fa_tensors *t);
fa_f32_score fa_f32_score_make(const fa_problem *p, const fa_tensors *t, const fa_f32_sequence *e, int64_t h,
                               uint8_t *tiles);
/* False only if no pair of the tile is visible. */
bool fa_f32_tile_visible(const fa_f32_score *c, int64_t i0, int64_t n_i, int64_t j0, int64_t n_j);
/* s: raw dot products [n_i][ld] in, logits out, -inf where masked (and in columns n_j..n_padded).
 * slope_of_chain, or NULL: d(logit) / d(scale * dot), which softcap and score_mod make different from 1; 0
 * where masked. */
void fa_f32_score_tile(const fa_f32_score *c, int64_t i0, int64_t n_i, int64_t j0, int64_t n_j,
                       int64_t n_padded, float *s, float *slope_of_chain, int64_t ld);

/* ---- expressions (gpu/ref_f32/mods.c) ---- */

/* Sets *out to NULL if the problem has no expressions. */
fa_status fa_f32_mods_make(const fa_problem *p, const fa_tensors *t, bool backward, fa_f32_mods **out,
                           fa_error *err);
void fa_f32_mods_free(fa_f32_mods *m);
/* mask_mod's answers for n <= FA_F32_TILE_N pairs. */
void fa_f32_mods_mask(const fa_f32_score *c, int64_t i, int64_t j0, int64_t n, bool *visible);
/* Row r of the tile: t becomes score_mod(t); chain (NULL in the forward pass) is multiplied by the
 * derivative. */
void fa_f32_mods_score(const fa_f32_score *c, int64_t r, int64_t i, int64_t j0, int64_t n, float *t,
                       float *chain);
/* After the tile's fa_f32_score_tile with a chain: adds g = P (dP - delta) to the gradients of captured
 * buffers. */
void fa_f32_mods_add_gradients(const fa_f32_score *c, int64_t n_i, int64_t n_j, const float *g, int64_t ld,
                               const float *logits);
void fa_f32_mods_write(const fa_f32_mods *m, fa_tensors *t);

/* ---- dropout (gpu/ref_f32/dropout.c) ---- */

/* keep[r * ld + c] = 1 if the pair (i0 + r, j0 + c) survives. */
void fa_f32_keep_tile(const fa_f32_score *c, int64_t i0, int64_t n_i, int64_t j0, int64_t n_j, uint8_t *keep,
                      int64_t ld);

/* ---- KV cache (gpu/ref_f32/cache.c) ---- */

/* Rotates one row x[d] in place by the table row `position`, then rounds it to the problem's type. */
void fa_f32_rotate(const fa_problem *p, const fa_tensors *t, int64_t position, float *x);
/* Position that query row i of the sequence is rotated by. */
int64_t fa_f32_query_position(const fa_problem *p, const fa_tensors *t, const fa_f32_sequence *e, int64_t i);
/* Writes the new keys and values into the caches. row: space for one row of floats. */
void fa_f32_append(const fa_problem *p, fa_tensors *t, float *row);

/* ---- partial states (gpu/ref_f32/merge.c) ---- */

/* The passes of family merge: O and LSE of the parts; the gradients of the parts, from the set's own O and LSE. */
fa_status fa_f32_merge_forward(const fa_problem *p, fa_tensors *t, fa_error *err);
fa_status fa_f32_merge_backward(const fa_problem *p, fa_tensors *t, fa_error *err);

/* ---- passes ---- */

/* Writes O, LSE and P_DEBUG if the set holds them. FA_ERR_MEMORY only. */
fa_status fa_f32_forward(const fa_problem *p, fa_tensors *t, fa_error *err);
/* Writes dQ, dK, dV, dBias and the buffers' gradients, from the set's own O and LSE. */
fa_status fa_f32_backward(const fa_problem *p, fa_tensors *t, fa_error *err);

#endif
