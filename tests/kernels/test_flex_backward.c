/* The portable flex backward kernels on the host executor, against plain loops in double: score_mod, mask_mod
 * and block lists from functions of the test, softcap, ALiBi, bias, dLSE, groups of heads, and both ways of
 * adding gradients of buffers. */
#include "cases/base/rng.h"
#include "gpu/kernels/params/memeff_backward.h"
#include "gpu/kernels/registry/select.h"
#include "gpu/simt/launch.h"
#include "tests/kernels/flex_backward_problem.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

static void fill(const problem *x, float *to, int64_t n, uint64_t stream, double size) {
  for (int64_t i = 0; i < n; ++i) store(x, to, i, (float)(size * fa_rng_normal(9, stream, (uint64_t)i)));
}

/* ---- the kernels ---- */

static void make_map(void) {
  for (int i = 0; i < B * HQ * N_Q * N_KV; ++i)
    memory.map[i] = (uint8_t)(fa_rng_u64(9, 77, (uint64_t)i) % 3); /* unlisted, partial, full */
}

static int tile_kind(int b, int h, int row0, int rows, int key0, int keys) {
  int n[4] = {0};
  for (int i = row0; i < row0 + rows && i < SQ; ++i)
    for (int j = key0; j < key0 + keys && j < SK; ++j) ++n[flex_kind_of(b, h, i, j)];
  if (!n[FA_FLEX_PARTIAL] && !n[FA_FLEX_FULL]) return FA_FLEX_FULLY_MASKED;
  if (n[FA_FLEX_FULLY_MASKED]) return FA_FLEX_MIXED;
  return !n[FA_FLEX_FULL] ? FA_FLEX_PARTIAL : n[FA_FLEX_PARTIAL] ? FA_FLEX_MIXED : FA_FLEX_FULL;
}

/* Along rows: for each BLOCK_M rows the tiles of n keys; along keys: the other way round. */
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

static void fill_forward(const problem *x, const fa_flex_functions *functions, fa_attention_params *f) {
  f->q = (const uint16_t *)memory.q;
  f->k = (const uint16_t *)memory.k;
  f->v = (const uint16_t *)memory.v;
  f->o = (uint16_t *)memory.o;
  f->lse = memory.lse;
  f->q_stride = (fa_kernel_strides){SQ * HQ * D, HQ * D, D};
  f->k_stride = (fa_kernel_strides){SK * HK * D, HK * D, D};
  f->v_stride = (fa_kernel_strides){SK * HK * DV, HK * DV, DV};
  f->o_stride = (fa_kernel_strides){SQ * HQ * DV, HQ * DV, DV};
  f->lse_stride = (fa_kernel_strides){HQ * SQ, 1, SQ};
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
  f->alibi_slopes = x->alibi ? memory.alibi : NULL;
  f->alibi_batch_stride = HQ;
  f->head_dim = D;
  f->head_dim_v = DV;
  f->aligned = x->dtype == FA_F32;
  f->dropout_scale = 1, f->dropout_limit = 255 | 255 << 16;
  f->bias = x->bias ? memory.bias : NULL;
  f->bias_stride = (fa_kernel_strides){HQ * SQ * SK, SK, SQ * SK};
  f->flex.functions = functions;
  f->flex.buffer[0] = memory.scales;
  f->flex.buffer[2] = memory.table;
  f->flex.dbuffer[0] = memory.d_scales;
  f->flex.dbuffer[2] = memory.d_table;
  if (x->exact) {
    f->flex.exact[0] = memory.e_scales;
    f->flex.exact[2] = memory.e_table;
  }
  if (!x->lists) return;
  const int n = x->is_short ? SHORT_BLOCK_N : BLOCK_N;
  f->flex.map = memory.map;
  f->flex.q_block = Q_BLOCK;
  f->flex.kv_block = KV_BLOCK;
  f->flex.n_q_blocks = N_Q;
  f->flex.n_kv_blocks = N_KV;
  f->flex.map_batch_stride = HQ * N_Q * N_KV;
  f->flex.map_head_stride = N_Q * N_KV;
  f->flex.keys = make_lists(memory.keys_count, memory.keys_entry, true, n);
  f->flex.rows = make_lists(memory.rows_count, memory.rows_entry, false, n);
}

static void launch(const fa_memeff_kernel *k, const void *params, unsigned gx, unsigned gy, unsigned gz,
                   uint64_t seed) {
  const fa_simt_range range = {"memory", (const char *)&memory, sizeof memory, true, NULL};
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

extern const fa_kernel_table flex_bare_backward;
static int n_bare;

/* The same step without code for what the problem lacks, if that is what the problem says. */
static fa_memeff_kernel chosen(const problem *x, const fa_memeff_kernel *k) {
  fa_memeff_kernel chosen = *k;
  for (int i = 0; x->is_bare && i < flex_bare_backward.n; ++i) {
    if (strcmp(flex_bare_backward.v[i].name, k->entry.name) != 0) continue;
    CHECK(chosen.entry.entry != flex_bare_backward.v[i].entry);
    chosen.entry.entry = flex_bare_backward.v[i].entry;
    ++n_bare;
  }
  return chosen;
}

static unsigned blocks(int n, int of) {
  return (unsigned)((n + of - 1) / of);
}

static void run(const problem *x, uint64_t seed) {
  const fa_flex_functions functions = {(void *)x, x->score ? flex_score_of : NULL,
                                       x->mask ? flex_mask_function : NULL,
                                       x->score ? flex_derivative_of : NULL, x->score ? 2 : 0};
  const fa_flex_backward_kernels *k =
      x->is_short ? fa_flex_backward_find_short(x->dtype) : fa_flex_backward_find(x->dtype);
  fa_memeff_backward_params p = {
      .d_o = memory.d_o,
      .d_lse = x->dlse ? memory.dlse : NULL,
      .delta = memory.delta,
      .makes_delta = 1,
      .dq = memory.dq,
      .dk = memory.dk,
      .dv = memory.dv,
      .scale = (float)scale,
      .dbias = x->bias ? memory.dbias : NULL,
      .batch = B,
      .dbias_sums = x->dbias_sums,
      .dbias_stride = {x->dbias_sums & FA_MEMEFF_SUM_BATCH ? 0 : HQ * SQ * SK, SK, SQ * SK}};
  fill_forward(x, &functions, &p.forward);
  p.dq_stride = p.forward.q_stride;
  p.dk_stride = p.forward.k_stride;
  p.dv_stride = p.forward.v_stride;
  p.do_stride = p.forward.o_stride;
  p.delta_stride = p.dlse_stride = p.forward.lse_stride;
  const fa_flex_exact_params e = {
      .dbuffer = {memory.d_scales, NULL, memory.d_table},
      .exact = {x->exact ? memory.e_scales : NULL, NULL, x->exact ? memory.e_table : NULL},
      .out = {memory.d_scales, NULL, memory.d_table},
      .n = {HQ, 0, TABLE}};
  REQUIRE(k && k->block_m == BLOCK_M && k->block_n == (x->is_short ? SHORT_BLOCK_N : BLOCK_N));
  launch(&k->clear, &e, 1, FA_FLEX_CAPTURED, 1, seed);
  launch(&k->prepare, &p, blocks(SQ, k->prepare.block_m), HQ, B, seed);
  const fa_memeff_kernel keys = chosen(x, &k->keys), queries = chosen(x, &k->queries);
  launch(&keys, &p, blocks(SK, k->keys.block_m) * blocks(D > DV ? D : DV, k->keys.block_cols), HK, B,
         seed);
  launch(&queries, &p, blocks(SQ, k->queries.block_m) * blocks(D, k->queries.block_cols), HQ, B, seed);
  if (p.dbias && p.dbias_sums)
    launch(&k->dbias, &p, blocks(SQ, k->dbias.block_m) * blocks(SK, k->dbias.block_cols), HQ, 1, seed);
  if (x->exact) launch(&k->round, &e, 1, FA_FLEX_CAPTURED, 1, seed);
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
  fill(x, memory.q, B * SQ * HQ * D, 1, 1);
  fill(x, memory.k, B * SK * HK * D, 2, 1);
  fill(x, memory.v, B * SK * HK * DV, 3, 1);
  fill(x, memory.d_o, B * SQ * HQ * DV, 4, 1);
  fill(x, memory.bias, PAIRS, 5, 1);
  fill(&f32, memory.dlse, B * HQ * SQ, 6, 1);
  fill(&f32, memory.scales, HQ, 7, 1);
  fill(&f32, memory.table, TABLE, 8, 1);
  for (int i = 0; i < B * HQ; ++i) memory.alibi[i] = 0.01f * (float)(i + 1);
  make_map();
  flex_expect(x);
  float *const outputs[] = {memory.dq,    memory.dk,       memory.dv,     memory.dbias,
                            memory.delta, memory.d_scales, memory.d_table};
  const size_t bytes[] = {sizeof memory.dq,     sizeof memory.dk,    sizeof memory.dv,
                          sizeof memory.dbias,  sizeof memory.delta, sizeof memory.d_scales,
                          sizeof memory.d_table};
  for (int i = 0; i < 7; ++i) memset(outputs[i], 0xff, bytes[i]);
  memset(memory.e_scales, 0xff, sizeof memory.e_scales);
  memset(memory.e_table, 0xff, sizeof memory.e_table);
  run(x, 0);
  compare(x, "dq", memory.dq, wanted.dq, B * SQ * HQ * D, false);
  compare(x, "dk", memory.dk, wanted.dk, B * SK * HK * D, false);
  compare(x, "dv", memory.dv, wanted.dv, B * SK * HK * DV, false);
  if (x->bias) compare(x, "dbias", memory.dbias, wanted.dbias, x->dbias_sums ? PAIRS / B : PAIRS, false);
  if (x->score) compare(x, "scales", memory.d_scales, wanted.scales, HQ, true);
  if (x->score) compare(x, "table", memory.d_table, wanted.table, TABLE, true);
  if (!x->exact) return;
  float table[TABLE], scales[HQ];
  memcpy(table, memory.d_table, sizeof table);
  memcpy(scales, memory.d_scales, sizeof scales);
  run(x, 12345);
  CHECK(memcmp(table, memory.d_table, sizeof table) == 0 &&
        memcmp(scales, memory.d_scales, sizeof scales) == 0);
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
       .dbias_sums = FA_MEMEFF_SUM_BATCH,
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
       .dtype = FA_F16},
      {.name = "f16, bare", .is_short = true, .is_bare = true, .mask = true, .score = true, .dtype = FA_F16}};
  for (size_t i = 0; i < sizeof problems / sizeof *problems; ++i) test_problem(&problems[i]);
  CHECK(n_bare >= 2);
  return check_done();
}
