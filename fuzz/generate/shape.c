/* Family, element type, heads, head dims and lengths, within the cost of one case. */
#include "fuzz/generate/parts.h"

#define COUNT(a) ((int64_t)(sizeof(a) / sizeof *(a)))
#define PICK(r, a) ((a)[fa_rng_below(r, COUNT(a))])

#define ENOUGH_PAIRS 6000
#define LATENT_PAIRS 250

/* Lengths around the tiles of all known kernels. */
static const int64_t edge_lengths[] = {1,  2,  7,  8,   15,  16,  17,  31,  32,  33,  63,  64,
                                       65, 80, 96, 127, 128, 129, 191, 192, 193, 255, 256, 257};

static int64_t min64(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* Multiples of a tile, plus or minus one, or plus half a tile. */
static int64_t tile_edge(fa_rng *r, int64_t longest) {
  static const int64_t tile[] = {32, 64, 64, 128, 128}, rest[] = {-1, 0, 1, 1, 64};
  int64_t t = PICK(r, tile);
  return t * fa_rng_range(r, 1, longest / t + 1) + PICK(r, rest);
}

/* Every power of two is equally likely; uniform in between. */
static int64_t log_uniform(fa_rng *r, int64_t longest) {
  int bits = 0;
  while ((longest >> bits) > 1) ++bits;
  int64_t low = (int64_t)1 << fa_rng_range(r, 0, bits);
  return fa_rng_range(r, low, min64(2 * low - 1, longest));
}

int64_t fa_gen_length(const fa_gen *g, fa_rng *r, int64_t longest) {
  if (longest < 1 || fa_rng_chance(r, g->rules->empty)) return 0;
  if (fa_rng_chance(r, 0.5)) return log_uniform(r, longest);
  for (int attempt = 0; attempt < 8; ++attempt) {
    int64_t n = fa_rng_chance(r, 0.6) ? PICK(r, edge_lengths) : tile_edge(r, longest);
    if (n >= 1 && n <= longest) return n;
  }
  return longest;
}

/* Lengths of one sequence: equal, unrelated, or one much larger than the other; at most `pairs` pairs. */
static void draw_lengths(const fa_gen *g, fa_rng *r, int64_t longest, int64_t pairs, int64_t *n_q,
                         int64_t *n_k) {
  for (int attempt = 0; attempt < 24; ++attempt) {
    int64_t kind = fa_rng_below(r, 100);
    *n_q = fa_gen_length(g, r, kind >= 75 && kind < 88 ? min64(17, longest) : longest);
    *n_k = kind < 30 && *n_q > 0 ? *n_q : fa_gen_length(g, r, kind >= 88 ? min64(17, longest) : longest);
    if (kind >= 70 && kind < 75) *n_k = *n_q + fa_rng_range(r, -1, 1) * fa_rng_range(r, 0, 2);
    if (*n_k >= 0 && *n_q * *n_k <= pairs) return;
  }
  *n_q = min64(*n_q, pairs < 1 ? 1 : pairs);
  if (*n_q > 0) *n_k = min64(*n_k < 0 ? 1 : *n_k, pairs / *n_q);
}

/* Thousands of sequences of one or two rows: grids and offsets that grow with the batch. */
static void draw_crowd(fa_gen *g, fa_rng *r) {
  static const int64_t batches[] = {257, 1025, 2700, 4097, 10007};
  fa_problem *p = &g->c->problem;
  p->batch = PICK(r, batches);
  p->heads_q = p->heads_kv = 1;
  p->head_dim = p->head_dim_v = fa_rng_chance(r, 0.5) ? 64 : 8;
  p->scale = fa_default_scale(p->head_dim);
  p->seqlen_q = fa_rng_range(r, 1, 2);
  p->seqlen_k = fa_rng_range(r, 1, 3);
}

static fa_family draw_family(const fa_gen *g, fa_rng *r) {
  int total = 0, f = 0;
  for (int k = 0; k < FA_N_FAMILIES; ++k) total += g->rules->family[k];
  int at = (int)fa_rng_below(r, total);
  while (at >= g->rules->family[f]) at -= g->rules->family[f++];
  return (fa_family)f;
}

static void draw_type(fa_gen *g) {
  fa_rng r = fa_gen_rng(g, FA_GEN_FAMILY);
  fa_problem *p = &g->c->problem;
  fa_problem_set_family(p, draw_family(g, &r));
  int64_t f32 = p->family == FA_MEMEFF ? 30 : 10, at = fa_rng_below(&r, 100);
  p->dtype = at < f32 ? FA_F32 : at < f32 + (100 - f32) / 2 ? FA_F16 : FA_BF16;
}

static void draw_heads(fa_gen *g) {
  static const int64_t batches[] = {1, 1, 2, 2, 3, 4}, kv[] = {1, 1, 2, 2, 3, 4};
  static const int64_t groups[] = {1, 2, 2, 3, 3, 4, 5, 8};
  fa_rng r = fa_gen_rng(g, FA_GEN_HEADS);
  fa_problem *p = &g->c->problem;
  p->batch = PICK(&r, batches);
  p->heads_kv = PICK(&r, kv);
  int64_t group = fa_rng_chance(&r, g->rules->group) ? PICK(&r, groups) : 1;
  p->heads_q = p->heads_kv * group;
}

static void draw_dims(fa_gen *g) {
  static const int64_t odd[] = {1,  2,  3,  4,  5,  6,  7,   8,   16,  24,  32,
                                40, 48, 56, 72, 80, 96, 112, 128, 160, 192, 256};
  static const int64_t wide[] = {257, 264, 320, 512};
  fa_rng r = fa_gen_rng(g, FA_GEN_DIMS);
  fa_problem *p = &g->c->problem;
  p->head_dim = fa_rng_chance(&r, g->rules->odd_dim) ? PICK(&r, odd) : fa_rng_chance(&r, 0.65) ? 64 : 128;
  p->head_dim_v = p->head_dim;
  bool may_differ = p->family == FA_MEMEFF || p->family == FA_FLEX || g->rules->mixed;
  if (may_differ && fa_rng_chance(&r, 0.4)) p->head_dim_v = PICK(&r, odd);
  if (g->rules->mixed && fa_rng_chance(&r, 0.06)) p->head_dim = PICK(&r, wide);
}

/* The budget of pairs for one head of one sequence. Reduces heads and batch before it becomes too small for
 * useful lengths. */
static int64_t sequence_pairs(fa_gen *g, fa_rng *r, int64_t enough) {
  fa_problem *p = &g->c->problem;
  int64_t size = fa_rng_below(r, 100), limit = g->rules->pairs_dim;
  limit = size < 45 ? limit / 4 : size < 97 ? limit : limit * 3;
  limit /= p->head_dim + p->head_dim_v;
  while (limit / (p->batch * p->heads_q) < enough) {
    int64_t group = p->heads_q / p->heads_kv;
    if (p->heads_kv > 1)
      --p->heads_kv;
    else if (p->batch > 1)
      --p->batch;
    else if (group > 2)
      --group;
    else
      break;
    p->heads_q = p->heads_kv * group;
  }
  return limit / (p->batch * p->heads_q);
}

/* ---- variable length ---- */

typedef enum zeros { ZEROS_NONE, ZEROS_FIRST, ZEROS_MIDDLE, ZEROS_LAST, ZEROS_ALL, ZEROS_RANDOM } zeros;

static bool is_zeroed(zeros pattern, int64_t b, int64_t batch, fa_rng *r) {
  switch (pattern) {
  case ZEROS_FIRST:
    return b == 0;
  case ZEROS_MIDDLE:
    return b > 0 && b < batch - 1;
  case ZEROS_LAST:
    return b == batch - 1;
  case ZEROS_ALL:
    return true;
  case ZEROS_RANDOM:
    return fa_rng_chance(r, 0.4);
  default:
    return false;
  }
}

static zeros draw_zeros(fa_rng *r) {
  static const zeros pattern[] = {ZEROS_FIRST, ZEROS_FIRST,  ZEROS_MIDDLE, ZEROS_MIDDLE, ZEROS_LAST,
                                  ZEROS_LAST,  ZEROS_RANDOM, ZEROS_RANDOM, ZEROS_ALL};
  return fa_rng_chance(r, 0.25) ? PICK(r, pattern) : ZEROS_NONE;
}

static fa_status draw_varlen(fa_gen *g) {
  fa_rng r = fa_gen_rng(g, FA_GEN_VARLEN), lengths = fa_gen_rng(g, FA_GEN_LENGTHS);
  fa_problem *p = &g->c->problem;
  bool many = fa_rng_chance(&r, 0.12); /* short sequences: offsets accumulate, most tiles are partial */
  int64_t longest = many ? 24 : g->rules->longest;
  p->batch = many ? fa_rng_range(&r, 8, 40) : fa_rng_range(&r, 1, 7);
  int64_t pairs = sequence_pairs(g, &lengths, many ? 300 : ENOUGH_PAIRS);
  fa_status status;
  if ((status = fa_int32_array_set(&p->cu_seqlens_q, NULL, p->batch + 1)) != FA_OK) return status;
  if ((status = fa_int32_array_set(&p->cu_seqlens_k, NULL, p->batch + 1)) != FA_OK) return status;
  zeros zero_q = draw_zeros(&r), zero_k = fa_rng_chance(&r, 0.5) ? zero_q : draw_zeros(&r);
  bool same = fa_rng_chance(&r, 0.25); /* self-attention: required by packed qkv */
  for (int64_t b = 0; b < p->batch; ++b) {
    int64_t n_q, n_k;
    draw_lengths(g, &lengths, longest, pairs, &n_q, &n_k);
    if (is_zeroed(zero_q, b, p->batch, &r)) n_q = 0;
    if (is_zeroed(zero_k, b, p->batch, &r)) n_k = 0;
    if (same && n_q > n_k) n_q = n_k;
    p->cu_seqlens_q.v[b + 1] = p->cu_seqlens_q.v[b] + (int32_t)n_q;
    p->cu_seqlens_k.v[b + 1] = p->cu_seqlens_k.v[b] + (int32_t)(same ? n_q : n_k);
  }
  return fa_problem_complete(p);
}

/* 0..n, with its ends more likely. */
static int64_t draw_part(fa_rng *r, int64_t n) {
  switch (fa_rng_below(r, 8)) {
  case 0:
    return 0;
  case 1:
    return n;
  case 2:
    return min64(1, n);
  case 3:
    return n > 0 ? n - 1 : 0;
  default:
    return fa_rng_range(r, 0, n);
  }
}

static fa_status draw_used_keys(fa_gen *g) {
  fa_rng r = fa_gen_rng(g, FA_GEN_VARLEN);
  r.next += FA_GEN_USED_KEYS;
  fa_problem *p = &g->c->problem;
  bool used = fa_rng_chance(&r, g->rules->seqused), padded = fa_rng_chance(&r, g->rules->leftpad);
  fa_status status;
  if (used && (status = fa_int32_array_set(&p->seqused_k, NULL, p->batch)) != FA_OK) return status;
  if (padded && (status = fa_int32_array_set(&p->leftpad_k, NULL, p->batch)) != FA_OK) return status;
  for (int64_t b = 0; b < p->batch; ++b) {
    int64_t n = p->seqlen_k;
    if (fa_problem_is_varlen(p)) n = p->cu_seqlens_k.v[b + 1] - p->cu_seqlens_k.v[b];
    if (used) n = p->seqused_k.v[b] = (int32_t)(fa_rng_chance(&r, 0.6) ? n - n / 4 : draw_part(&r, n));
    if (padded) p->leftpad_k.v[b] = (int32_t)(fa_rng_chance(&r, 0.5) ? n / 3 : draw_part(&r, n));
  }
  return FA_OK;
}

/* Shapes for measuring rates: nothing that is skipped, no preferred size. */
static void draw_even(fa_gen *g) {
  fa_rng r = fa_gen_rng(g, FA_GEN_LENGTHS);
  fa_problem *p = &g->c->problem;
  fa_problem_set_family(p, FA_FLASH);
  p->dtype = fa_rng_chance(&r, 0.5) ? FA_F16 : FA_BF16;
  p->batch = fa_rng_range(&r, 1, 2);
  p->heads_q = fa_rng_range(&r, 1, g->rules->even_heads);
  p->heads_kv = p->heads_q % 2 == 0 && fa_rng_chance(&r, 0.25) ? p->heads_q / 2 : p->heads_q;
  p->head_dim = p->head_dim_v = 64 * fa_rng_range(&r, 1, g->rules->dims);
  p->scale = fa_default_scale(p->head_dim);
  p->seqlen_q = fa_rng_range(&r, 1, g->rules->longest);
  p->seqlen_k = fa_rng_chance(&r, 0.5) ? p->seqlen_q : fa_rng_range(&r, 1, g->rules->longest);
}

fa_status fa_gen_shape(fa_gen *g) {
  fa_problem *p = &g->c->problem;
  if (g->rules->even_heads > 0) {
    draw_even(g);
    return FA_OK;
  }
  draw_type(g);
  draw_heads(g);
  draw_dims(g);
  p->scale = fa_default_scale(p->head_dim);
  fa_gen_mla_shape(g);
  fa_rng r = fa_gen_rng(g, FA_GEN_LENGTHS);
  if (p->family == FA_KVCACHE) {
    /* Latent caches are made for many heads: few keys then. */
    g->budget = sequence_pairs(g, &r, p->kvcache.v_in_k ? LATENT_PAIRS : ENOUGH_PAIRS);
    return fa_gen_cache(g);
  }
  if (fa_rng_chance(&r, g->rules->varlen)) {
    fa_status status = draw_varlen(g);
    return status == FA_OK ? draw_used_keys(g) : status;
  }
  if (fa_rng_chance(&r, g->rules->crowd)) {
    draw_crowd(g, &r);
    return FA_OK;
  }
  draw_lengths(g, &r, g->rules->longest, sequence_pairs(g, &r, ENOUGH_PAIRS), &p->seqlen_q, &p->seqlen_k);
  /* Neither rows nor keys: no output to judge, but worth a call now and then. */
  if (p->seqlen_q == 0 && p->seqlen_k == 0 && fa_rng_chance(&r, 0.9)) p->seqlen_k = fa_rng_range(&r, 1, 9);
  return draw_used_keys(g);
}
