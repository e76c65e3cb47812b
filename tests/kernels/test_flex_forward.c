/* The portable flex forward kernels on the host executor, with score_mod and mask_mod of the test and block
 * lists made here, against a float64 attention written here. */
#include "gpu/kernels/params/attention.h"
#include "gpu/kernels/params/traits.h"
#include "gpu/kernels/registry/select.h"
#include "gpu/simt/launch.h"
#include "tests/kernels/flex_forward_problem.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

static const call none = {.dtype = FA_F32,
                          .heads = 2,
                          .heads_kv = 1,
                          .rows = 150,
                          .keys = 200,
                          .d = 24,
                          .dv = 24,
                          .window_left = -1,
                          .window_right = -1};

static uint32_t random_bits(void) {
  static uint32_t x = 2463534242u;
  x ^= x << 13;
  x ^= x >> 17;
  return x ^= x << 5;
}

static void fill(float *x, uint16_t *narrow, int64_t n, float size, fa_dtype dtype) {
  for (int64_t i = 0; i < n; ++i) {
    x[i] = size * ((float)(random_bits() % 2001) / 1000.0f - 1.0f);
    if (!narrow || dtype == FA_F32) continue;
    narrow[i] = dtype == FA_F16 ? fa_f32_to_f16(x[i]) : fa_f32_to_bf16(x[i]);
    x[i] = dtype == FA_F16 ? fa_f16_to_f32(narrow[i]) : fa_bf16_to_f32(narrow[i]);
  }
}

/* ---- block lists ---- */

static void make_map(const call *c) {
  const int lists = c->shared_lists ? 1 : BATCH * c->heads;
  for (int i = 0; i < lists * n_blocks(c->rows, c->q_block) * n_blocks(c->keys, c->kv_block); ++i) do
      memory.map[i] = (uint8_t)(random_bits() % 3);
    while (!(c->kinds >> memory.map[i] & 1));
}

/* The kind of a tile: that of its blocks, if they have only one. */
static int tile_kind(int b, int h, int row0, int rows, int key0, int keys) {
  int kind = -1;
  for (int i = row0; i < row0 + rows && i < now->rows; ++i)
    for (int j = key0; j < key0 + keys && j < now->keys; ++j) {
      const int of = flex_block_kind(b, h, i, j);
      if (kind >= 0 && kind != of) return FA_FLEX_MIXED;
      kind = of;
    }
  return kind;
}

static void make_lists(const call *c, const fa_kernel *kernel, fa_flex_args *x) {
  const int n_q = n_blocks(c->rows, c->q_block), n_kv = n_blocks(c->keys, c->kv_block);
  const int n = n_blocks(c->rows, kernel->block_m), capacity = n_blocks(c->keys, kernel->block_n);
  const int heads = c->shared_lists ? 1 : BATCH * c->heads;
  make_map(c);
  REQUIRE(heads * n <= (int)(sizeof memory.counts / sizeof *memory.counts) &&
          heads * n * capacity <= (int)(sizeof memory.entries / sizeof *memory.entries));
  memset(memory.entries, 0x7f, sizeof memory.entries); /* past the count: never used */
  for (int at = 0; at < heads * n; ++at) {
    const int list = at / n;
    memory.counts[at] = 0;
    for (int tile = 0; tile < capacity; ++tile) {
      const int kind = tile_kind(list / c->heads, list % c->heads, at % n * kernel->block_m, kernel->block_m,
                                 tile * kernel->block_n, kernel->block_n);
      if (kind != FA_FLEX_FULLY_MASKED) memory.entries[at * capacity + memory.counts[at]++] = tile * 4 + kind;
    }
  }
  const int64_t per_head = c->shared_lists ? 0 : 1;
  x->map = memory.map;
  x->q_block = c->q_block;
  x->kv_block = c->kv_block;
  x->n_q_blocks = n_q;
  x->n_kv_blocks = n_kv;
  x->map_head_stride = per_head * n_q * n_kv;
  x->map_batch_stride = x->map_head_stride * c->heads;
  x->keys = (fa_flex_lists){.count = memory.counts,
                            .entry = memory.entries,
                            .n = n,
                            .capacity = capacity,
                            .batch_stride = per_head * c->heads * n,
                            .head_stride = per_head * n};
}

/* ---- the kernel ---- */

static fa_kernel_strides strides(int rows, int heads, int d) {
  return (fa_kernel_strides){(int64_t)rows * heads * d, (int64_t)heads * d, d};
}

static fa_attention_params params_of(const call *c, const fa_kernel *kernel,
                                     const fa_flex_functions *functions) {
  const bool narrow = c->dtype != FA_F32;
  fa_attention_params p = {
      .lse = memory.lse, .score_sign = 1.0f, .dropout_scale = 1.0f, .dropout_limit = 255 | 255 << 16, .empty_lse = -INFINITY};
  p.q = narrow ? memory.q16 : (const uint16_t *)memory.q;
  p.k = narrow ? memory.k16 : (const uint16_t *)memory.k;
  p.v = narrow ? memory.v16 : (const uint16_t *)memory.v;
  p.o = narrow ? memory.o16 : (uint16_t *)memory.o;
  p.q_stride = strides(c->rows, c->heads, c->d);
  p.k_stride = strides(c->keys, c->heads_kv, c->d);
  p.v_stride = strides(c->keys, c->heads_kv, c->dv);
  p.o_stride = strides(c->rows, c->heads, c->dv);
  p.lse_stride = (fa_kernel_strides){(int64_t)c->heads * c->rows, 1, c->rows};
  p.seqlen_q = c->rows;
  p.seqlen_k = c->keys;
  p.seqused_k = c->lengths ? used : NULL;
  p.leftpad_k = c->lengths ? pads : NULL;
  p.heads_q = c->heads;
  p.heads_per_kv = c->heads / c->heads_kv;
  p.window_left = c->window_left;
  p.window_right = c->window_right;
  p.top_left = c->top_left;
  p.scale = 1.0f / sqrtf((float)c->d);
  p.softcap = c->softcap;
  p.alibi_slopes = c->alibi ? memory.slopes : NULL;
  p.head_dim = c->d;
  p.head_dim_v = c->dv;
  p.aligned = !narrow && c->d % 4 == 0 && c->dv % 4 == 0;
  p.bias = c->bias ? memory.bias : NULL;
  p.bias_stride =
      (fa_kernel_strides){(int64_t)c->heads * c->rows * c->keys, c->keys, (int64_t)c->rows * c->keys};
  p.flex.functions = functions;
  if (c->q_block) make_lists(c, kernel, &p.flex);
  return p;
}

#define RANGE(x, w)                                                                                          \
  { .name = #x, .begin = (const char *)(x), .bytes = sizeof(x), .writable = (w) }
/* Returns how many products it computed. */
static int64_t launch_all(const fa_attention_params *p, const fa_kernel *kernel, const call *c,
                          uint64_t seed) {
  const fa_simt_range ranges[] = {
      RANGE(memory.q, false),      RANGE(memory.k, false),       RANGE(memory.v, false),
      RANGE(memory.q16, false),    RANGE(memory.k16, false),     RANGE(memory.v16, false),
      RANGE(memory.o, true),       RANGE(memory.o16, true),      RANGE(memory.lse, true),
      RANGE(memory.bias, false),   RANGE(memory.slopes, false),  RANGE(memory.map, false),
      RANGE(memory.counts, false), RANGE(memory.entries, false), RANGE(used, false),
      RANGE(pads, false)};
  const fa_simt_launch launch = {
      .kernel = kernel->entry,
      .params = p,
      .name = kernel->name,
      .grid = {(unsigned)(n_blocks(c->rows, kernel->block_m) * n_blocks(c->dv, kernel->block_cols)),
               (unsigned)c->heads, BATCH},
      .block = {(unsigned)kernel->n_threads, 1, 1},
      .shared_bytes = kernel->shared_bytes,
      .ranges = ranges,
      .n_ranges = sizeof ranges / sizeof *ranges,
      .schedule_seed = seed,
      .n_threads = 1};
  fa_simt_report report;
  fa_error err = {""};
  CHECK_MSG(fa_simt_run(&launch, &report, &err) == FA_OK && report.state == FA_SUBJECT_OK, "%s: %s%s",
            c->name, err.text, report.text);
  return (int64_t)report.work.products;
}

static int64_t products; /* of the last run */

static int run(const fa_kernel *kernel, const call *c, const fa_flex_functions *functions, uint64_t seed) {
  int empty;
  REQUIRE(kernel && kernel->entry);
  const fa_attention_params p = params_of(c, kernel, functions);
  memset(memory.o, 0xff, sizeof memory.o);
  memset(memory.o16, 0xff, sizeof memory.o16);
  memset(memory.lse, 0xff, sizeof memory.lse);
  products = launch_all(&p, kernel, c, seed);
  const int wrong = flex_wrong_elements(c, &empty);
  CHECK_MSG(wrong == 0, "%s: %d elements", c->name, wrong);
  return empty;
}

extern const fa_kernel_table flex_bare_forward;
static int n_bare;

/* The kernel without code for what the call lacks, which computes no more than the one that can do everything, whose run was
 * the last. */
static void run_bare(const call *c, const fa_flex_functions *functions, uint64_t seed) {
  if (c->dtype == FA_F32 || c->d > FA_NARROW || c->dv > FA_NARROW || c->q_block || c->softcap > 0 || c->alibi ||
      c->bias || c->window_left >= 0 || c->window_right >= 0 || c->lengths)
    return;
  const int64_t enough = products;
  for (int i = 0; i < flex_bare_forward.n; ++i) {
    const fa_kernel *k = &flex_bare_forward.v[i];
    if (k->dtype != c->dtype) continue;
    CHECK(k->entry != fa_kernel_find(k->name)->entry);
    run(k, c, functions, seed);
    CHECK_MSG(enough > 0 && products == enough, "%s: %lld products, not %lld", c->name, (long long)products,
              (long long)enough);
    ++n_bare;
  }
}

/* Returns the number of fully masked rows. */
static int test(const call *c, uint64_t seed) {
  const fa_flex_functions functions = {.score = c->mode & (M_SCORE | M_GARBAGE | M_MINUS_INF) ? flex_score_mod
                                                                                              : NULL,
                                       .mask = c->mode & (M_MASK | M_NOBODY) ? flex_mask_mod : NULL};
  now = c;
  atomic_store(&full_asked, 0);
  fill(memory.q, memory.q16, (int64_t)BATCH * c->rows * c->heads * c->d, 1.5f, c->dtype);
  fill(memory.k, memory.k16, (int64_t)BATCH * c->keys * c->heads_kv * c->d, 1.5f, c->dtype);
  fill(memory.v, memory.v16, (int64_t)BATCH * c->keys * c->heads_kv * c->dv, 1.0f, c->dtype);
  fill(memory.bias, NULL, (int64_t)BATCH * c->heads * c->rows * c->keys, 1.0f, c->dtype);
  const int empty = run(fa_flex_forward_find(c->dtype, c->d, c->dv, NULL), c, &functions, seed);
  run(fa_flex_forward_find_short(c->dtype, NULL), c, &functions, seed); /* whose lists are drawn anew */
  run_bare(c, &functions, seed);
  CHECK_MSG(!full_asked, "%s: mask_mod was asked of a full block", c->name);
  return empty;
}

static void test_expressions(void) {
  call c = none;
  c.name = "neither";
  CHECK(test(&c, 0) == 0);
  c.name = "score and mask";
  c.mode = M_SCORE | M_MASK;
  CHECK(test(&c, 1) == 0);
  c.name = "two column blocks, four heads";
  c.heads = 4, c.heads_kv = 2, c.rows = 40, c.keys = 70, c.d = 72, c.dv = 136;
  CHECK(test(&c, 2) == 0);
  c.name = "bf16, odd head dims";
  c.dtype = FA_BF16, c.d = 21, c.dv = 40;
  CHECK(test(&c, 3) == 0);
  c.name = "f16";
  c.dtype = FA_F16, c.dv = 72;
  CHECK(test(&c, 4) == 0);
  c.name = "f16, as wide as narrow ones are";
  c.d = c.dv = FA_NARROW, c.mode = M_SCORE | M_MASK | M_GARBAGE;
  CHECK(test(&c, 6) == 0);
  c = none;
  c.name = "the whole chain";
  c.mode = M_SCORE | M_MASK, c.softcap = 2.0f, c.alibi = true, c.bias = true;
  CHECK(test(&c, 5) == 0);
}

static void test_masks(void) {
  call c = none;
  c.mode = M_SCORE | M_MASK | M_GARBAGE;
  c.name = "garbage where mask_mod hides";
  CHECK(test(&c, 0) == 0);
  c.name = "garbage outside of a window";
  c.window_left = 20, c.window_right = 3;
  CHECK(test(&c, 1) == 0);
  c.name = "top left, and rows that see nothing";
  c.rows = 230, c.keys = 100, c.window_left = 10, c.window_right = 0, c.top_left = 1;
  CHECK(test(&c, 2) > 0);
  c.name = "keys in use, hidden ones on the left";
  c.keys = 140, c.window_left = c.window_right = -1, c.lengths = true;
  CHECK(test(&c, 3) == 0);
  c = none;
  c.name = "-inf of score_mod";
  c.mode = M_SCORE | M_MINUS_INF;
  CHECK(test(&c, 4) == BATCH * c.heads);
  c.name = "nobody sees anything";
  c.mode = M_NOBODY | M_GARBAGE;
  CHECK(test(&c, 5) == BATCH * c.heads * c.rows);
}

static void test_lists(void) {
  call c = none;
  c.mode = M_SCORE | M_MASK | M_GARBAGE;
  c.kinds = 7;
  c.rows = 260, c.keys = 280, c.d = c.dv = 8;
  static const struct {
    const char *name;
    int q_block, kv_block;
  } sizes[] = {{"blocks of tiles' size", 128, 64}, {"smaller blocks", 32, 48}, {"larger blocks", 256, 160}};
  for (int i = 0; i < 3; ++i) {
    c.name = sizes[i].name;
    c.q_block = sizes[i].q_block, c.kv_block = sizes[i].kv_block;
    c.shared_lists = i == 2;
    test(&c, (uint64_t)i);
  }
  c.name = "lists with a causal mask";
  c.shared_lists = false, c.q_block = 48, c.kv_block = 64;
  c.window_right = 0, c.keys = 200;
  CHECK(test(&c, 4) > 0);
  c.name = "full blocks alone, past the keys in use too";
  c.kinds = 1 << FA_FLEX_FULL, c.window_right = -1, c.lengths = true;
  CHECK(test(&c, 5) == 0);
  c.name = "no block is listed";
  c.kinds = 1 << FA_FLEX_FULLY_MASKED;
  CHECK(test(&c, 6) == BATCH * c.heads * c.rows);
}

/* The comparison notices a wrong element, and a call of mask_mod in a full block. */
static void test_comparison(void) {
  call c = none;
  int empty;
  c.name = "comparison";
  c.mode = M_SCORE | M_MINUS_INF;
  c.rows = c.keys = 20;
  CHECK(test(&c, 0) > 0);
  CHECK(flex_wrong_elements(&c, &empty) == 0);
  memory.o[7] += 1e-5f;
  memory.lse[5] = 0; /* of the fully masked row */
  CHECK(flex_wrong_elements(&c, &empty) == 2);
  c.mode = M_MASK;
  c.q_block = c.kv_block = 64;
  memset(memory.map, FA_FLEX_FULL, sizeof memory.map);
  const fa_flex_pair at = {0, 0, 1, 1, 20, 20};
  CHECK(!full_asked);
  flex_mask_mod(NULL, &at);
  CHECK(full_asked);
}

static void test_table(void) {
  const fa_kernel_device small = {.max_shared_bytes = 99 * 1024}, tiny = {.max_shared_bytes = 1024};
  const fa_kernel *k;
  int n = 0;
  for (int i = 0; (k = fa_kernel_at(i)) != NULL; ++i) {
    if (strcmp(k->recipe.source, "flex/forward") != 0) continue;
    ++n;
    CHECK(strncmp(k->name, "flex_forward_", 13) == 0 && fa_kernel_find(k->name) == k);
  }
  CHECK(n == 6);
  CHECK(fa_flex_forward_find_short(FA_BF16, &small)->block_n == 16 &&
        !fa_flex_forward_find_short(FA_BF16, &tiny));
  CHECK(fa_flex_forward_find(FA_F16, 64, 64, &small)->block_cols == 64);
  CHECK(fa_flex_forward_find(FA_F32, 64, 65, &small)->block_cols == 128);
  CHECK(fa_flex_forward_find(FA_BF16, 64, 500, NULL)->block_cols == 128);
  CHECK(!fa_flex_forward_find(FA_BF16, 64, 64, &tiny));
}

int main(void) {
  test_table();
  test_expressions();
  test_masks();
  test_lists();
  test_comparison();
  CHECK(n_bare == 2);
  return check_done();
}
