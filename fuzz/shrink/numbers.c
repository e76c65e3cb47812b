/* Passes that reduce a number of the case. */
#include "fuzz/shrink/reduce.h"

#include <stdlib.h>

static int compare(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? -1 : x > y;
}

int fa_shrink_values(int64_t n, int64_t least, int64_t value[FA_SHRINK_VALUES]) {
  static const int64_t fixed[] = {0,   1,   2,   3,   4,   5,   7,   8,   9,   15,  16,   17,   24,  31,  32,
                                  33,  63,  64,  65,  95,  96,  97,  127, 128, 129, 191,  192,  193, 255, 256,
                                  257, 383, 384, 385, 511, 512, 513, 767, 768, 769, 1023, 1024, 1025};
  int count = 0, kept = 0;
  for (size_t i = 0; i < sizeof fixed / sizeof *fixed; ++i)
    if (fixed[i] < n && fixed[i] >= least) value[count++] = fixed[i];
  for (int64_t step = n / 2; step > 0 && count < FA_SHRINK_VALUES; step /= 2)
    if (n - step >= least) value[count++] = n - step;
  qsort(value, (size_t)count, sizeof *value, compare);
  for (int i = 0; i < count; ++i)
    if (i == 0 || value[i] != value[kept - 1]) value[kept++] = value[i];
  return kept;
}

int64_t fa_shrink_pass_count(const fa_shrink_pass *pass, const fa_case *c) {
  if (!pass->knob) return pass->count(c);
  return FA_SHRINK_VALUES * (pass->knob->count ? pass->knob->count(c) : 1);
}

bool fa_shrink_pass_edit(const fa_shrink_pass *pass, fa_case *c, int64_t i, const fa_shrink_goal *goal) {
  const fa_shrink_knob *k = pass->knob;
  if (!k) return pass->edit(c, i, goal);
  int64_t value[FA_SHRINK_VALUES];
  const int64_t which = i / FA_SHRINK_VALUES;
  i %= FA_SHRINK_VALUES;
  if (i >= fa_shrink_values(k->get(c, which), k->least, value)) return false;
  k->set(c, which, value[i]);
  return true;
}

/* ---- sequences: halves of the batch, quarters ... single ones ---- */

#define MAX_ENTRIES 4096

static int64_t count_sequences(const fa_case *c) {
  return c->problem.batch > MAX_ENTRIES ? 0 : 3 * c->problem.batch;
}

static bool edit_sequences(fa_case *c, int64_t i, const fa_shrink_goal *goal) {
  (void)goal;
  int64_t from, n;
  if (!fa_shrink_chunk(c->problem.batch, i, &from, &n) || n == c->problem.batch) return false;
  fa_shrink_delete_sequences(c, from, n);
  return true;
}

/* ---- sizes ---- */

static bool is_varlen(const fa_case *c) {
  return c->problem.cu_seqlens_q.n > 0;
}
/* Of queries, or of keys, which may be in a cache while the queries are packed. */
static bool is_packed(const fa_case *c, bool keys) {
  return keys ? fa_problem_has_packed_keys(&c->problem) : is_varlen(c);
}

static int64_t get_batch(const fa_case *c, int64_t which) {
  (void)which;
  return c->problem.batch;
}
static void set_batch(fa_case *c, int64_t which, int64_t x) {
  (void)which;
  fa_shrink_delete_sequences(c, x, c->problem.batch - x);
}

static int64_t get_heads(const fa_case *c, int64_t which) {
  (void)which;
  return c->problem.heads_kv;
}
static void set_heads(fa_case *c, int64_t which, int64_t x) {
  fa_problem *p = &c->problem;
  (void)which;
  p->heads_q = x * (p->heads_q / p->heads_kv);
  p->heads_kv = x;
}

static int64_t get_group(const fa_case *c, int64_t which) {
  (void)which;
  if (c->problem.family == FA_MERGE) return 0; /* heads_kv only follows */
  return c->problem.heads_q / c->problem.heads_kv;
}
static void set_group(fa_case *c, int64_t which, int64_t x) {
  (void)which;
  c->problem.heads_q = x * c->problem.heads_kv;
}

static int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* Limits both lengths to x, so that square stays square. */
static int64_t get_cap(const fa_case *c, int64_t which) {
  (void)which;
  return is_varlen(c) ? 0 : larger(c->problem.seqlen_q, c->problem.seqlen_k);
}
static void set_cap(fa_case *c, int64_t which, int64_t x) {
  fa_problem *p = &c->problem;
  (void)which;
  if (p->seqlen_q > x) p->seqlen_q = x;
  if (p->seqlen_k > x) p->seqlen_k = x;
}

/* Reduces both lengths by the same amount, so that the diagonal stays at the end; x is the shorter one. */
static int64_t get_both(const fa_case *c, int64_t which) {
  const fa_problem *p = &c->problem;
  (void)which;
  return is_varlen(c) ? 0 : p->seqlen_q < p->seqlen_k ? p->seqlen_q : p->seqlen_k;
}
static void set_both(fa_case *c, int64_t which, int64_t x) {
  const int64_t less = get_both(c, which) - x;
  c->problem.seqlen_q -= less;
  c->problem.seqlen_k -= less;
}

static int64_t get_length(const fa_case *c, int64_t side) {
  return is_packed(c, side == 0) ? 0 : side ? c->problem.seqlen_q : c->problem.seqlen_k;
}
static void set_length(fa_case *c, int64_t side, int64_t x) {
  *(side ? &c->problem.seqlen_q : &c->problem.seqlen_k) = x;
}
static int64_t count_two(const fa_case *c) {
  (void)c;
  return 2;
}

static int64_t count_sequence_lengths(const fa_case *c) {
  const int64_t n = is_varlen(c) ? 2 * c->problem.batch : 0;
  return n > 256 ? 256 : n;
}
static int64_t get_sequence_length(const fa_case *c, int64_t which) {
  const fa_int32_array *cu = which % 2 ? &c->problem.cu_seqlens_k : &c->problem.cu_seqlens_q;
  if (!is_packed(c, which % 2 == 1)) return 0; /* nothing to reduce */
  return cu->v[which / 2 + 1] - cu->v[which / 2];
}
static void set_sequence_length(fa_case *c, int64_t which, int64_t x) {
  fa_shrink_set_sequence_length(c, (int)(which % 2), which / 2, x);
}

/* The kernels take multiples of 8, other subjects any number. */
static const int64_t head_dims[] = {8, 1, 2, 16, 24, 32, 40, 48, 64, 72, 80, 96, 128, 160, 192, 256};
enum { N_HEAD_DIMS = sizeof head_dims / sizeof *head_dims };
static int64_t count_head_dims(const fa_case *c) {
  (void)c;
  return 2 * N_HEAD_DIMS;
}
static bool edit_head_dim(fa_case *c, int64_t i, const fa_shrink_goal *goal) {
  fa_problem *p = &c->problem;
  const int64_t x = head_dims[i % N_HEAD_DIMS];
  (void)goal;
  if (i >= N_HEAD_DIMS) { /* of v alone */
    if (p->head_dim_v <= x) return false;
    p->head_dim_v = x;
    return true;
  }
  if (p->head_dim <= x) return false;
  if (p->head_dim_v > x) p->head_dim_v = x;
  p->head_dim = x;
  return true;
}

/* ---- numbers of features ---- */

static int64_t get_window(const fa_case *c, int64_t side) {
  return side ? c->problem.mask.right : c->problem.mask.left;
}
static void set_window(fa_case *c, int64_t side, int64_t x) {
  *(side ? &c->problem.mask.right : &c->problem.mask.left) = x;
}

static int64_t get_chunk(const fa_case *c, int64_t which) {
  (void)which;
  return c->problem.mask.size;
}
static void set_chunk(fa_case *c, int64_t which, int64_t x) {
  (void)which;
  c->problem.mask.size = x;
}

static int64_t get_splits(const fa_case *c, int64_t which) {
  (void)which;
  return c->problem.splits;
}
static void set_splits(fa_case *c, int64_t which, int64_t x) {
  (void)which;
  c->problem.splits = x;
}

static int64_t get_parts(const fa_case *c, int64_t which) {
  (void)which;
  return c->problem.merge.parts;
}
static void set_parts(fa_case *c, int64_t which, int64_t x) {
  (void)which;
  c->problem.merge.parts = x;
}

static int64_t get_topk(const fa_case *c, int64_t which) {
  (void)which;
  return c->problem.topk.k;
}
static void set_topk(fa_case *c, int64_t which, int64_t x) {
  fa_topk *t = &c->problem.topk;
  (void)which;
  t->k = x;
  for (int64_t b = 0; b < t->len.n; ++b)
    if (t->len.v[b] > x) t->len.v[b] = (int32_t)x;
}

static int64_t get_new_keys(const fa_case *c, int64_t which) {
  (void)which;
  return c->problem.kvcache.n_new;
}
static void set_new_keys(fa_case *c, int64_t which, int64_t x) {
  (void)which;
  c->problem.kvcache.n_new = x;
}

static int64_t get_repeat(const fa_case *c, int64_t which) {
  (void)which;
  return c->repeat;
}
static void set_repeat(fa_case *c, int64_t which, int64_t x) {
  (void)which;
  c->repeat = x;
}

/* Arrays with a number per sequence. */
static fa_int32_array *each_array(const fa_case *c, int64_t which) {
  const fa_problem *p = &c->problem;
  const fa_int32_array *a[] = {&p->seqused_k, &p->leftpad_k, &p->kvcache.len};
  const fa_int32_array *found = a[which % 3];
  return which / 3 < found->n ? (fa_int32_array *)found : NULL;
}
static int64_t count_each(const fa_case *c) {
  return c->problem.batch > 64 ? 0 : 3 * c->problem.batch;
}
static int64_t get_each(const fa_case *c, int64_t which) {
  const fa_int32_array *a = each_array(c, which);
  return a ? a->v[which / 3] : 0;
}
static void set_each(fa_case *c, int64_t which, int64_t x) {
  each_array(c, which)->v[which / 3] = (int32_t)x;
}

#define KNOB(name, least, count, get, set)                                                                   \
  {                                                                                                          \
    name, NULL, NULL, &(const fa_shrink_knob) {                                                              \
      least, count, get, set                                                                                 \
    }                                                                                                        \
  }

const fa_shrink_pass fa_shrink_numbers[] = {
    {"entries", count_sequences, edit_sequences, NULL},
    KNOB("batch", 1, NULL, get_batch, set_batch),
    KNOB("heads", 1, NULL, get_heads, set_heads),
    KNOB("group", 1, NULL, get_group, set_group),
    KNOB("lengths, at most", 1, NULL, get_cap, set_cap),
    KNOB("lengths, both less", 1, NULL, get_both, set_both),
    KNOB("length", 1, count_two, get_length, set_length),
    KNOB("length of an entry", 0, count_sequence_lengths, get_sequence_length, set_sequence_length),
    {"head_dim", count_head_dims, edit_head_dim, NULL},
    KNOB("window", 0, count_two, get_window, set_window),
    KNOB("chunk", 1, NULL, get_chunk, set_chunk),
    KNOB("keys of an entry", 0, count_each, get_each, set_each),
    KNOB("entries of a list", 1, NULL, get_topk, set_topk),
    KNOB("new keys", 0, NULL, get_new_keys, set_new_keys),
    KNOB("splits", 1, NULL, get_splits, set_splits),
    KNOB("parts", 1, NULL, get_parts, set_parts),
    KNOB("repeat", 2, NULL, get_repeat, set_repeat),
    {0}};
