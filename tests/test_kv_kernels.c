/* The inference kernels on the host executor, against a float64 loop: whatever the parameters can say, one
 * thing at a time and several. Slots that are no keys hold NaN, table entries past the used ones garbage, and
 * what is scratch must be written before it is read. */
#include "cases/dtype.h"
#include "gpu/kernels/kv_host.h"
#include "gpu/simt/simt.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BATCH = 4 };

typedef struct setting {
  const char *what;
  int bf16, head_dim, batch, heads_kv, group, rows, keys[MAX_BATCH], splits;
  int page_size;                          /* 0: not paged */
  int n_new, pad[MAX_BATCH], left, right; /* left, right: of the window, plus 1; 0: none */
  double scale;                           /* 0: 1 / sqrt(head_dim); NaN: 0 */
  float softcap;
  int alibi, unaligned, moved; /* moved: entries have other rows of the cache than their own */
} setting;

/* One problem, its memory, and what should come of it. */
typedef struct problem {
  setting s;
  fa_kv_params p;
  uint16_t *q, *k, *v, *o;
  float *lse, *slopes, *partial_o, *partial_lse;
  uint8_t *o_written, *lse_written;
  int32_t *seqlens, *rows, *pads, *table;
  int64_t n_q, n_cache, n_partial, n_rows, pages, table_stride;
  double scale;
  int capacity, wrong;
} problem;

static uint64_t state;
static double uniform(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (double)(state >> 11) * 0x1p-52 - 1.0;
}

static uint16_t rounded(const setting *s, double x) {
  return s->bf16 ? fa_f32_to_bf16((float)x) : fa_f32_to_f16((float)x);
}
static double value(const setting *s, uint16_t x) {
  return s->bf16 ? (double)fa_bf16_to_f32(x) : (double)fa_f16_to_f32(x);
}

static void *zeros(int64_t n, size_t size) {
  void *p = calloc((size_t)(n > 0 ? n : 1), size);
  REQUIRE(p);
  return p;
}

static int64_t slot(const problem *x, int batch, int key) {
  const setting *s = &x->s;
  const int64_t page = s->page_size ? x->table[batch * x->table_stride + key / s->page_size] : x->rows[batch];
  return page * x->p.k_stride.batch + (s->page_size ? key % s->page_size : key) * x->p.k_stride.row;
}

static void fill_cache(problem *x) {
  const setting *s = &x->s;
  for (int64_t i = 0; i < x->n_cache; ++i) x->k[i] = x->v[i] = 0x7fff; /* NaN of either type */
  for (int b = 0; b < s->batch; ++b)
    for (int j = s->pad[b]; j < s->keys[b]; ++j)
      for (int64_t i = 0; i < s->heads_kv * s->head_dim; ++i) {
        x->k[slot(x, b, j) + i] = rounded(s, 2 * uniform());
        x->v[slot(x, b, j) + i] = rounded(s, uniform());
      }
}

/* Where each entry's keys are: rows of the cache in reverse, or pages in an order of their own. */
static void place_keys(problem *x) {
  const setting *s = &x->s;
  int next = 0;
  for (int b = 0; b < s->batch; ++b) {
    x->seqlens[b] = s->keys[b] - s->n_new;
    x->pads[b] = s->pad[b];
    x->rows[b] = s->moved ? s->batch - b : b;
    for (int i = 0; i < x->table_stride; ++i) {
      const int used = s->page_size && i * s->page_size < s->keys[b];
      x->table[b * x->table_stride + i] = used ? (int32_t)((next++ * 7 + 3) % x->pages) : 0x7fffffff - i;
    }
  }
}

static void allocate(problem *x) {
  const setting *s = &x->s;
  const int heads = s->heads_kv * s->group;
  for (int b = 0; b < s->batch; ++b)
    if (s->keys[b] > x->capacity) x->capacity = s->keys[b];
  x->capacity += 3;
  x->table_stride = s->page_size ? x->capacity / s->page_size + 2 : 0;
  x->pages = s->batch * x->table_stride;
  while (x->pages % 7 == 0) ++x->pages;
  const int64_t row = s->heads_kv * s->head_dim + (s->unaligned ? 3 : 0);
  x->n_cache = (s->page_size ? x->pages * s->page_size : (s->batch + 1) * x->capacity) * row;
  x->n_rows = (int64_t)s->batch * heads * s->rows;
  x->n_q = x->n_rows * (s->head_dim + (s->unaligned ? 1 : 0));
  x->n_partial = s->splits > 1 ? x->n_rows * s->splits : 0;
  x->q = zeros(x->n_q, 2);
  x->o = zeros(x->n_q, 2);
  x->k = zeros(x->n_cache, 2);
  x->v = zeros(x->n_cache, 2);
  x->lse = zeros(x->n_rows, 4);
  x->slopes = zeros(s->batch * heads, 4);
  x->partial_o = zeros(x->n_partial * s->head_dim, 4);
  x->partial_lse = zeros(x->n_partial, 4);
  x->o_written = zeros(x->n_partial * s->head_dim, 1);
  x->lse_written = zeros(x->n_partial, 1);
  x->seqlens = zeros(s->batch, 4);
  x->rows = zeros(s->batch, 4);
  x->pads = zeros(s->batch, 4);
  x->table = zeros(s->batch * x->table_stride, 4);
}

static void fill_params(problem *x) {
  const setting *s = &x->s;
  const int heads = s->heads_kv * s->group;
  const int64_t width = s->head_dim + (s->unaligned ? 1 : 0),
                row = s->heads_kv * s->head_dim + (s->unaligned ? 3 : 0);
  const fa_flash_strides q = {s->rows * heads * width, heads * width, width};
  const fa_flash_strides k = {(s->page_size ? s->page_size : x->capacity) * row, row, s->head_dim};
  x->scale = isnan(s->scale) ? 0.0 : s->scale != 0.0 ? s->scale : 1.0 / sqrt(s->head_dim);
  const double positive = x->scale == 0.0 ? 1.0 : fabs(x->scale);
  x->p = (fa_kv_params){.q = x->q,
                        .k = x->k,
                        .v = x->v,
                        .o = x->o,
                        .lse = x->lse,
                        .q_stride = q,
                        .k_stride = k,
                        .v_stride = k,
                        .o_stride = q,
                        .lse_stride = {heads * s->rows, 1, s->rows},
                        .batch = s->batch,
                        .seqlen_q = s->rows,
                        .heads_q = heads,
                        .heads_kv = s->heads_kv,
                        .heads_per_kv = s->group,
                        .head_dim = s->head_dim,
                        .n_new = s->n_new,
                        .cache_seqlens = x->seqlens,
                        .cache_batch_idx = s->moved ? x->rows : NULL,
                        .leftpad_k = x->pads,
                        .block_table = s->page_size ? x->table : NULL,
                        .table_stride = x->table_stride,
                        .page_size = s->page_size,
                        .page = s->page_size ? fa_kv_divisor_of(s->page_size) : (fa_kv_divisor){0, 0},
                        .window_left = s->left - 1,
                        .window_right = s->right - 1,
                        .scale = (float)positive,
                        .scale_log2 = (float)(positive * 1.4426950408889634),
                        .score_sign = x->scale < 0      ? -1.0f
                                      : x->scale == 0.0 ? 0.0f
                                                        : 1.0f,
                        .softcap = s->softcap,
                        .alibi_slopes = s->alibi ? x->slopes : NULL,
                        .alibi_batch_stride = heads,
                        .empty_lse = INFINITY,
                        .aligned = !s->unaligned,
                        .n_splits = s->splits,
                        .partial_o = x->partial_o,
                        .partial_lse = x->partial_lse};
}

static void problem_make(const setting *s, problem *x) {
  memset(x, 0, sizeof *x);
  x->s = *s;
  state = 12345;
  allocate(x);
  fill_params(x);
  place_keys(x);
  fill_cache(x);
  for (int64_t i = 0; i < x->n_q; ++i) x->q[i] = rounded(s, uniform());
  for (int i = 0; i < s->batch * s->heads_kv * s->group; ++i) x->slopes[i] = (float)(0.3 + 0.2 * uniform());
  memset(x->o, 0xff, (size_t)x->n_q * 2);
  memset(x->lse, 0xff, (size_t)x->n_rows * 4);
  memset(x->partial_o, 0xff, (size_t)(x->n_partial * s->head_dim) * 4);
}

static void problem_free(problem *x) {
  void *const all[] = {x->q,       x->k,         x->v,           x->o,         x->lse,
                       x->slopes,  x->partial_o, x->partial_lse, x->o_written, x->lse_written,
                       x->seqlens, x->rows,      x->pads,        x->table};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) free(all[i]);
}

/* ---- launches ---- */

static bool launch(problem *x, const fa_kv_kernel *k, int64_t grid_x, int grid_y, int grid_z, uint64_t seed,
                   char text[512]) {
  const setting *s = &x->s;
  const struct {
    const char *name;
    const void *begin;
    int64_t bytes;
    bool writable;
    uint8_t *written;
  } all[] = {{"q", x->q, x->n_q * 2, false, NULL},
             {"k_cache", x->k, x->n_cache * 2, false, NULL},
             {"v_cache", x->v, x->n_cache * 2, false, NULL},
             {"o", x->o, x->n_q * 2, true, NULL},
             {"lse", x->lse, x->n_rows * 4, true, NULL},
             {"slopes", x->slopes, s->batch * s->heads_kv * s->group * 4, false, NULL},
             {"partial_o", x->partial_o, x->n_partial * s->head_dim * 4, true, x->o_written},
             {"partial_lse", x->partial_lse, x->n_partial * 4, true, x->lse_written},
             {"cache_seqlens", x->seqlens, s->batch * 4, false, NULL},
             {"cache_batch_idx", x->rows, s->batch * 4, false, NULL},
             {"leftpad_k", x->pads, s->batch * 4, false, NULL},
             {"block_table", x->table, s->batch * x->table_stride * 4, false, NULL}};
  fa_simt_range ranges[sizeof all / sizeof *all];
  int n = 0;
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
    if (all[i].bytes > 0)
      ranges[n++] = (fa_simt_range){.name = all[i].name,
                                    .begin = (const char *)all[i].begin,
                                    .bytes = (size_t)all[i].bytes,
                                    .writable = all[i].writable,
                                    .written = all[i].written};
  const fa_simt_launch l = {.kernel = k->entry,
                            .params = &x->p,
                            .name = k->name,
                            .grid = {(unsigned)grid_x, (unsigned)grid_y, (unsigned)grid_z},
                            .block = {(unsigned)k->n_threads, 1, 1},
                            .shared_bytes = k->shared_bytes,
                            .ranges = ranges,
                            .n_ranges = n,
                            .schedule_seed = seed,
                            .n_threads = 1};
  fa_simt_report report;
  fa_error err = {""};
  const fa_status status = fa_simt_run(&l, &report, &err);
  snprintf(text, 512, "%s: %s", k->name, status == FA_OK ? report.text : err.text);
  return status == FA_OK && report.state == FA_SUBJECT_OK;
}

/* The kernel that the call should have: shape is "few" or "many". */
static const fa_kv_kernel *kernel_of(const setting *s) {
  const fa_kv_ability wanted = {s->bf16,      s->head_dim, s->rows * s->group,
                                s->unaligned, s->alibi,    s->softcap > 0};
  return fa_kv_forward_find(wanted, NULL);
}

static bool run(problem *x, uint64_t seed, char text[512]) {
  const setting *s = &x->s;
  const fa_kv_kernel *k = kernel_of(s);
  const int tiles = (s->rows * s->group + k->block_m - 1) / k->block_m;
  return launch(x, k, (int64_t)tiles * s->splits, s->heads_kv, s->batch, seed, text) &&
         (s->splits == 1 || launch(x, fa_kv_combine_find(s->bf16), x->n_rows, 1, 1, seed, text));
}

/* ---- what should come of it ---- */

static double logit(const problem *x, int b, int i, int h, int j) {
  const setting *s = &x->s;
  const uint16_t *q = x->q + b * x->p.q_stride.batch + i * x->p.q_stride.row + h * x->p.q_stride.head;
  const uint16_t *k = x->k + slot(x, b, j) + h / s->group * s->head_dim;
  double t = 0;
  for (int d = 0; d < s->head_dim; ++d) t += value(s, q[d]) * value(s, k[d]);
  t *= x->scale;
  if (s->softcap > 0) t = s->softcap * tanh(t / s->softcap);
  if (s->alibi) t -= x->slopes[b * s->heads_kv * s->group + h] * abs(i + s->keys[b] - s->rows - j);
  return t;
}

static bool sees(const setting *s, int b, int i, int j) {
  const int diagonal = i + s->keys[b] - s->rows;
  return j >= s->pad[b] && j < s->keys[b] && (!s->left || j >= diagonal - (s->left - 1)) &&
         (!s->right || j <= diagonal + s->right - 1);
}

/* Counts what lies outside of the error that roundings of P and O can make, in x->wrong. */
static void check_row(problem *x, int b, int i, int h) {
  const setting *s = &x->s;
  const double unit = s->bf16 ? 0x1p-9 : 0x1p-12;
  double *t = zeros(s->keys[b], sizeof *t), max = -INFINITY, sum = 0;
  for (int j = 0; j < s->keys[b]; ++j) {
    t[j] = sees(s, b, i, j) ? logit(x, b, i, h, j) : -INFINITY;
    if (t[j] > max) max = t[j];
  }
  for (int j = 0; j < s->keys[b]; ++j)
    if (max > -INFINITY) sum += exp(t[j] - max);
  const double want = sum > 0 ? max + log(sum) : INFINITY;
  const float got = x->lse[(b * s->heads_kv * s->group + h) * s->rows + i];
  const bool same =
      isinf(want) ? got == INFINITY : fabs(got - want) <= 2e-5 * (1 + fabs(want)); /* not for NaN */
  x->wrong += !same;
  const uint16_t *o = x->o + b * x->p.o_stride.batch + i * x->p.o_stride.row + h * x->p.o_stride.head;
  for (int d = 0; d < s->head_dim; ++d) {
    double mean = 0, size = 0;
    for (int j = 0; j < s->keys[b] && sum > 0; ++j) {
      if (!sees(s, b, i, j)) continue;
      const double v = value(s, x->v[slot(x, b, j) + h / s->group * s->head_dim + d]),
                   p = exp(t[j] - max) / sum;
      mean += p * v;
      size += p * fabs(v);
    }
    const bool close = fabs(value(s, o[d]) - mean) <= 3 * unit * size + 1e-6 * (sum > 0);
    x->wrong += !close;
  }
  free(t);
}

static void check_all(problem *x) {
  const setting *s = &x->s;
  x->wrong = 0;
  for (int b = 0; b < s->batch; ++b)
    for (int i = 0; i < s->rows; ++i)
      for (int h = 0; h < s->heads_kv * s->group; ++h) check_row(x, b, i, h);
}

static const setting settings[] = {
    {.what = "one row",
     .bf16 = 1,
     .head_dim = 128,
     .batch = 1,
     .heads_kv = 2,
     .group = 4,
     .rows = 1,
     .keys = {200},
     .splits = 1},
    {.what = "two splits",
     .head_dim = 64,
     .batch = 2,
     .heads_kv = 1,
     .group = 1,
     .rows = 1,
     .keys = {700, 70},
     .splits = 2},
    {.what = "more splits than blocks",
     .bf16 = 1,
     .head_dim = 64,
     .batch = 3,
     .heads_kv = 1,
     .group = 2,
     .rows = 2,
     .keys = {130, 0, 1},
     .right = 1,
     .splits = 7},
    {.what = "one key, no key",
     .head_dim = 128,
     .batch = 2,
     .heads_kv = 1,
     .group = 3,
     .rows = 1,
     .keys = {1, 0},
     .splits = 1},
    {.what = "two warps",
     .head_dim = 256,
     .batch = 1,
     .heads_kv = 1,
     .group = 5,
     .rows = 3,
     .keys = {150},
     .right = 1,
     .splits = 3},
    {.what = "head_dim 96",
     .bf16 = 1,
     .head_dim = 96,
     .batch = 1,
     .heads_kv = 2,
     .group = 1,
     .rows = 4,
     .keys = {90},
     .splits = 2},
    {.what = "head_dim 8",
     .head_dim = 8,
     .batch = 1,
     .heads_kv = 2,
     .group = 2,
     .rows = 1,
     .keys = {50},
     .splits = 2},
    {.what = "head_dim 200, rows",
     .bf16 = 1,
     .head_dim = 200,
     .batch = 1,
     .heads_kv = 1,
     .group = 2,
     .rows = 40,
     .keys = {110},
     .right = 1,
     .splits = 2},
    {.what = "rows",
     .head_dim = 64,
     .batch = 2,
     .heads_kv = 1,
     .group = 1,
     .rows = 70,
     .keys = {200, 40},
     .right = 1,
     .splits = 1},
    {.what = "rows in splits",
     .bf16 = 1,
     .head_dim = 128,
     .batch = 2,
     .heads_kv = 1,
     .group = 3,
     .rows = 30,
     .keys = {300, 20},
     .right = 1,
     .splits = 3},
    {.what = "window",
     .head_dim = 64,
     .batch = 1,
     .heads_kv = 1,
     .group = 2,
     .rows = 5,
     .keys = {400},
     .left = 100,
     .right = 3,
     .splits = 2},
    {.what = "window of rows",
     .bf16 = 1,
     .head_dim = 64,
     .batch = 1,
     .heads_kv = 1,
     .group = 4,
     .rows = 25,
     .keys = {333},
     .left = 31,
     .right = 6,
     .splits = 4},
    {.what = "leftpad",
     .head_dim = 128,
     .batch = 3,
     .heads_kv = 1,
     .group = 2,
     .rows = 2,
     .keys = {200, 90, 40},
     .pad = {77, 5, 40},
     .right = 1,
     .splits = 2},
    {.what = "leftpad of rows",
     .bf16 = 1,
     .head_dim = 64,
     .batch = 2,
     .heads_kv = 1,
     .group = 1,
     .rows = 33,
     .keys = {200, 90},
     .pad = {67, 80},
     .right = 1,
     .splits = 2},
    {.what = "moved",
     .head_dim = 64,
     .batch = 3,
     .heads_kv = 1,
     .group = 1,
     .rows = 1,
     .keys = {64, 65, 63},
     .moved = 1,
     .splits = 1},
    {.what = "appended",
     .head_dim = 64,
     .batch = 2,
     .heads_kv = 1,
     .group = 1,
     .rows = 4,
     .keys = {64, 4},
     .n_new = 4,
     .right = 1,
     .splits = 2},
    {.what = "pages of 1",
     .bf16 = 1,
     .head_dim = 128,
     .batch = 2,
     .heads_kv = 2,
     .group = 2,
     .rows = 1,
     .keys = {150, 3},
     .page_size = 1,
     .splits = 2},
    {.what = "pages of 7",
     .head_dim = 64,
     .batch = 2,
     .heads_kv = 1,
     .group = 2,
     .rows = 2,
     .keys = {333, 28},
     .page_size = 7,
     .right = 1,
     .splits = 3},
    {.what = "pages of 16",
     .head_dim = 128,
     .batch = 2,
     .heads_kv = 1,
     .group = 2,
     .rows = 40,
     .keys = {150, 48},
     .page_size = 16,
     .right = 1,
     .splits = 1},
    {.what = "pages of 256",
     .bf16 = 1,
     .head_dim = 256,
     .batch = 2,
     .heads_kv = 1,
     .group = 2,
     .rows = 1,
     .keys = {300, 256},
     .page_size = 256,
     .splits = 2},
    {.what = "pages, leftpad, window",
     .head_dim = 64,
     .batch = 2,
     .heads_kv = 1,
     .group = 3,
     .rows = 7,
     .keys = {290, 100},
     .pad = {33, 99},
     .page_size = 24,
     .left = 150,
     .right = 1,
     .splits = 3},
    {.what = "softcap",
     .head_dim = 64,
     .batch = 1,
     .heads_kv = 1,
     .group = 2,
     .rows = 1,
     .keys = {100},
     .softcap = 2.0f,
     .splits = 2},
    {.what = "alibi",
     .bf16 = 1,
     .head_dim = 128,
     .batch = 2,
     .heads_kv = 1,
     .group = 3,
     .rows = 3,
     .keys = {100, 40},
     .pad = {0, 5},
     .alibi = 1,
     .splits = 2},
    {.what = "alibi and softcap of rows",
     .head_dim = 256,
     .batch = 2,
     .heads_kv = 1,
     .group = 3,
     .rows = 9,
     .keys = {100, 40},
     .alibi = 1,
     .softcap = 3.0f,
     .right = 1,
     .splits = 2},
    {.what = "unaligned",
     .head_dim = 64,
     .batch = 1,
     .heads_kv = 2,
     .group = 2,
     .rows = 2,
     .keys = {90},
     .unaligned = 1,
     .right = 1,
     .splits = 2},
    {.what = "unaligned rows",
     .bf16 = 1,
     .head_dim = 72,
     .batch = 1,
     .heads_kv = 1,
     .group = 2,
     .rows = 20,
     .keys = {90},
     .unaligned = 1,
     .page_size = 20,
     .right = 1,
     .splits = 1},
    {.what = "negative scale",
     .head_dim = 64,
     .batch = 1,
     .heads_kv = 1,
     .group = 2,
     .rows = 20,
     .keys = {90},
     .scale = -0.2,
     .right = 1,
     .splits = 2},
    {.what = "scale 0",
     .head_dim = 64,
     .batch = 1,
     .heads_kv = 1,
     .group = 2,
     .rows = 2,
     .keys = {90},
     .scale = NAN,
     .right = 1,
     .splits = 2},
    {.what = "rows above all keys",
     .head_dim = 64,
     .batch = 1,
     .heads_kv = 1,
     .group = 2,
     .rows = 50,
     .keys = {20},
     .right = 1,
     .splits = 3},
};

static void test_settings(void) {
  for (size_t i = 0; i < sizeof settings / sizeof *settings; ++i)
    for (uint64_t seed = 0; seed < 2; ++seed) {
      problem x;
      char text[512];
      problem_make(&settings[i], &x);
      const bool ran = run(&x, seed * 99, text);
      CHECK_MSG(ran, "%s: %s", x.s.what, text);
      if (ran) check_all(&x);
      CHECK_MSG(x.wrong == 0, "%s, schedule %d: %d wrong", x.s.what, (int)seed, x.wrong);
      problem_free(&x);
    }
}

int main(void) {
  test_settings();
  return check_done();
}
