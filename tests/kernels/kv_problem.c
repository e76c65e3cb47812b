#include "tests/kernels/kv_problem.h"

#include "cases/base/dtype.h"
#include "gpu/simt/launch.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- settings ---- */

static void bad_word(const char *word) {
  fprintf(stderr, "%s: no such word\n", word);
  exit(1);
}

static int parse_list(const char *from, int *to) {
  int n = 0;
  for (char *end = (char *)from; n < KV_MAX_BATCH && *end; from = end + (*end == ',')) {
    to[n++] = (int)strtol(from, &end, 10);
    if (end == from) bad_word(from);
    if (*end != ',') break;
  }
  return n;
}

static void parse_word(const char *word, cache_setting *s) {
  const struct {
    const char *name;
    int *to;
  } numbers[] = {{"d=", &s->head_dim}, {"heads=", &s->heads_kv}, {"group=", &s->group},
                 {"rows=", &s->rows},  {"splits=", &s->splits},  {"page=", &s->page_size},
                 {"new=", &s->n_new},  {"left=", &s->left},      {"right=", &s->right}},
    flags[] = {{"bf16", &s->bf16},           {"f16", NULL},        {"alibi", &s->alibi},
               {"unaligned", &s->unaligned}, {"moved", &s->moved}, {"far", &s->far}};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i) {
    const size_t n = strlen(numbers[i].name);
    if (strncmp(word, numbers[i].name, n) == 0) {
      *numbers[i].to = atoi(word + n);
      return;
    }
  }
  for (size_t i = 0; i < sizeof flags / sizeof *flags; ++i)
    if (strcmp(word, flags[i].name) == 0) {
      if (flags[i].to) *flags[i].to = 1;
      return;
    }
  if (strncmp(word, "keys=", 5) == 0)
    s->batch = parse_list(word + 5, s->keys);
  else if (strncmp(word, "pad=", 4) == 0)
    parse_list(word + 4, s->pad);
  else if (strncmp(word, "scale=", 6) == 0)
    s->scale = strtod(word + 6, NULL);
  else if (strncmp(word, "cap=", 4) == 0)
    s->softcap = strtod(word + 4, NULL);
  else
    bad_word(word);
}

cache_setting cache_setting_parse(const char *words) {
  cache_setting s = {0};
  char copy[256], *rest = NULL;
  snprintf(copy, sizeof copy, "%s", words);
  for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) parse_word(word, &s);
  return s;
}

/* ---- memory ---- */

static uint64_t state;
static double uniform(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (double)(state >> 11) * 0x1p-52 - 1.0;
}

static uint16_t rounded(const cache_setting *s, double x) {
  return s->bf16 ? fa_f32_to_bf16((float)x) : fa_f32_to_f16((float)x);
}
static double value(const cache_setting *s, uint16_t x) {
  return s->bf16 ? (double)fa_bf16_to_f32(x) : (double)fa_f16_to_f32(x);
}

static void *zeros(int64_t n, size_t size) {
  void *p = calloc((size_t)(n > 0 ? n : 1), size);
  if (!p) exit(1);
  return p;
}

static int64_t slot(const cache_problem *x, int batch, int key) {
  const cache_setting *s = &x->s;
  const int64_t page = s->page_size ? x->table[batch * x->table_stride + key / s->page_size] : x->rows[batch];
  return page * x->p.k_stride.batch + (s->page_size ? key % s->page_size : key) * x->p.k_stride.row;
}

static void fill_cache(cache_problem *x) {
  const cache_setting *s = &x->s;
  const int64_t apart = x->p.k_stride.batch,
                n = (s->page_size ? s->page_size : x->capacity) * x->p.k_stride.row;
  for (int64_t at = 0; at < x->n_cache; at += apart)
    for (int64_t i = 0; i < n; ++i) x->k[at + i] = x->v[at + i] = 0x7fff; /* NaN of either type */
  for (int b = 0; b < s->batch; ++b)
    for (int j = s->pad[b]; j < s->keys[b]; ++j)
      for (int64_t i = 0; i < s->heads_kv * s->head_dim; ++i) {
        x->k[slot(x, b, j) + i] = rounded(s, 2 * uniform());
        x->v[slot(x, b, j) + i] = rounded(s, uniform());
      }
}

/* Places each sequence's keys: rows of the cache in reverse, or pages in an irregular order. */
static void place_keys(cache_problem *x) {
  const cache_setting *s = &x->s;
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

/* Memory that takes space only where it is touched. */
static void *sparse(int64_t bytes) {
  void *p =
      mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) exit(1);
  return p;
}

static int64_t cache_row(const cache_setting *s) {
  return s->heads_kv * s->head_dim + (s->unaligned ? 3 : 0);
}

/* Stride between rows, or pages, of the cache. */
static int64_t cache_batch(const cache_problem *x) {
  return (x->s.page_size ? x->s.page_size : x->capacity) * cache_row(&x->s) + ((int64_t)x->s.far << 30);
}

static void allocate(cache_problem *x) {
  const cache_setting *s = &x->s;
  const int heads = s->heads_kv * s->group;
  for (int b = 0; b < s->batch; ++b)
    if (s->keys[b] > x->capacity) x->capacity = s->keys[b];
  x->capacity += 3;
  x->table_stride = s->page_size ? x->capacity / s->page_size + 2 : 0;
  x->pages = s->batch * x->table_stride;
  while (x->pages % 7 == 0) ++x->pages;
  x->n_cache = (s->page_size ? x->pages : s->batch + 1) * cache_batch(x);
  x->n_rows = (int64_t)s->batch * heads * s->rows;
  x->n_q = x->n_rows * (s->head_dim + (s->unaligned ? 1 : 0));
  x->n_partial = s->splits > 1 ? x->n_rows * s->splits : 0;
  x->q = zeros(x->n_q, 2);
  x->o = zeros(x->n_q, 2);
  x->k = sparse(x->n_cache * 2);
  x->v = sparse(x->n_cache * 2);
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

static void fill_params(cache_problem *x) {
  const cache_setting *s = &x->s;
  const int heads = s->heads_kv * s->group;
  const int64_t width = s->head_dim + (s->unaligned ? 1 : 0);
  const fa_kernel_strides q = {s->rows * heads * width, heads * width, width};
  const fa_kernel_strides k = {cache_batch(x), cache_row(s), s->head_dim};
  x->scale = isnan(s->scale) ? 0.0 : s->scale != 0.0 ? s->scale : 1.0 / sqrt(s->head_dim);
  const double positive = x->scale == 0.0 ? 1.0 : fabs(x->scale);
  x->p =
      (fa_cache_params){.q = x->q,
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
                        .rows_of_head = s->rows,
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
                        .page = s->page_size ? fa_cache_divisor_of(s->page_size) : (fa_cache_divisor){0, 0},
                        .window_left = s->left - 1,
                        .window_right = s->right - 1,
                        .scale = (float)positive,
                        .scale_log2 = (float)(positive * 1.4426950408889634),
                        .score_sign = x->scale < 0      ? -1.0f
                                      : x->scale == 0.0 ? 0.0f
                                                        : 1.0f,
                        .softcap = (float)s->softcap,
                        .alibi_slopes = s->alibi ? x->slopes : NULL,
                        .alibi_batch_stride = heads,
                        .empty_lse = INFINITY,
                        .aligned = !s->unaligned,
                        .n_splits = s->splits,
                        .partial_o = x->partial_o,
                        .partial_lse = x->partial_lse};
}

void cache_problem_make(const cache_setting *s, cache_problem *x) {
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

void cache_problem_free(cache_problem *x) {
  void *const all[] = {x->q,         x->o,           x->lse,     x->slopes, x->partial_o, x->partial_lse,
                       x->o_written, x->lse_written, x->seqlens, x->rows,   x->pads,      x->table};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) free(all[i]);
  munmap(x->k, (size_t)x->n_cache * 2);
  munmap(x->v, (size_t)x->n_cache * 2);
}

/* ---- launches ---- */

bool cache_problem_launch(cache_problem *x, const fa_cache_kernel *k, int64_t grid_x, int grid_y, int grid_z,
                          uint64_t seed, char text[512]) {
  const cache_setting *s = &x->s;
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

static const fa_cache_kernel *kernel_of(const cache_setting *s) {
  const fa_cache_ability wanted = {.bf16 = s->bf16,
                                   .head_dim = s->head_dim,
                                   .packed_rows = s->rows * s->group,
                                   .unaligned = s->unaligned,
                                   .alibi = s->alibi,
                                   .softcap = s->softcap > 0};
  return fa_cache_forward_find(wanted, NULL);
}

bool cache_problem_run(cache_problem *x, uint64_t seed, char text[512]) {
  const cache_setting *s = &x->s;
  const fa_cache_kernel *k = kernel_of(s);
  const int tiles = (s->rows * s->group + k->block_m - 1) / k->block_m;
  return cache_problem_launch(x, k, (int64_t)tiles * s->splits, s->heads_kv, s->batch, seed, text) &&
         (s->splits == 1 ||
          cache_problem_launch(x, fa_cache_combine_find(s->bf16), x->n_rows, 1, 1, seed, text));
}

/* ---- expected values ---- */

static double logit(const cache_problem *x, int b, int i, int h, int j) {
  const cache_setting *s = &x->s;
  const uint16_t *q = x->q + b * x->p.q_stride.batch + i * x->p.q_stride.row + h * x->p.q_stride.head;
  const uint16_t *k = x->k + slot(x, b, j) + h / s->group * s->head_dim;
  double t = 0;
  for (int d = 0; d < s->head_dim; ++d) t += value(s, q[d]) * value(s, k[d]);
  t *= x->scale;
  if (s->softcap > 0) t = s->softcap * tanh(t / s->softcap);
  if (s->alibi) t -= x->slopes[b * s->heads_kv * s->group + h] * abs(i + s->keys[b] - s->rows - j);
  return t;
}

static bool sees(const cache_setting *s, int b, int i, int j) {
  const int diagonal = i + s->keys[b] - s->rows;
  return j >= s->pad[b] && j < s->keys[b] && (!s->left || j >= diagonal - (s->left - 1)) &&
         (!s->right || j <= diagonal + s->right - 1);
}

/* Counts in x->wrong the elements whose error exceeds what roundings of P and O can cause. */
static void check_row(cache_problem *x, int b, int i, int h) {
  const cache_setting *s = &x->s;
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
      isinf(want) ? got == INFINITY : fabs(got - want) <= 2e-5 * (1 + fabs(want)); /* false for NaN */
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

void cache_problem_judge(cache_problem *x) {
  const cache_setting *s = &x->s;
  x->wrong = 0;
  for (int b = 0; b < s->batch; ++b)
    for (int i = 0; i < s->rows; ++i)
      for (int h = 0; h < s->heads_kv * s->group; ++h) check_row(x, b, i, h);
}
