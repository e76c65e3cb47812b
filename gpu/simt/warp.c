/* The collectives of a warp: the last lane to arrive executes them. */
#include "gpu/simt/block.h"
#include "gpu/simt/device_sm90.h"
#include "gpu/simt/mma.h"

#include <math.h>
#include <string.h>

const char *fa_simt_collective_name(fa_collective kind) {
  static const char *const name[] = {"__syncwarp", "shfl",  "ldmatrix",     "stmatrix",   "mma",        "mma",
                                     "vote",       "wgmma", "wgmma_commit", "wgmma_wait", "wgmma_fence"};
  return name[kind];
}

static inline fa_simt_warp *warp_of(const fa_simt_block *b) {
  return &b->warps[b->running->warp];
}

/* While a lane waits, its stack should occupy few cache lines: so nothing is inlined here, and only the
 * caller's pointers live across join. */
#define APART __attribute__((noinline))

/* Reports lanes of a warp that wait in different collectives. */
APART static void diverge(const fa_simt_warp *w, fa_collective kind, int lane, fa_simt_place at) {
  fa_simt_violation(FA_SUBJECT_DEADLOCK, at,
                    "warp divergence: lane %d is in %s, other lanes wait in %s at %s:%d", lane,
                    fa_simt_collective_name(kind), fa_simt_collective_name(w->kind), w->at.file, w->at.line);
}

APART bool fa_simt_collective_arrive(fa_collective kind, fa_simt_place at) {
  fa_simt_block *b = fa_simt_current;
  fa_simt_warp *w = warp_of(b);
  const int lane = b->running->lane;
  if (w->waiting == 0) {
    w->kind = kind;
    w->at = at;
  } else if (__builtin_expect(w->kind != kind || !fa_simt_same_place(w->at, at), 0)) {
    diverge(w, kind, lane, at);
  }
  w->waiting |= 1u << lane;
  if (w->waiting != 0xffffffffu) return false;
  w->waiting = 0;
  w->ready = ~(1u << lane);
  return true;
}

/* The running lane joins the warp's pending collective; its operands are already stored. */
__attribute__((always_inline)) static inline void join(fa_collective kind, void (*execute)(fa_simt_warp *),
                                                       fa_simt_place at) {
  if (fa_simt_collective_arrive(kind, at))
    execute(warp_of(fa_simt_current));
  else
    fa_simt_yield(fa_simt_current);
}

static void sync_warp_execute(fa_simt_warp *w) {
  w->sync_tick = ++fa_simt_current->tick;
}

void fa_simt_sync_warp(fa_simt_place at) {
  join(FA_COLLECTIVE_SYNC_WARP, sync_warp_execute, at);
}

static void shfl_execute(fa_simt_warp *w) {
  for (int l = 0; l < FA_WARP; ++l) w->shfl_result[l] = w->shfl_value[w->shfl_from[l]];
}

uint32_t fa_simt_shfl_xor(uint32_t value, int lane_mask, fa_simt_place at) {
  fa_simt_warp *w = warp_of(fa_simt_current);
  const int lane = fa_simt_current->running->lane;
  w->shfl_value[lane] = value;
  w->shfl_from[lane] = (uint32_t)(lane ^ lane_mask) & 31;
  join(FA_COLLECTIVE_SHFL, shfl_execute, at);
  const fa_simt_block *b = fa_simt_current;
  return warp_of(b)->shfl_result[b->running->lane];
}

static void vote_execute(fa_simt_warp *w) {
  uint32_t any = 0;
  for (int l = 0; l < FA_WARP; ++l) any |= w->shfl_value[l];
  for (int l = 0; l < FA_WARP; ++l) w->shfl_result[l] = any;
}

bool fa_simt_any(bool value, fa_simt_place at) {
  const fa_simt_block *b = fa_simt_current;
  warp_of(b)->shfl_value[b->running->lane] = value;
  join(FA_COLLECTIVE_VOTE, vote_execute, at);
  b = fa_simt_current;
  return warp_of(b)->shfl_result[b->running->lane];
}

typedef uint16_t halves __attribute__((vector_size(16)));

/* Elements of x and y by their numbers, those of y from 8 on. gcc 11 knows the older of the two functions alone. */
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
#define SHUFFLE(x, y, ...) __builtin_shuffle(x, y, (halves){__VA_ARGS__})
#endif

static void ldmatrix_execute(fa_simt_warp *w) {
  if (!w->choice) {
    memcpy(w->loaded, w->row_words, sizeof w->loaded);
    return;
  }
  uint32_t *loaded = w->loaded[0];        /* and the words after it */
  for (int i = 0; i < FA_WARP / 2; ++i) { /* two rows: a pair of each column */
    halves x, y;
    memcpy(&x, w->row[2 * i], sizeof x);
    memcpy(&y, w->row[2 * i + 1], sizeof y);
    const halves low = SHUFFLE(x, y, 0, 8, 1, 9, 2, 10, 3, 11);
    const halves high = SHUFFLE(x, y, 4, 12, 5, 13, 6, 14, 7, 15);
    memcpy(loaded + 8 * i, &low, sizeof low);
    memcpy(loaded + 8 * i + 4, &high, sizeof high);
  }
}

/* The check and the read happen when the lane arrives: the data cannot change before the last lane arrives
 * without a race, which the check of the other access would report. */
APART static void store_row_operand(uint32_t shared, bool transpose, fa_simt_place at) {
  fa_simt_block *b = fa_simt_current;
  fa_simt_warp *w = warp_of(b);
  memcpy(w->row[b->running->lane], fa_simt_shared_read16(b, shared, "ldmatrix read", at), 16);
  w->choice = transpose;
}

static inline void load_result_words(uint32_t r[4], int from) {
  const fa_simt_warp *w = warp_of(fa_simt_current);
  for (int m = 0; m < 4; ++m) r[m] = w->loaded[m][from];
}

void fa_simt_ldmatrix_x4(uint32_t r[4], uint32_t shared, bool transpose, fa_simt_place at) {
  store_row_operand(shared, transpose, at);
  if (transpose) { /* called in both branches, so that `transpose` need not be kept while the lane waits */
    join(FA_COLLECTIVE_LDMATRIX, ldmatrix_execute, at);
    const int lane = fa_simt_current->running->lane;
    load_result_words(r, 8 * (lane % 4) + lane / 4);
  } else {
    join(FA_COLLECTIVE_LDMATRIX, ldmatrix_execute, at);
    load_result_words(r, fa_simt_current->running->lane);
  }
}

/* The words of a row lie side by side once they are copied, as those of ldmatrix do before. */
void fa_simt_stmatrix_row(uint32_t row[4], const uint32_t r[4], bool transpose, fa_simt_place at) {
  fa_simt_warp *w = warp_of(fa_simt_current);
  for (int m = 0; m < 4; ++m) w->row_words[m][fa_simt_current->running->lane] = r[m];
  w->choice = transpose;
  join(FA_COLLECTIVE_STMATRIX, ldmatrix_execute, at);
  const int lane = fa_simt_current->running->lane;
  const uint32_t *words = warp_of(fa_simt_current)->loaded[lane / 8]; /* of the lane's matrix */
  if (transpose) /* a column's pairs of rows are eight words apart */
    for (int k = 0; k < 4; ++k) row[k] = words[8 * k + lane % 8];
  else
    memcpy(row, words + 4 * (lane % 8), 16);
}

static void mma_execute(fa_simt_warp *w) {
  fa_simt_current->work.products += 16 * 8 * 16;
  fa_mma_tile_run(&w->tile, w->choice);
}

/* Lane l has columns 2 (l % 4) and the next, of rows l / 4 and l / 4 + 8. */
static inline void store_accumulator(fa_mma_tile *t, int i, int j, const float d[4]) {
  t->c[j][i] = d[0];
  t->c[j + 1][i] = d[1];
  t->c[j][i + 8] = d[2];
  t->c[j + 1][i + 8] = d[3];
}

APART static void load_accumulator(float d[4]) {
  const fa_simt_block *b = fa_simt_current;
  const fa_mma_tile *t = &warp_of(b)->tile;
  const int i = b->running->lane / 4, j = 2 * (b->running->lane % 4);
  d[0] = t->d[j][i];
  d[1] = t->d[j + 1][i];
  d[2] = t->d[j][i + 8];
  d[3] = t->d[j + 1][i + 8];
}

/* A register holds two neighbours of a row of a, and of a column of b. */
APART static void store_operands(const float d[4], const uint32_t a[4], const uint32_t b[2], bool bf16) {
  const fa_simt_block *block = fa_simt_current;
  fa_simt_warp *w = warp_of(block);
  fa_mma_tile *t = &w->tile;
  const int i = block->running->lane / 4, j = 2 * (block->running->lane % 4);
  for (int r = 0; r < 4; ++r) {
    t->a[j + r / 2 * 8][i + r % 2 * 8] = (uint16_t)a[r];
    t->a[j + r / 2 * 8 + 1][i + r % 2 * 8] = (uint16_t)(a[r] >> 16);
  }
  for (int r = 0; r < 2; ++r) {
    t->b[j + 8 * r][i] = (uint16_t)b[r];
    t->b[j + 8 * r + 1][i] = (uint16_t)(b[r] >> 16);
  }
  store_accumulator(t, i, j, d);
  w->choice = bf16;
}

void fa_simt_mma_m16n8k16(float d[4], const uint32_t a[4], const uint32_t b[2], bool bf16, fa_simt_place at) {
  store_operands(d, a, b, bf16);
  join(FA_COLLECTIVE_MMA, mma_execute, at);
  load_accumulator(d);
}

static void tf32_execute(fa_simt_warp *w) {
  fa_simt_current->work.products += 16 * 8 * 8;
  fa_mma_tile_run_tf32(&w->tile);
}

APART static void store_operands_tf32(const float d[4], const uint32_t a[4], const uint32_t b[2]) {
  const fa_simt_block *block = fa_simt_current;
  fa_mma_tile *t = &warp_of(block)->tile;
  const int lane = block->running->lane, i = lane / 4, j = lane % 4;
  for (int r = 0; r < 4; ++r) t->a_tf32[j + r / 2 * 4][i + r % 2 * 8] = a[r];
  for (int r = 0; r < 2; ++r) t->b_tf32[j + r * 4][i] = b[r];
  store_accumulator(t, i, 2 * j, d);
}

void fa_simt_mma_tf32(float d[4], const uint32_t a[4], const uint32_t b[2], fa_simt_place at) {
  store_operands_tf32(d, a, b);
  join(FA_COLLECTIVE_MMA_TF32, tf32_execute, at);
  load_accumulator(d);
}

float fa_simt_exp2(float x) {
  if (fabsf(x) < 0x1p-126f) x = 0.0f;
  const float y = exp2f(x);
  return y < 0x1p-126f ? 0.0f : y;
}
