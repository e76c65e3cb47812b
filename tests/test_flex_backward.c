/* The portable flex backward kernels on the host executor, against plain loops in double: score_mod, mask_mod
 * and block lists from functions of this file, softcap, ALiBi, bias, dLSE, groups of heads, and gradients of
 * buffers in both ways of adding. */
#include "cases/rng.h"
#include "gpu/kernels/flex_exact_params.h"
#include "gpu/kernels/flex_functions.h"
#include "gpu/kernels/flex_host.h"
#include "gpu/kernels/wide_backward_params.h"
#include "gpu/simt/simt.h"
#include "tests/check.h"

#include <math.h>
#include <string.h>

enum {
  B = 2,
  HQ = 2,
  HK = 1,
  SQ = 134,
  SK = 131,
  D = 68,
  DV = 36,
  TABLE = 41,
  Q_BLOCK = 48,
  KV_BLOCK = 80,
  N_Q = (SQ + Q_BLOCK - 1) / Q_BLOCK,
  N_KV = (SK + KV_BLOCK - 1) / KV_BLOCK,
  BLOCK_M = 128,
  BLOCK_N = 64,
  SHORT_BLOCK_N = 16,
  TILES_M = 2,
  TILES_N = (SQ + SHORT_BLOCK_N - 1) / SHORT_BLOCK_N,
  PAIRS = B * HQ * SQ * SK
};

/* ---- the problem ---- */

typedef struct problem {
  const char *name;
  double softcap;
  bool alibi, bias, dlse, lists, mask, score, causal;
  int dbias_sums;
  bool exact, is_short; /* the kernels for short problems */
  fa_dtype dtype;
} problem;

/* All that kernels may touch. */
static struct memory {
  _Alignas(16) float q[B * SQ * HQ * D], k[B * SK * HK * D], v[B * SK * HK * DV];
  float o[B * SQ * HQ * DV], d_o[B * SQ * HQ * DV], dq[B * SQ * HQ * D], dk[B * SK * HK * D],
      dv[B * SK * HK * DV];
  float bias[PAIRS], dbias[PAIRS];
  float lse[B * HQ * SQ], dlse[B * HQ * SQ], delta[B * HQ * SQ], alibi[B * HQ];
  float scales[HQ], table[TABLE];
  float d_scales[HQ], d_table[TABLE];
  uint64_t e_scales[HQ * FA_FLEX_EXACT_WORDS], e_table[TABLE * FA_FLEX_EXACT_WORDS];
  uint8_t map[B * HQ * N_Q * N_KV];
  int32_t keys_count[B * HQ * TILES_M], keys_entry[B * HQ * TILES_M * TILES_N];
  int32_t rows_count[B * HQ * TILES_M], rows_entry[B * HQ * TILES_M * TILES_N];
} m;

static double want_dq[B * SQ * HQ * D], want_dk[B * SK * HK * D], want_dv[B * SK * HK * DV],
    want_dbias[PAIRS], want_scales[HQ], want_table[TABLE];

static const double scale = 0.2;

static bool mask_of(const fa_flex_pair *at) {
  return (at->i + 2 * at->j + at->h + at->b) % 3 != 0 && at->i % 50 != 7;
}
static int table_at(const fa_flex_pair *at) {
  const int d = at->i - at->j + 20;
  return d < 0 ? 0 : d < TABLE ? d : TABLE - 1;
}
/* Pairs whose weight is 0, and whose slope is infinite. */
static bool is_steep(const problem *x, const fa_flex_pair *at) {
  return !x->causal && at->i % 7 == 3 && at->j % 5 == 1; /* and the row sees others */
}

static void store(const problem *x, float *base, int64_t i, float f) {
  if (x->dtype == FA_F32)
    base[i] = f;
  else
    ((uint16_t *)base)[i] = fa_f32_to_f16(f);
}
static double load(const problem *x, const float *base, int64_t i) {
  return x->dtype == FA_F32 ? base[i] : fa_f16_to_f32(((const uint16_t *)base)[i]);
}

static int64_t q_at(int b, int i, int h) {
  return ((int64_t)(b * SQ + i) * HQ + h) * D;
}
static int64_t k_at(int b, int j, int h) {
  return ((int64_t)(b * SK + j) * HK + h) * D;
}
static int64_t o_at(int b, int i, int h) {
  return ((int64_t)(b * SQ + i) * HQ + h) * DV;
}
static int64_t v_at(int b, int j, int h) {
  return ((int64_t)(b * SK + j) * HK + h) * DV;
}
static int64_t row_at(int b, int h, int i) {
  return (int64_t)(b * HQ + h) * SQ + i;
}

static void fill(const problem *x, float *to, int64_t n, uint64_t stream, double size) {
  for (int64_t i = 0; i < n; ++i) store(x, to, i, (float)(size * fa_rng_normal(9, stream, (uint64_t)i)));
}

/* ---- what is expected ---- */

static int kind_of(int b, int h, int i, int j) {
  return m.map[((b * HQ + h) * N_Q + i / Q_BLOCK) * N_KV + j / KV_BLOCK];
}

/* Kernels may ask for scores of pairs past the ends. */
static bool is_visible(const problem *x, const fa_flex_pair *at) {
  if (at->i >= SQ || at->j >= SK) return false;
  if (x->causal && at->j > at->i + SK - SQ) return false;
  const int kind = x->lists ? kind_of(at->b, at->h, at->i, at->j) : FA_FLEX_PARTIAL;
  if (kind == FA_FLEX_UNLISTED) return false;
  return kind == FA_FLEX_FULL || !x->mask || mask_of(at);
}

/* A hidden pair's score and slopes may be anything. */
static float score_of(void *self, float s, const fa_flex_pair *at) {
  const problem *x = self;
  if (!is_visible(x, at)) return at->j % 2 ? NAN : INFINITY;
  if (is_steep(x, at)) return s - 500;
  return s * (1 + 0.25f * m.scales[at->h]) + 0.5f * m.table[table_at(at)] + tanhf(s);
}
static float slope_of(void *self, float s, const fa_flex_pair *at, fa_flex_read *read) {
  const problem *x = self;
  const bool bad = !is_visible(x, at) || is_steep(x, at);
  read[0] = (fa_flex_read){0, at->h, bad ? NAN : 0.25f * s};
  read[1] = (fa_flex_read){2, table_at(at), bad ? INFINITY : 0.5f};
  return bad ? INFINITY : 1 + 0.25f * m.scales[at->h] + 1 - tanhf(s) * tanhf(s);
}
static int mask_function(void *self, const fa_flex_pair *at) {
  (void)self;
  return mask_of(at);
}

typedef struct pair_values {
  double logit, slope, scaled; /* slope: of the logit to the scaled product */
} pair_values;

/* score_mod as the functions above have it, where it has a value. */
static pair_values pair_of(const problem *x, const fa_flex_pair *at) {
  const int hk = at->h / (HQ / HK);
  double s = 0, slope = 1;
  for (int d = 0; d < D; ++d)
    s += load(x, m.q, q_at(at->b, at->i, at->h) + d) * load(x, m.k, k_at(at->b, at->j, hk) + d);
  s *= scale;
  if (x->softcap > 0) {
    const double th = tanh(s / x->softcap);
    s = x->softcap * th;
    slope = 1 - th * th;
  }
  double t = s;
  if (x->score && is_steep(x, at)) {
    t = s - 500;
  } else if (x->score) {
    const double factor = 1 + 0.25 * m.scales[at->h];
    t = s * factor + 0.5 * m.table[table_at(at)] + tanh(s);
    slope *= factor + 1 - tanh(s) * tanh(s);
  }
  if (x->alibi) t -= m.alibi[at->b * HQ + at->h] * fabs((double)at->i + SK - SQ - at->j);
  if (x->bias) t += load(x, m.bias, ((int64_t)(at->b * HQ + at->h) * SQ + at->i) * SK + at->j);
  return (pair_values){t, slope, s};
}

static void add_pair(const problem *x, const fa_flex_pair *at, pair_values v, double delta) {
  const int b = at->b, h = at->h, i = at->i, j = at->j, hk = h / (HQ / HK);
  const double p = x->score && is_steep(x, at) ? 0 : exp(v.logit - m.lse[row_at(b, h, i)]);
  double dp = 0;
  for (int d = 0; d < DV; ++d) {
    dp += load(x, m.d_o, o_at(b, i, h) + d) * load(x, m.v, v_at(b, j, hk) + d);
    want_dv[v_at(b, j, hk) + d] += p * load(x, m.d_o, o_at(b, i, h) + d);
  }
  const double g = p * (dp - delta), ds = scale * g * v.slope;
  want_dbias[((x->dbias_sums & FA_WIDE_SUM_BATCH ? 0 : b) * (int64_t)HQ + h) * SQ * SK + (int64_t)i * SK +
             j] += g;
  if (x->score) {
    want_scales[h] += g * 0.25 * v.scaled;
    want_table[table_at(at)] += g * 0.5;
  }
  for (int d = 0; d < D; ++d) {
    want_dq[q_at(b, i, h) + d] += ds * load(x, m.k, k_at(b, j, hk) + d);
    want_dk[k_at(b, j, hk) + d] += ds * load(x, m.q, q_at(b, i, h) + d);
  }
}

/* O, LSE and the gradients of one row. */
static void row_gradients(const problem *x, int b, int h, int i) {
  static pair_values v[SK];
  double sum = 0, max = -INFINITY, o[DV] = {0}, delta = x->dlse ? -m.dlse[row_at(b, h, i)] : 0;
  bool visible[SK];
  fa_flex_pair at = {b, h, i, 0, SQ, SK};
  for (int j = 0; j < SK; ++j) {
    at.j = j;
    visible[j] = is_visible(x, &at);
    v[j] = pair_of(x, &at);
    if (visible[j]) max = fmax(max, v[j].logit);
  }
  for (int j = 0; j < SK; ++j)
    if (visible[j]) sum += exp(v[j].logit - max);
  m.lse[row_at(b, h, i)] = sum == 0 ? -INFINITY : (float)(max + log(sum));
  for (int j = 0; j < SK; ++j)
    for (int d = 0; d < DV && visible[j]; ++d)
      o[d] += exp(v[j].logit - max) / sum * load(x, m.v, v_at(b, j, h / (HQ / HK)) + d);
  for (int d = 0; d < DV; ++d) {
    store(x, m.o, o_at(b, i, h) + d, (float)o[d]);
    delta += load(x, m.o, o_at(b, i, h) + d) * load(x, m.d_o, o_at(b, i, h) + d);
  }
  for (int j = 0; j < SK; ++j) {
    at.j = j;
    if (visible[j]) add_pair(x, &at, v[j], delta);
  }
}

static void expect(const problem *x) {
  memset(want_dq, 0, sizeof want_dq);
  memset(want_dk, 0, sizeof want_dk);
  memset(want_dv, 0, sizeof want_dv);
  memset(want_dbias, 0, sizeof want_dbias);
  memset(want_scales, 0, sizeof want_scales);
  memset(want_table, 0, sizeof want_table);
  for (int b = 0; b < B; ++b)
    for (int h = 0; h < HQ; ++h)
      for (int i = 0; i < SQ; ++i) row_gradients(x, b, h, i);
}

/* ---- the kernels ---- */

static void make_map(void) {
  for (int i = 0; i < B * HQ * N_Q * N_KV; ++i)
    m.map[i] = (uint8_t)(fa_rng_u64(9, 77, (uint64_t)i) % 3); /* unlisted, partial, full */
}

static int tile_kind(int b, int h, int row0, int rows, int key0, int keys) {
  int n[4] = {0};
  for (int i = row0; i < row0 + rows && i < SQ; ++i)
    for (int j = key0; j < key0 + keys && j < SK; ++j) ++n[kind_of(b, h, i, j)];
  if (!n[FA_FLEX_PARTIAL] && !n[FA_FLEX_FULL]) return FA_FLEX_UNLISTED;
  if (n[FA_FLEX_UNLISTED]) return FA_FLEX_MIXED;
  return !n[FA_FLEX_FULL] ? FA_FLEX_PARTIAL : n[FA_FLEX_PARTIAL] ? FA_FLEX_MIXED : FA_FLEX_FULL;
}

/* Along rows: of BLOCK_M rows each the tiles of n keys; along keys: the other way round. */
static fa_flex_lists make_lists(int32_t *count, int32_t *entry, bool along_rows, int n) {
  for (int at = 0; at < B * HQ * TILES_M; ++at) {
    const int b = at / (HQ * TILES_M), h = at / TILES_M % HQ, tile = at % TILES_M;
    count[at] = 0;
    for (int other = 0; other * n < (along_rows ? SK : SQ); ++other) {
      const int kind = along_rows ? tile_kind(b, h, tile * BLOCK_M, BLOCK_M, other * n, n)
                                  : tile_kind(b, h, other * n, n, tile * BLOCK_M, BLOCK_M);
      if (kind) entry[at * TILES_N + count[at]++] = other * 4 + kind;
    }
  }
  return (fa_flex_lists){count, entry, TILES_M, TILES_N, HQ * TILES_M, TILES_M};
}

static void fill_forward(const problem *x, const fa_flex_functions *functions, fa_flash_params *f) {
  f->q = (const uint16_t *)m.q;
  f->k = (const uint16_t *)m.k;
  f->v = (const uint16_t *)m.v;
  f->o = (uint16_t *)m.o;
  f->lse = m.lse;
  f->q_stride = (fa_flash_strides){SQ * HQ * D, HQ * D, D};
  f->k_stride = (fa_flash_strides){SK * HK * D, HK * D, D};
  f->v_stride = (fa_flash_strides){SK * HK * DV, HK * DV, DV};
  f->o_stride = (fa_flash_strides){SQ * HQ * DV, HQ * DV, DV};
  f->lse_stride = (fa_flash_strides){HQ * SQ, 1, SQ};
  f->seqlen_q = SQ;
  f->seqlen_k = SK;
  f->heads_per_kv = HQ / HK;
  f->heads_q = HQ;
  f->window_left = -1;
  f->window_right = x->causal ? 0 : -1;
  f->scale = (float)scale;
  f->score_sign = 1;
  f->empty_lse = -INFINITY;
  f->softcap = (float)x->softcap;
  f->alibi_slopes = x->alibi ? m.alibi : NULL;
  f->alibi_batch_stride = HQ;
  f->head_dim = D;
  f->head_dim_v = DV;
  f->aligned = x->dtype == FA_F32;
  f->dropout_scale = 1;
  f->bias = x->bias ? m.bias : NULL;
  f->bias_stride = (fa_flash_strides){HQ * SQ * SK, SK, SQ * SK};
  f->flex.functions = functions;
  f->flex.buffer[0] = m.scales;
  f->flex.buffer[2] = m.table;
  f->flex.dbuffer[0] = m.d_scales;
  f->flex.dbuffer[2] = m.d_table;
  if (x->exact) {
    f->flex.exact[0] = m.e_scales;
    f->flex.exact[2] = m.e_table;
  }
  if (!x->lists) return;
  const int n = x->is_short ? SHORT_BLOCK_N : BLOCK_N;
  f->flex.map = m.map;
  f->flex.q_block = Q_BLOCK;
  f->flex.kv_block = KV_BLOCK;
  f->flex.n_q_blocks = N_Q;
  f->flex.n_kv_blocks = N_KV;
  f->flex.map_batch_stride = HQ * N_Q * N_KV;
  f->flex.map_head_stride = N_Q * N_KV;
  f->flex.keys = make_lists(m.keys_count, m.keys_entry, true, n);
  f->flex.rows = make_lists(m.rows_count, m.rows_entry, false, n);
}

static void launch(const fa_wide_kernel *k, const void *params, unsigned gx, unsigned gy, unsigned gz,
                   uint64_t seed) {
  const fa_simt_range range = {"memory", (const char *)&m, sizeof m, true, NULL};
  const fa_simt_launch l = {.kernel = k->entry.entry,
                            .params = params,
                            .name = k->entry.name,
                            .grid = {gx, gy, gz},
                            .block = {(unsigned)k->n_threads, 1, 1},
                            .shared_bytes = k->shared_bytes,
                            .ranges = &range,
                            .n_ranges = 1,
                            .schedule_seed = seed,
                            .n_threads = 1};
  fa_simt_report report;
  fa_error err = {""};
  CHECK_MSG(fa_simt_run(&l, &report, &err) == FA_OK && report.state == FA_SUBJECT_OK, "%s: %s%s",
            k->entry.name, err.text, report.text);
}

static unsigned blocks(int n, int of) {
  return (unsigned)((n + of - 1) / of);
}

static void run(const problem *x, uint64_t seed) {
  const fa_flex_functions functions = {(void *)x, x->score ? score_of : NULL, x->mask ? mask_function : NULL,
                                       x->score ? slope_of : NULL, x->score ? 2 : 0};
  const fa_flex_backward_kernels *k =
      x->is_short ? fa_flex_backward_find_short(x->dtype) : fa_flex_backward_find(x->dtype);
  fa_wide_backward_params p = {
      .d_o = m.d_o,
      .d_lse = x->dlse ? m.dlse : NULL,
      .delta = m.delta,
      .makes_delta = 1,
      .dq = m.dq,
      .dk = m.dk,
      .dv = m.dv,
      .scale = (float)scale,
      .dbias = x->bias ? m.dbias : NULL,
      .batch = B,
      .dbias_sums = x->dbias_sums,
      .dbias_stride = {x->dbias_sums & FA_WIDE_SUM_BATCH ? 0 : HQ * SQ * SK, SK, SQ * SK}};
  fill_forward(x, &functions, &p.forward);
  p.dq_stride = p.forward.q_stride;
  p.dk_stride = p.forward.k_stride;
  p.dv_stride = p.forward.v_stride;
  p.do_stride = p.forward.o_stride;
  p.delta_stride = p.dlse_stride = p.forward.lse_stride;
  const fa_flex_exact_params e = {.dbuffer = {m.d_scales, NULL, m.d_table},
                                  .exact = {x->exact ? m.e_scales : NULL, NULL, x->exact ? m.e_table : NULL},
                                  .n = {HQ, 0, TABLE}};
  REQUIRE(k && k->block_m == BLOCK_M && k->block_n == (x->is_short ? SHORT_BLOCK_N : BLOCK_N));
  launch(&k->clear, &e, 1, FA_FLEX_BUFFERS, 1, seed);
  launch(&k->prepare, &p, blocks(SQ, k->prepare.block_m), HQ, B, seed);
  launch(&k->keys, &p, blocks(SK, k->keys.block_m) * blocks(D > DV ? D : DV, k->keys.block_cols), HK, B,
         seed);
  launch(&k->queries, &p, blocks(SQ, k->queries.block_m) * blocks(D, k->queries.block_cols), HQ, B, seed);
  if (p.dbias && p.dbias_sums)
    launch(&k->dbias, &p, blocks(SQ, k->dbias.block_m) * blocks(SK, k->dbias.block_cols), HQ, 1, seed);
  if (x->exact) launch(&k->round, &e, 1, FA_FLEX_BUFFERS, 1, seed);
}

static void compare(const problem *x, const char *what, const float *got, const double *want, int64_t n,
                    bool is_f32) {
  double size = 0, worst = 0;
  int bad = 0;
  for (int64_t i = 0; i < n; ++i) size = fmax(size, fabs(want[i]));
  const double bound = size * (is_f32 || x->dtype == FA_F32 ? 2e-5 : 2e-3);
  for (int64_t i = 0; i < n; ++i) {
    const double value = is_f32 ? got[i] : load(x, got, i), error = fabs(value - want[i]);
    bad += !(error <= bound) || (want[i] == 0 && value != 0 && !x->causal);
    worst = fmax(worst, error);
  }
  CHECK_MSG(bad == 0 && size > 0, "%s: %s: %d elements, worst error %g of %g", x->name, what, bad, worst,
            size);
}

static void test_problem(const problem *x) {
  static const problem f32 = {.dtype = FA_F32};
  fill(x, m.q, B * SQ * HQ * D, 1, 1);
  fill(x, m.k, B * SK * HK * D, 2, 1);
  fill(x, m.v, B * SK * HK * DV, 3, 1);
  fill(x, m.d_o, B * SQ * HQ * DV, 4, 1);
  fill(x, m.bias, PAIRS, 5, 1);
  fill(&f32, m.dlse, B * HQ * SQ, 6, 1);
  fill(&f32, m.scales, HQ, 7, 1);
  fill(&f32, m.table, TABLE, 8, 1);
  for (int i = 0; i < B * HQ; ++i) m.alibi[i] = 0.01f * (float)(i + 1);
  make_map();
  expect(x);
  float *const outputs[] = {m.dq, m.dk, m.dv, m.dbias, m.delta, m.d_scales, m.d_table};
  const size_t bytes[] = {sizeof m.dq,    sizeof m.dk,       sizeof m.dv,     sizeof m.dbias,
                          sizeof m.delta, sizeof m.d_scales, sizeof m.d_table};
  for (int i = 0; i < 7; ++i) memset(outputs[i], 0xff, bytes[i]);
  memset(m.e_scales, 0xff, sizeof m.e_scales);
  memset(m.e_table, 0xff, sizeof m.e_table);
  run(x, 0);
  compare(x, "dq", m.dq, want_dq, B * SQ * HQ * D, false);
  compare(x, "dk", m.dk, want_dk, B * SK * HK * D, false);
  compare(x, "dv", m.dv, want_dv, B * SK * HK * DV, false);
  if (x->bias) compare(x, "dbias", m.dbias, want_dbias, x->dbias_sums ? PAIRS / B : PAIRS, false);
  if (x->score) compare(x, "scales", m.d_scales, want_scales, HQ, true);
  if (x->score) compare(x, "table", m.d_table, want_table, TABLE, true);
  if (!x->exact) return;
  float table[TABLE], scales[HQ];
  memcpy(table, m.d_table, sizeof table);
  memcpy(scales, m.d_scales, sizeof scales);
  run(x, 12345);
  CHECK(memcmp(table, m.d_table, sizeof table) == 0 && memcmp(scales, m.d_scales, sizeof scales) == 0);
}

int main(void) {
  static const problem problems[] = {
      {.name = "nothing", .is_short = true, .dtype = FA_F32},
      {.name = "mask", .mask = true, .causal = true, .dlse = true, .dtype = FA_F32},
      {.name = "score", .is_short = true, .score = true, .mask = true, .dtype = FA_F32},
      {.name = "all",
       .softcap = 3,
       .alibi = true,
       .bias = true,
       .dlse = true,
       .lists = true,
       .mask = true,
       .score = true,
       .exact = true,
       .dtype = FA_F32},
      {.name = "sums",
       .is_short = true,
       .bias = true,
       .dbias_sums = FA_WIDE_SUM_BATCH,
       .lists = true,
       .mask = true,
       .score = true,
       .causal = true,
       .dtype = FA_F32},
      {.name = "f16",
       .bias = true,
       .lists = true,
       .mask = true,
       .score = true,
       .softcap = 5,
       .dtype = FA_F16}};
  for (size_t i = 0; i < sizeof problems / sizeof *problems; ++i) test_problem(&problems[i]);
  return check_done();
}
