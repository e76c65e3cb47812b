/* MMAs of a warpgroup: each warp computes its 16 rows at its wait for them. */
#include "gpu/simt/async.h"

#include <string.h>

static fa_warp_mmas *mmas_of(fa_simt_block *b) {
  return &fa_simt_async_get(b)->mmas[b->running->warp];
}

/* An operand in shared memory, decoded from its descriptor. */
typedef struct operand {
  uint32_t start, leading, stride, width; /* bytes; width of the swizzle, 0: none */
} operand;

static operand operand_of(uint64_t d) {
  static const uint32_t width[] = {0, 128, 64, 32};
  return (operand){fa_simt_self->shared_base + ((uint32_t)(d & 0x3fff) << 4),
                   (uint32_t)(d >> 16 & 0x3fff) << 4, (uint32_t)(d >> 32 & 0x3fff) << 4, width[d >> 62]};
}

static uint32_t swizzle(const operand *x, uint32_t address) {
  const uint32_t mask = x->width == 128 ? 7 : x->width == 64 ? 3 : x->width == 32 ? 1 : 0;
  return address ^ (address >> 7 & mask) << 4;
}

/* The 16 bytes of row r (of A, or column r of B) and depth 8 k..8 k + 7, of elements of 8 bits 16 k..16 k + 15, of those of
 * 32 bits 4 k..4 k + 3, where the tile's rows are the operand's rows. */
static uint32_t chunk_of_row(const operand *x, int r, int k) {
  const uint32_t row = (uint32_t)r, depth = (uint32_t)k;
  const uint32_t at = x->width ? row / 8 * x->stride + row % 8 * x->width + depth * 16
                               : row / 8 * x->stride + row % 8 * 16 + depth * x->leading;
  return swizzle(x, x->start + at);
}

/* The 16 bytes of depth k and rows 8 r..8 r + 7, where the tile's rows run along the depth. */
static uint32_t chunk_of_depth(const operand *x, int r, int k) {
  const uint32_t row = (uint32_t)r, depth = (uint32_t)k;
  const uint32_t in_panel = x->width / 16;
  const uint32_t at = x->width ? row / in_panel * x->leading + row % in_panel * 16 + depth / 8 * x->stride +
                                     depth % 8 * x->width
                               : row * x->stride + depth / 8 * x->leading + depth % 8 * 16;
  return swizzle(x, x->start + at);
}

typedef void (*for_chunk)(fa_simt_block *b, uint32_t offset, fa_simt_place at);

static void begin_read(fa_simt_block *b, uint32_t offset, fa_simt_place at) {
  fa_simt_shared_begin_read(b, offset, 16, "wgmma read", at);
}
static void end_read(fa_simt_block *b, uint32_t offset, fa_simt_place at) {
  (void)at;
  fa_simt_shared_end_read(b, offset, 16, FA_WARP);
}

/* Calls `call` for rows [first, first + n) of an operand, n a multiple of 8. */
static void for_operand(fa_simt_block *b, uint64_t descriptor, bool trans, int first, int n, for_chunk call,
                        fa_simt_place at) {
  const operand x = operand_of(descriptor);
  if (trans) {
    for (int k = 0; k < 16; ++k)
      for (int r = first / 8; r < (first + n) / 8; ++r) call(b, chunk_of_depth(&x, r, k), at);
  } else {
    for (int r = first; r < first + n; ++r)
      for (int k = 0; k < 2; ++k) call(b, chunk_of_row(&x, r, k), at);
  }
}

static int first_row(const fa_simt_block *b) {
  return b->running->warp % 4 * 16;
}

static void for_operands(fa_simt_block *b, const fa_pending_mma *x, for_chunk call) {
  if (!x->p.a) for_operand(b, x->p.a_descriptor, x->p.trans_a, first_row(b), 16, call, x->at);
  for_operand(b, x->p.b_descriptor, x->p.trans_b, 0, 8 * x->p.n_tiles, call, x->at);
}

/* ---- accumulators ---- */

static const float *poison(void) {
  static const uint32_t nan = FA_POISON_IN_FLIGHT << 16 | FA_POISON_IN_FLIGHT;
  return (const float *)(const void *)&nan;
}

/* Lane l has of each 8 columns those of mma.sync's d. Copies between registers and the accumulator in either
 * direction. */
static void sum_in(fa_sum *s) {
  for (int l = 0; l < FA_WARP; ++l)
    for (int t = 0; t < s->n_tiles; ++t)
      for (int e = 0; e < 4; ++e) {
        float *d = &s->d[l][4 * t + e];
        s->value[8 * t + l % 4 * 2 + e % 2][l / 4 + e / 2 * 8] = *d;
        memcpy(d, poison(), sizeof *d);
      }
}
static void sum_out(const fa_sum *s, fa_simt_place at) {
  for (int l = 0; l < FA_WARP; ++l)
    for (int t = 0; t < s->n_tiles; ++t)
      for (int e = 0; e < 4; ++e) {
        float *d = &s->d[l][4 * t + e];
        if (memcmp(d, poison(), sizeof *d) != 0)
          fa_simt_violation(FA_SUBJECT_RACE, at,
                            "lane %d wrote accumulator %d of this product before its wait", l, 4 * t + e);
        *d = s->value[8 * t + l % 4 * 2 + e % 2][l / 4 + e / 2 * 8];
      }
}

/* The addresses of its registers, as words. */
static const uint32_t *const *words_of(const fa_sum *s) {
  return (const uint32_t *const *)(const void *)s->d;
}

/* The accumulator of these registers: one in flight, or a new one. */
static int find_sum(fa_warp_mmas *w, fa_simt_place at) {
  int place = -1;
  for (int i = 0; i < FA_MAX_SUMS; ++i) {
    fa_sum *s = &w->sum[i];
    if (s->n_mmas && s->d[0] == w->operands[0].d) return i;
    if (!s->n_mmas) place = i;
  }
  if (place < 0) fa_simt_violation(FA_SUBJECT_CRASH, at, "more than %d accumulators in flight", FA_MAX_SUMS);
  fa_sum *s = &w->sum[place];
  for (int l = 0; l < FA_WARP; ++l) s->d[l] = w->operands[l].d;
  s->n_tiles = w->operands[0].n_tiles;
  fa_simt_registers_in(w, words_of(s), 4 * s->n_tiles, w->operands[0].accumulate, true, at);
  sum_in(s);
  return place;
}

/* ---- MMAs ---- */

static void put_chunk(const fa_simt_block *b, uint32_t offset, uint16_t *to) {
  memcpy(to, b->shared + offset, 16);
}

static void fill_a(const fa_simt_block *b, const fa_pending_mma *x, fa_mma_tile *t) {
  uint16_t chunk[8];
  if (x->p.a) {
    for (int l = 0; l < FA_WARP; ++l)
      for (int r = 0; r < 4; ++r) {
        const int k = l % 4 * 2 + r / 2 * 8, i = l / 4 + r % 2 * 8;
        t->a[k][i] = (uint16_t)x->a_value[l][r];
        t->a[k + 1][i] = (uint16_t)(x->a_value[l][r] >> 16);
      }
    return;
  }
  const operand o = operand_of(x->p.a_descriptor);
  const int row0 = first_row(b);
  if (x->p.trans_a) {
    for (int k = 0; k < 16; ++k)
      for (int r = 0; r < 2; ++r) put_chunk(b, chunk_of_depth(&o, row0 / 8 + r, k), &t->a[k][8 * r]);
    return;
  }
  for (int r = 0; r < 16; ++r)
    for (int k = 0; k < 2; ++k) {
      put_chunk(b, chunk_of_row(&o, row0 + r, k), chunk);
      for (int e = 0; e < 8; ++e) t->a[8 * k + e][r] = chunk[e];
    }
}

static void fill_b(const fa_simt_block *b, const fa_pending_mma *x, int tile, fa_mma_tile *t) {
  uint16_t chunk[8];
  const operand o = operand_of(x->p.b_descriptor);
  if (x->p.trans_b) {
    for (int k = 0; k < 16; ++k) put_chunk(b, chunk_of_depth(&o, tile, k), t->b[k]);
    return;
  }
  for (int r = 0; r < 8; ++r)
    for (int k = 0; k < 2; ++k) {
      put_chunk(b, chunk_of_row(&o, 8 * tile + r, k), chunk);
      for (int e = 0; e < 8; ++e) t->b[8 * k + e][r] = chunk[e];
    }
}

/* Registers hold four neighbours of a row, and 16 bytes of a tile's row as many. */
static void fill_a_eight(const fa_simt_block *b, const fa_pending_mma *x, fa_mma_tile *t) {
  const operand o = operand_of(x->p.a_descriptor);
  uint8_t chunk[16];
  for (int l = 0; x->p.a && l < FA_WARP; ++l)
    for (int r = 0; r < 4; ++r)
      for (int e = 0; e < 4; ++e)
        t->a_eight[l % 4 * 4 + r / 2 * 16 + e][l / 4 + r % 2 * 8] = (uint8_t)(x->a_value[l][r] >> 8 * e);
  for (int r = 0; !x->p.a && r < 16; ++r)
    for (int k = 0; k < 2; ++k) {
      memcpy(chunk, b->shared + chunk_of_row(&o, first_row(b) + r, k), 16);
      for (int e = 0; e < 16; ++e) t->a_eight[16 * k + e][r] = chunk[e];
    }
}
static void fill_b_eight(const fa_simt_block *b, const fa_pending_mma *x, int tile, fa_mma_tile *t) {
  const operand o = operand_of(x->p.b_descriptor);
  uint8_t chunk[16];
  for (int r = 0; r < 8; ++r)
    for (int k = 0; k < 2; ++k) {
      memcpy(chunk, b->shared + chunk_of_row(&o, 8 * tile + r, k), 16);
      for (int e = 0; e < 16; ++e) t->b_eight[16 * k + e][r] = chunk[e];
    }
}

/* Registers are those of mma.sync m16n8k8, and 16 bytes of a tile's row four floats. */
static void fill_a_tf32(const fa_simt_block *b, const fa_pending_mma *x, fa_mma_tile *t) {
  const operand o = operand_of(x->p.a_descriptor);
  uint32_t chunk[4];
  for (int l = 0; x->p.a && l < FA_WARP; ++l)
    for (int r = 0; r < 4; ++r) t->a_tf32[l % 4 + r / 2 * 4][l / 4 + r % 2 * 8] = x->a_value[l][r];
  for (int r = 0; !x->p.a && r < 16; ++r)
    for (int k = 0; k < 2; ++k) {
      memcpy(chunk, b->shared + chunk_of_row(&o, first_row(b) + r, k), sizeof chunk);
      for (int e = 0; e < 4; ++e) t->a_tf32[4 * k + e][r] = chunk[e];
    }
}
static void fill_b_tf32(const fa_simt_block *b, const fa_pending_mma *x, int tile, fa_mma_tile *t) {
  const operand o = operand_of(x->p.b_descriptor);
  uint32_t chunk[4];
  for (int r = 0; r < 8; ++r)
    for (int k = 0; k < 2; ++k) {
      memcpy(chunk, b->shared + chunk_of_row(&o, 8 * tile + r, k), sizeof chunk);
      for (int e = 0; e < 4; ++e) t->b_tf32[4 * k + e][r] = chunk[e];
    }
}

/* What differs between elements. */
typedef struct element_ops {
  int depth;
  void (*fill_a)(const fa_simt_block *b, const fa_pending_mma *x, fa_mma_tile *t);
  void (*fill_b)(const fa_simt_block *b, const fa_pending_mma *x, int tile, fa_mma_tile *t);
  void (*run)(fa_mma_tile *t);
} element_ops;

static void run_f16(fa_mma_tile *t) {
  fa_mma_tile_run(t, false);
}
static void run_bf16(fa_mma_tile *t) {
  fa_mma_tile_run(t, true);
}

static const element_ops ops_of[] = {
    [FA_SIMT_F16] = {16, fill_a, fill_b, run_f16},
    [FA_SIMT_BF16] = {16, fill_a, fill_b, run_bf16},
    [FA_SIMT_E4M3] = {32, fill_a_eight, fill_b_eight, fa_mma_tile_run_e4m3},
    [FA_SIMT_TF32] = {8, fill_a_tf32, fill_b_tf32, fa_mma_tile_run_tf32},
};

static void carry_out(fa_simt_block *b, fa_warp_mmas *w, const fa_pending_mma *x) {
  const element_ops *ops = &ops_of[x->p.element];
  fa_mma_tile *t = &b->warps[b->running->warp].tile;
  fa_sum *s = &w->sum[x->sum];
  ops->fill_a(b, x, t);
  for (int i = 0; i < x->p.n_tiles; ++i) {
    ops->fill_b(b, x, i, t);
    if (x->p.accumulate)
      memcpy(t->c, s->value[8 * i], sizeof t->c);
    else
      memset(t->c, 0, sizeof t->c);
    ops->run(t);
    memcpy(s->value[8 * i], t->d, sizeof t->d);
  }
  for_operands(b, x, end_read);
  for (int l = 0; x->p.a && l < FA_WARP; ++l)
    if (memcmp(x->a[l], x->a_value[l], sizeof x->a_value[l]) != 0)
      fa_simt_violation(FA_SUBJECT_RACE, x->at, "lane %d changed this product's A registers before its wait",
                        l);
  if (--s->n_mmas > 0) return;
  sum_out(s, x->at);
  fa_simt_registers_out(w, words_of(s), 4 * s->n_tiles);
}

static bool agree(const fa_simt_mma *x, const fa_simt_mma *y) {
  return x->n_tiles == y->n_tiles && !x->a == !y->a && x->a_descriptor == y->a_descriptor &&
         x->b_descriptor == y->b_descriptor && x->trans_a == y->trans_a && x->trans_b == y->trans_b &&
         x->accumulate == y->accumulate && x->element == y->element;
}

static void issue(fa_simt_block *b, fa_simt_place at) {
  fa_warp_mmas *w = mmas_of(b);
  for (int l = 1; l < FA_WARP; ++l)
    if (!agree(&w->operands[l], &w->operands[0]))
      fa_simt_violation(FA_SUBJECT_DEADLOCK, at, "lanes 0 and %d give wgmma different operands", l);
  if (w->n == FA_MAX_PENDING_MMAS)
    fa_simt_violation(FA_SUBJECT_CRASH, at, "more than %d products in flight", FA_MAX_PENDING_MMAS);
  fa_pending_mma *x = &w->v[w->n++];
  x->p = w->operands[0];
  x->at = at;
  x->committed = false;
  for (int l = 0; x->p.a && l < FA_WARP; ++l) {
    x->a[l] = w->operands[l].a;
    memcpy(x->a_value[l], x->a[l], sizeof x->a_value[l]);
  }
  if (x->p.a) fa_simt_registers_in(w, x->a, 4, true, false, at);
  x->sum = find_sum(w, at);
  b->work.products += 16 * 8 * ops_of[x->p.element].depth * x->p.n_tiles;
  ++w->sum[x->sum].n_mmas;
  for_operands(b, x, begin_read);
}

void fa_simt_wgmma(const fa_simt_mma *p, fa_simt_place at) {
  fa_simt_block *b = fa_simt_current;
  mmas_of(b)->operands[b->running->lane] = *p;
  if (fa_simt_collective_arrive(FA_COLLECTIVE_WGMMA, at))
    issue(fa_simt_current, at);
  else
    fa_simt_yield(fa_simt_current);
}

void fa_simt_wgmma_fence(fa_simt_place at) {
  if (!fa_simt_collective_arrive(FA_COLLECTIVE_WGMMA_FENCE, at)) {
    fa_simt_yield(fa_simt_current);
    return;
  }
  fa_simt_registers_fence(mmas_of(fa_simt_current));
}

void fa_simt_wgmma_commit(fa_simt_place at) {
  if (!fa_simt_collective_arrive(FA_COLLECTIVE_WGMMA_COMMIT, at)) {
    fa_simt_yield(fa_simt_current);
    return;
  }
  fa_warp_mmas *w = mmas_of(fa_simt_current);
  if (w->n) w->v[w->n - 1].committed = true;
}

void fa_simt_wgmma_wait(int n_pending_groups, fa_simt_place at) {
  if (!fa_simt_collective_arrive(FA_COLLECTIVE_WGMMA_WAIT, at)) {
    fa_simt_yield(fa_simt_current);
    return;
  }
  fa_simt_block *b = fa_simt_current;
  fa_warp_mmas *w = mmas_of(b);
  int n_groups = 0, n = 0;
  ++w->n_waits;
  for (int i = 0; i < w->n; ++i) n_groups += w->v[i].committed;
  for (int done = 0; done + n_pending_groups < n_groups; done += w->v[n - 1].committed) {
    carry_out(b, w, &w->v[n]);
    ++n;
  }
  memmove(w->v, w->v + n, (size_t)(w->n - n) * sizeof *w->v);
  w->n -= n;
  b->warps[b->running->warp].sync_tick = ++b->tick;
}
