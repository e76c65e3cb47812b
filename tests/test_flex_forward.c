/* The portable flex forward kernels on the host executor, with score_mod and mask_mod of this test and block
 * lists made here, against attention written down here in float64. */
#include "cases/dtype.h"
#include "gpu/kernels/flash_params.h"
#include "gpu/kernels/flex_functions.h"
#include "gpu/kernels/flex_host.h"
#include "gpu/simt/simt.h"
#include "tests/check.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum { BATCH = 2, MAX_HEADS = 4, MAX_ROWS = 280, MAX_D = 160, MAX_BLOCKS = 16 };
enum { ELEMENTS = BATCH * MAX_HEADS * MAX_ROWS * MAX_D, MAPS = BATCH * MAX_HEADS * MAX_BLOCKS * MAX_BLOCKS };

/* What score_mod and mask_mod do here. */
enum modes {
  M_SCORE = 1,     /* 1.5 s + 0.1 (h + 1) - 0.01 (i - j) */
  M_MASK = 2,      /* (i + 2 j + h + b) % 3 != 0 */
  M_GARBAGE = 4,   /* of pairs that are hidden: NaN, inf, the largest float */
  M_MINUS_INF = 8, /* score_mod hides keys below the row's number / 2, and all of row 5 */
  M_NOBODY = 16    /* mask_mod is false */
};

typedef struct call {
  const char *name;
  fa_dtype dtype;
  int heads, heads_kv, rows, keys, d, dv;
  int mode;
  int q_block, kv_block; /* 0: no lists */
  int kinds;             /* of blocks: a bit for each fa_flex_kind that may be */
  bool shared_lists;     /* the same for all heads */
  float softcap;
  bool alibi, bias;
  int window_left, window_right, top_left;
  bool lengths; /* seqused_k and leftpad_k */
} call;

static const call none = {.dtype = FA_F32,
                          .heads = 2,
                          .heads_kv = 1,
                          .rows = 150,
                          .keys = 200,
                          .d = 24,
                          .dv = 24,
                          .window_left = -1,
                          .window_right = -1};

static float q[ELEMENTS], k[ELEMENTS], v[ELEMENTS], bias[BATCH * MAX_HEADS * MAX_ROWS * MAX_ROWS];
static uint16_t q16[ELEMENTS], k16[ELEMENTS], v16[ELEMENTS], o16[ELEMENTS];
static float o[ELEMENTS], lse[BATCH * MAX_HEADS * MAX_ROWS], slopes[MAX_HEADS] = {0.01f, 0.2f, 0.05f, 0.4f};
static const int32_t used[BATCH] = {130, 77}, pads[BATCH] = {3, 70};
static uint8_t map[MAPS];
static int32_t counts[BATCH * MAX_HEADS * 8], entries[BATCH * MAX_HEADS * 8 * 8];
static const call *now;
static atomic_int full_asked; /* mask_mod was asked of a pair in a full block */

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

static int n_blocks(int n, int of) {
  return (n + of - 1) / of;
}

static int block_kind(int b, int h, int i, int j) {
  if (!now->q_block) return FA_FLEX_PARTIAL;
  const int n_q = n_blocks(now->rows, now->q_block), n_kv = n_blocks(now->keys, now->kv_block);
  if (i >= n_q * now->q_block || j >= n_kv * now->kv_block) return FA_FLEX_UNLISTED;
  const int list = now->shared_lists ? 0 : b * now->heads + h;
  return map[(list * n_q + i / now->q_block) * n_kv + j / now->kv_block];
}

/* ---- the expressions ---- */

static bool mask_holds(const fa_flex_pair *at) {
  return !(now->mode & M_NOBODY) && (at->i + 2 * at->j + at->h + at->b) % 3 != 0;
}

static bool in_window(const fa_flex_pair *at) {
  const int diagonal = at->i + (now->top_left ? 0 : at->len_k - at->len_q);
  return (now->window_left < 0 || at->j >= diagonal - now->window_left) &&
         (now->window_right < 0 || at->j <= diagonal + now->window_right);
}

static bool pair_is_visible(const fa_flex_pair *at) {
  if (at->i >= at->len_q || at->j >= at->len_k || !in_window(at)) return false;
  const int kind = block_kind(at->b, at->h, at->i, at->j);
  if (kind == FA_FLEX_UNLISTED) return false;
  return kind == FA_FLEX_FULL || !(now->mode & (M_MASK | M_NOBODY)) || mask_holds(at);
}

static float score_mod(void *self, float score, const fa_flex_pair *at) {
  (void)self;
  static const float garbage[] = {NAN, INFINITY, 3.4e38f, -NAN};
  if (now->mode & M_GARBAGE && !pair_is_visible(at)) return garbage[(at->i + at->j) % 4];
  if (now->mode & M_MINUS_INF && (at->j < at->i / 2 || at->i == 5)) return -INFINITY;
  if (!(now->mode & M_SCORE)) return score;
  return 1.5f * score + 0.1f * (float)(at->h + 1) - 0.01f * (float)(at->i - at->j);
}

static int mask_mod(void *self, const fa_flex_pair *at) {
  (void)self;
  if (block_kind(at->b, at->h, at->i, at->j) == FA_FLEX_FULL) atomic_store(&full_asked, 1);
  return mask_holds(at);
}

/* ---- block lists ---- */

static void make_map(const call *c) {
  const int lists = c->shared_lists ? 1 : BATCH * c->heads;
  for (int i = 0; i < lists * n_blocks(c->rows, c->q_block) * n_blocks(c->keys, c->kv_block); ++i) do
      map[i] = (uint8_t)(random_bits() % 3);
    while (!(c->kinds >> map[i] & 1));
}

/* The kind of a tile: of its blocks, if that is one. */
static int tile_kind(int b, int h, int row0, int rows, int key0, int keys) {
  int kind = -1;
  for (int i = row0; i < row0 + rows && i < now->rows; ++i)
    for (int j = key0; j < key0 + keys && j < now->keys; ++j) {
      const int of = block_kind(b, h, i, j);
      if (kind >= 0 && kind != of) return FA_FLEX_MIXED;
      kind = of;
    }
  return kind;
}

static void make_lists(const call *c, const fa_flash_kernel *kernel, fa_flex_args *x) {
  const int n_q = n_blocks(c->rows, c->q_block), n_kv = n_blocks(c->keys, c->kv_block);
  const int n = n_blocks(c->rows, kernel->block_m), capacity = n_blocks(c->keys, kernel->block_n);
  const int heads = c->shared_lists ? 1 : BATCH * c->heads;
  make_map(c);
  REQUIRE(heads * n <= (int)(sizeof counts / sizeof *counts) &&
          heads * n * capacity <= (int)(sizeof entries / sizeof *entries));
  memset(entries, 0x7f, sizeof entries); /* past the count: never used */
  for (int at = 0; at < heads * n; ++at) {
    const int list = at / n;
    counts[at] = 0;
    for (int tile = 0; tile < capacity; ++tile) {
      const int kind = tile_kind(list / c->heads, list % c->heads, at % n * kernel->block_m, kernel->block_m,
                                 tile * kernel->block_n, kernel->block_n);
      if (kind != FA_FLEX_UNLISTED) entries[at * capacity + counts[at]++] = tile * 4 + kind;
    }
  }
  const int64_t per_head = c->shared_lists ? 0 : 1;
  x->map = map;
  x->q_block = c->q_block;
  x->kv_block = c->kv_block;
  x->n_q_blocks = n_q;
  x->n_kv_blocks = n_kv;
  x->map_head_stride = per_head * n_q * n_kv;
  x->map_batch_stride = x->map_head_stride * c->heads;
  x->keys = (fa_flex_lists){.count = counts,
                            .entry = entries,
                            .n = n,
                            .capacity = capacity,
                            .batch_stride = per_head * c->heads * n,
                            .head_stride = per_head * n};
}

/* ---- the kernel ---- */

static fa_flash_strides strides(int rows, int heads, int d) {
  return (fa_flash_strides){(int64_t)rows * heads * d, (int64_t)heads * d, d};
}

static fa_flash_params params_of(const call *c, const fa_flash_kernel *kernel,
                                 const fa_flex_functions *functions) {
  const bool narrow = c->dtype != FA_F32;
  fa_flash_params p = {.lse = lse, .score_sign = 1.0f, .dropout_scale = 1.0f, .empty_lse = -INFINITY};
  p.q = narrow ? q16 : (const uint16_t *)q;
  p.k = narrow ? k16 : (const uint16_t *)k;
  p.v = narrow ? v16 : (const uint16_t *)v;
  p.o = narrow ? o16 : (uint16_t *)o;
  p.q_stride = strides(c->rows, c->heads, c->d);
  p.k_stride = strides(c->keys, c->heads_kv, c->d);
  p.v_stride = strides(c->keys, c->heads_kv, c->dv);
  p.o_stride = strides(c->rows, c->heads, c->dv);
  p.lse_stride = (fa_flash_strides){(int64_t)c->heads * c->rows, 1, c->rows};
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
  p.alibi_slopes = c->alibi ? slopes : NULL;
  p.head_dim = c->d;
  p.head_dim_v = c->dv;
  p.aligned = !narrow && c->d % 4 == 0 && c->dv % 4 == 0;
  p.bias = c->bias ? bias : NULL;
  p.bias_stride =
      (fa_flash_strides){(int64_t)c->heads * c->rows * c->keys, c->keys, (int64_t)c->rows * c->keys};
  p.flex.functions = functions;
  if (c->q_block) make_lists(c, kernel, &p.flex);
  return p;
}

#define RANGE(x, w)                                                                                          \
  { .name = #x, .begin = (const char *)(x), .bytes = sizeof(x), .writable = (w) }
static void launch_all(const fa_flash_params *p, const fa_flash_kernel *kernel, const call *c,
                       uint64_t seed) {
  const fa_simt_range ranges[] = {
      RANGE(q, false),      RANGE(k, false),       RANGE(v, false),      RANGE(q16, false),
      RANGE(k16, false),    RANGE(v16, false),     RANGE(o, true),       RANGE(o16, true),
      RANGE(lse, true),     RANGE(bias, false),    RANGE(slopes, false), RANGE(map, false),
      RANGE(counts, false), RANGE(entries, false), RANGE(used, false),   RANGE(pads, false)};
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
}

/* ---- what it should be ---- */

static int64_t element(int b, int row, int head, int rows, int heads, int d) {
  return (((int64_t)b * rows + row) * heads + head) * d;
}

static double logit_of(const call *c, const fa_flex_pair *at, int pad) {
  const float *qi = q + element(at->b, at->i, at->h, c->rows, c->heads, c->d);
  const float *kj =
      k + element(at->b, at->j + pad, at->h * c->heads_kv / c->heads, c->keys, c->heads_kv, c->d);
  double t = 0;
  for (int e = 0; e < c->d; ++e) t += (double)qi[e] * kj[e];
  t /= sqrt(c->d);
  if (c->softcap > 0) t = c->softcap * tanh(t / c->softcap);
  t = score_mod(NULL, (float)t, at);
  if (c->alibi) t -= (double)slopes[at->h] * abs(at->i + at->len_k - at->len_q - at->j);
  if (c->bias) t += bias[(((int64_t)at->b * c->heads + at->h) * c->rows + at->i) * c->keys + at->j];
  return t;
}

/* One row: O to out[dv]; returns LSE. */
static double want_row(const call *c, int b, int h, int i, double *out) {
  static double logit[MAX_ROWS];
  const int pad = c->lengths ? pads[b] : 0;
  const fa_flex_pair first = {b, h, i, 0, c->rows, (c->lengths ? used[b] : c->keys) - pad};
  double max = -INFINITY, sum = 0;
  for (int j = 0; j < first.len_k; ++j) {
    fa_flex_pair at = first;
    at.j = j;
    logit[j] = pair_is_visible(&at) ? logit_of(c, &at, pad) : -INFINITY;
    max = fmax(max, logit[j]);
  }
  for (int e = 0; e < c->dv; ++e) out[e] = 0;
  if (max == -INFINITY) return -INFINITY;
  for (int j = 0; j < first.len_k; ++j) {
    const double p = exp(logit[j] - max);
    const float *vj = v + element(b, j + pad, h * c->heads_kv / c->heads, c->keys, c->heads_kv, c->dv);
    sum += p;
    for (int e = 0; e < c->dv; ++e) out[e] += p * vj[e];
  }
  for (int e = 0; e < c->dv; ++e) out[e] /= sum;
  return max + log(sum);
}

static double got_o(const call *c, int64_t at) {
  return c->dtype == FA_F32 ? o[at] : c->dtype == FA_F16 ? fa_f16_to_f32(o16[at]) : fa_bf16_to_f32(o16[at]);
}

/* Elements that are wrong; rows that see nothing to *empty. */
static int wrong_elements(const call *c, int *empty) {
  const double loose = c->dtype == FA_F32 ? 2e-6 : c->dtype == FA_F16 ? 1e-3 : 8e-3;
  double want[MAX_D];
  int wrong = 0;
  *empty = 0;
  for (int b = 0; b < BATCH; ++b)
    for (int h = 0; h < c->heads; ++h)
      for (int i = 0; i < c->rows; ++i) {
        const double want_lse = want_row(c, b, h, i, want);
        const double got_lse = lse[(b * c->heads + h) * c->rows + i];
        const bool nothing = want_lse == -INFINITY;
        *empty += nothing;
        wrong += nothing ? !(got_lse == want_lse) : !(fabs(got_lse - want_lse) <= 4e-6);
        for (int e = 0; e < c->dv; ++e) {
          const double got = got_o(c, element(b, i, h, c->rows, c->heads, c->dv) + e);
          wrong += nothing ? !(got == 0) : !(fabs(got - want[e]) <= loose);
        }
      }
  return wrong;
}

static int run(const call *c, const fa_flex_functions *functions, uint64_t seed) {
  const fa_flash_kernel *kernel = fa_flex_forward_find(c->dtype, c->d, c->dv, NULL);
  int empty;
  REQUIRE(kernel && kernel->entry);
  const fa_flash_params p = params_of(c, kernel, functions);
  memset(o, 0xff, sizeof o);
  memset(o16, 0xff, sizeof o16);
  memset(lse, 0xff, sizeof lse);
  launch_all(&p, kernel, c, seed);
  const int wrong = wrong_elements(c, &empty);
  CHECK_MSG(wrong == 0, "%s: %d elements", c->name, wrong);
  return empty;
}

/* Returns the number of rows that see nothing. */
static int test(const call *c, uint64_t seed) {
  const fa_flex_functions functions = {.score =
                                           c->mode & (M_SCORE | M_GARBAGE | M_MINUS_INF) ? score_mod : NULL,
                                       .mask = c->mode & (M_MASK | M_NOBODY) ? mask_mod : NULL};
  now = c;
  atomic_store(&full_asked, 0);
  fill(q, q16, (int64_t)BATCH * c->rows * c->heads * c->d, 1.5f, c->dtype);
  fill(k, k16, (int64_t)BATCH * c->keys * c->heads_kv * c->d, 1.5f, c->dtype);
  fill(v, v16, (int64_t)BATCH * c->keys * c->heads_kv * c->dv, 1.0f, c->dtype);
  fill(bias, NULL, (int64_t)BATCH * c->heads * c->rows * c->keys, 1.0f, c->dtype);
  const int empty = run(c, &functions, seed);
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
  c.kinds = 1 << FA_FLEX_UNLISTED;
  CHECK(test(&c, 6) == BATCH * c.heads * c.rows);
}

/* The comparison sees a wrong element, and a full block that is asked. */
static void test_comparison(void) {
  call c = none;
  int empty;
  c.name = "comparison";
  c.mode = M_SCORE | M_MINUS_INF;
  c.rows = c.keys = 20;
  CHECK(test(&c, 0) > 0);
  CHECK(wrong_elements(&c, &empty) == 0);
  o[7] += 1e-5f;
  lse[5] = 0; /* of the row that sees nothing */
  CHECK(wrong_elements(&c, &empty) == 2);
  c.mode = M_MASK;
  c.q_block = c.kv_block = 64;
  memset(map, FA_FLEX_FULL, sizeof map);
  const fa_flex_pair at = {0, 0, 1, 1, 20, 20};
  CHECK(!full_asked);
  mask_mod(NULL, &at);
  CHECK(full_asked);
}

static void test_table(void) {
  const fa_flash_device small = {.max_shared_bytes = 99 * 1024}, tiny = {.max_shared_bytes = 1024};
  int n = 0;
  for (const char *name; (name = fa_flex_forward_name(n)) != NULL; ++n)
    CHECK(strncmp(name, "flex_forward_", 13) == 0);
  CHECK(n == 6);
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
  return check_done();
}
