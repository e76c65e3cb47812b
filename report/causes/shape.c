#include "report/causes/shape.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a number is if the text does not have it. */
typedef enum usual { NEEDED, USUALLY, AS_OTHER, AS_SHIFT, AS_SCALE, AS_TAIL } usual;

static const struct {
  const char *key;
  usual usual;
  double value; /* USUALLY: the number; AS_OTHER: which other number it equals */
} numbers[FA_SHAPE_NUMBERS] = {[FA_SHAPE_BATCH] = {"b", NEEDED, 0},
                               [FA_SHAPE_HEADS_Q] = {"hq", NEEDED, 0},
                               [FA_SHAPE_HEADS_KV] = {"hkv", NEEDED, 0},
                               [FA_SHAPE_SEQLEN_Q] = {"sq", NEEDED, 0},
                               [FA_SHAPE_SEQLEN_K] = {"sk", NEEDED, 0},
                               [FA_SHAPE_HEAD_DIM] = {"d", NEEDED, 0},
                               [FA_SHAPE_HEAD_DIM_V] = {"dv", NEEDED, 0},
                               [FA_SHAPE_SHORTEST_Q] = {"sq_min", AS_OTHER, FA_SHAPE_SEQLEN_Q},
                               [FA_SHAPE_SHORTEST_K] = {"sk_min", AS_OTHER, FA_SHAPE_SEQLEN_K},
                               [FA_SHAPE_LONGEST_K] = {"sk_max", AS_OTHER, FA_SHAPE_SEQLEN_K},
                               [FA_SHAPE_LEAST_SHIFT] = {"shift_min", AS_SHIFT, 0},
                               [FA_SHAPE_MOST_SHIFT] = {"shift_max", AS_SHIFT, 0},
                               [FA_SHAPE_COMMON_Q] = {"sq_gcd", AS_OTHER, FA_SHAPE_SEQLEN_Q},
                               [FA_SHAPE_COMMON_K] = {"sk_gcd", AS_OTHER, FA_SHAPE_SEQLEN_K},
                               [FA_SHAPE_TAIL_Q_64] = {"sq_tail64", AS_TAIL, 0},
                               [FA_SHAPE_TAIL_Q_128] = {"sq_tail128", AS_TAIL, 0},
                               [FA_SHAPE_TAIL_K_64] = {"sk_tail64", AS_TAIL, 0},
                               [FA_SHAPE_TAIL_K_128] = {"sk_tail128", AS_TAIL, 0},
                               [FA_SHAPE_TOP_LEFT] = {"top_left", USUALLY, 0},
                               [FA_SHAPE_LEFT] = {"left", USUALLY, -1},
                               [FA_SHAPE_RIGHT] = {"right", USUALLY, -1},
                               [FA_SHAPE_SCALE] = {"scale", AS_SCALE, 0},
                               [FA_SHAPE_SOFTCAP] = {"softcap", USUALLY, 0},
                               [FA_SHAPE_DROPOUT] = {"p", USUALLY, 0},
                               [FA_SHAPE_GAP] = {"gap", USUALLY, 0},
                               [FA_SHAPE_EXPAND] = {"expand", USUALLY, 0},
                               [FA_SHAPE_OFFSET] = {"offset", USUALLY, 0},
                               [FA_SHAPE_TAIL] = {"tail", USUALLY, 0},
                               [FA_SHAPE_REPEAT] = {"repeat", USUALLY, 2},
                               [FA_SHAPE_PAGE] = {"page", USUALLY, 0},
                               [FA_SHAPE_NEW] = {"new", USUALLY, 0},
                               [FA_SHAPE_ROTARY] = {"rotary", USUALLY, 0},
                               [FA_SHAPE_SPLITS] = {"splits", USUALLY, 0},
                               [FA_SHAPE_Q_BLOCK] = {"q_block", USUALLY, 0},
                               [FA_SHAPE_KV_BLOCK] = {"kv_block", USUALLY, 0}};

/* Fills are those of q where the text does not say otherwise. */
static const struct {
  const char *key, *usual;
} names[FA_SHAPE_NAMES] = {[FA_SHAPE_LAYOUT] = {"layout", "bshd"}, [FA_SHAPE_PACKING] = {"packed", ""},
                           [FA_SHAPE_FILL_Q] = {"fill", ""},       [FA_SHAPE_FILL_K] = {"fill_k", NULL},
                           [FA_SHAPE_FILL_V] = {"fill_v", NULL},   [FA_SHAPE_FILL_BIAS] = {"fill_bias", NULL},
                           [FA_SHAPE_FILL_DO] = {"fill_do", NULL}, [FA_SHAPE_BIAS] = {"bias", ""},
                           [FA_SHAPE_ALIBI] = {"alibi", ""},       [FA_SHAPE_LAW] = {"law", ""}};

/* What the tails' numbers are about. */
static const struct {
  int length, tile;
} tails[] = {
    {FA_SHAPE_SEQLEN_Q, 64}, {FA_SHAPE_SEQLEN_Q, 128}, {FA_SHAPE_SEQLEN_K, 64}, {FA_SHAPE_SEQLEN_K, 128}};

static double tail_of(double length, double tile) {
  return length > tile ? fmod(length, tile) : 0;
}

static double usual_number(const fa_shape *s, int i) {
  switch (numbers[i].usual) {
  case AS_OTHER:
    return s->number[(int)numbers[i].value];
  case AS_SHIFT:
    return s->number[FA_SHAPE_SEQLEN_K] - s->number[FA_SHAPE_SEQLEN_Q];
  case AS_TAIL: {
    const int t = i - FA_SHAPE_TAIL_Q_64;
    return tail_of(s->number[tails[t].length], tails[t].tile);
  }
  case AS_SCALE:
    return 1 / sqrt(s->number[FA_SHAPE_HEAD_DIM]);
  default:
    return numbers[i].value;
  }
}

/* ---- from a case ---- */

static void set_sizes(const fa_problem *p, double *n) {
  n[FA_SHAPE_BATCH] = (double)p->batch;
  n[FA_SHAPE_HEADS_Q] = (double)p->heads_q;
  n[FA_SHAPE_HEADS_KV] = (double)p->heads_kv;
  n[FA_SHAPE_SEQLEN_Q] = (double)p->seqlen_q;
  n[FA_SHAPE_SEQLEN_K] = (double)p->seqlen_k;
  n[FA_SHAPE_HEAD_DIM] = (double)p->head_dim;
  n[FA_SHAPE_HEAD_DIM_V] = (double)p->head_dim_v;
}

static int64_t length_of(const fa_int32_array *cu, int64_t b, int64_t otherwise) {
  return b + 1 < cu->n ? (int64_t)cu->v[b + 1] - cu->v[b] : otherwise;
}

static int64_t keys_of(const fa_problem *p, int64_t b) {
  int64_t keys = length_of(&p->cu_seqlens_k, b, p->seqlen_k);
  if (p->kvcache.present && b < p->kvcache.len.n) keys = p->kvcache.len.v[b] + p->kvcache.n_new;
  if (b < p->seqused_k.n) keys = p->seqused_k.v[b];
  if (b < p->leftpad_k.n) keys -= p->leftpad_k.v[b];
  return keys;
}

static double divisor_of(double a, double b) {
  while (b != 0) {
    const double rest = fmod(a, b);
    a = b;
    b = rest;
  }
  return a;
}

static void set_tails(double queries, double keys, bool first, double *n) {
  n[FA_SHAPE_COMMON_Q] = divisor_of(queries, first ? 0 : n[FA_SHAPE_COMMON_Q]);
  n[FA_SHAPE_COMMON_K] = divisor_of(keys, first ? 0 : n[FA_SHAPE_COMMON_K]);
  for (int t = 0; t < 4; ++t) {
    double *at = &n[FA_SHAPE_TAIL_Q_64 + t];
    const double tail = tail_of(tails[t].length == FA_SHAPE_SEQLEN_Q ? queries : keys, tails[t].tile);
    if (first || *at == 0 || (tail > 0 && tail < *at)) *at = tail;
  }
}

static void set_lengths(const fa_problem *p, double *n) {
  for (int64_t b = 0; b < p->batch; ++b) {
    const double queries = (double)length_of(&p->cu_seqlens_q, b, p->seqlen_q), keys = (double)keys_of(p, b);
    const double shift = keys - queries;
    set_tails(queries, keys, b == 0, n);
    const double seen[] = {queries, keys, keys, shift, shift};
    for (int i = 0; i < 5; ++i) {
      const bool most = i == 2 || i == 4;
      double *at = &n[FA_SHAPE_SHORTEST_Q + i];
      if (b == 0 || (most ? seen[i] > *at : seen[i] < *at)) *at = seen[i];
    }
  }
}

static void set_scores(const fa_problem *p, fa_shape *out) {
  double *n = out->number;
  if (p->mask.type != FA_MASK_NONE) {
    const fa_window w = fa_mask_window(&p->mask);
    n[FA_SHAPE_TOP_LEFT] = p->mask.align == FA_ALIGN_TOP_LEFT;
    n[FA_SHAPE_LEFT] = (double)w.left;
    n[FA_SHAPE_RIGHT] = (double)w.right;
  }
  n[FA_SHAPE_SCALE] = p->scale;
  n[FA_SHAPE_SOFTCAP] = p->softcap;
  n[FA_SHAPE_DROPOUT] = p->dropout.p;
  if (p->alibi.present)
    snprintf(out->name[FA_SHAPE_ALIBI], sizeof out->name[0], "%s",
             p->alibi.standard          ? "standard"
             : p->alibi.n == p->heads_q ? "heads"
                                        : "batch");
  if (!p->bias.present) return;
  const bool any = p->bias.per_batch || p->bias.per_head || p->bias.per_query;
  snprintf(out->name[FA_SHAPE_BIAS], sizeof out->name[0], "%s%s%s%s", p->bias.per_batch ? "b" : "",
           p->bias.per_head ? "h" : "", p->bias.per_query ? "q" : "", any ? "" : "-");
}

static void set_memory(const fa_case *c, fa_shape *out) {
  static const char *const layouts[] = {"bshd", "bhsd", "sbhd"}, *const packings[] = {"", "kv", "qkv"};
  double *n = out->number;
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const fa_stride_recipe *r = &c->strides[id];
    if (!fa_case_has_strides((fa_tensor_id)id)) continue;
    for (int a = 0; a < 3; ++a) {
      if (r->gap[a] > 0) n[FA_SHAPE_GAP] = 1;
      if (r->expand[a]) n[FA_SHAPE_EXPAND] = 1;
    }
    if (r->offset > 0) n[FA_SHAPE_OFFSET] = 1;
    if (r->tail > 0) n[FA_SHAPE_TAIL] = 1;
  }
  snprintf(out->name[FA_SHAPE_LAYOUT], sizeof out->name[0], "%s", layouts[c->layout]);
  snprintf(out->name[FA_SHAPE_PACKING], sizeof out->name[0], "%s", packings[c->packing]);
}

static void set_data(const fa_case *c, fa_shape *out) {
  static const fa_tensor_id ids[] = {FA_T_Q, FA_T_K, FA_T_V, FA_T_BIAS, FA_T_DO};
  for (int i = 0; i < 5; ++i)
    if (fa_case_has_fill(ids[i]) && fa_case_uses(c, ids[i]))
      snprintf(out->name[FA_SHAPE_FILL_Q + i], sizeof out->name[0], "%s",
               fa_fill_describe(c->fill[ids[i]])->name);
  if (c->law != FA_LAW_NONE)
    snprintf(out->name[FA_SHAPE_LAW], sizeof out->name[0], "%s", fa_law_describe(c->law)->name);
}

void fa_shape_of(const fa_case *c, fa_shape *out) {
  const fa_problem *p = &c->problem;
  memset(out, 0, sizeof *out);
  double *n = out->number;
  set_sizes(p, n);
  for (int i = 0; i < FA_SHAPE_NUMBERS; ++i)
    if (numbers[i].usual != NEEDED) n[i] = usual_number(out, i);
  set_lengths(p, n);
  set_scores(p, out);
  set_memory(c, out);
  set_data(c, out);
  if (c->repeat > 2) n[FA_SHAPE_REPEAT] = (double)c->repeat;
  n[FA_SHAPE_PAGE] = (double)p->kvcache.page_size;
  n[FA_SHAPE_NEW] = (double)p->kvcache.n_new;
  n[FA_SHAPE_ROTARY] = (double)p->kvcache.rotary_dim;
  n[FA_SHAPE_SPLITS] = (double)p->splits;
  if (!p->block_sparse.present) return;
  n[FA_SHAPE_Q_BLOCK] = (double)p->block_sparse.q_block;
  n[FA_SHAPE_KV_BLOCK] = (double)p->block_sparse.kv_block;
}

double fa_shape_work(const fa_shape *s) {
  const double *n = s->number;
  return n[FA_SHAPE_BATCH] * n[FA_SHAPE_HEADS_Q] * (n[FA_SHAPE_SEQLEN_Q] + 1) * (n[FA_SHAPE_LONGEST_K] + 1) *
         (n[FA_SHAPE_HEAD_DIM] + n[FA_SHAPE_HEAD_DIM_V]);
}

/* ---- as text ---- */

static const char *usual_name(const fa_shape *s, int i) {
  return names[i].usual ? names[i].usual : s->name[FA_SHAPE_FILL_Q];
}

void fa_shape_text(const fa_shape *s, char *text, size_t size) {
  size_t used = 0;
  text[0] = 0;
  for (int i = 0; i < FA_SHAPE_NUMBERS && used < size; ++i)
    if (numbers[i].usual == NEEDED || s->number[i] != usual_number(s, i))
      used += (size_t)snprintf(text + used, size - used, "%s%s=%.15g", used ? " " : "", numbers[i].key,
                               s->number[i]);
  for (int i = 0; i < FA_SHAPE_NAMES && used < size; ++i)
    if (s->name[i][0] && strcmp(s->name[i], usual_name(s, i)) != 0)
      used += (size_t)snprintf(text + used, size - used, " %s=%s", names[i].key, s->name[i]);
}

void fa_shape_text_of(const fa_case *c, char *text, size_t size) {
  fa_shape s;
  fa_shape_of(c, &s);
  fa_shape_text(&s, text, size);
}

static bool is_key(const char *word, size_t n, const char *key) {
  return *word == *key && strncmp(word, key, n) == 0 && key[n] == 0;
}

/* value: ends with a space or the text. *next: the number that is expected, because numbers are written in their order;
 * a campaign's merged report has millions of these texts. */
static void take(fa_shape *s, bool *has, const char *key, size_t n_key, const char *value, size_t n_value,
                 int *next) {
  for (int k = 0; k < FA_SHAPE_NUMBERS; ++k) {
    const int i = (*next + k) % FA_SHAPE_NUMBERS;
    if (!is_key(key, n_key, numbers[i].key)) continue;
    s->number[i] = strtod(value, NULL);
    has[i] = isfinite(s->number[i]);
    *next = i + 1;
    return;
  }
  for (int i = 0; i < FA_SHAPE_NAMES; ++i)
    if (is_key(key, n_key, names[i].key) && n_value < sizeof s->name[i]) {
      memcpy(s->name[i], value, n_value);
      s->name[i][n_value] = 0;
    }
}

static void set_usual(fa_shape *s, int i) {
  const char *name = usual_name(s, i);
  memcpy(s->name[i], name, strnlen(name, sizeof s->name[i] - 1));
}

bool fa_shape_parse(const char *text, fa_shape *out) {
  bool has[FA_SHAPE_NUMBERS] = {false};
  int next = 0;
  memset(out, 0, sizeof *out);
  while (*(text += strspn(text, " "))) {
    const size_t n = strcspn(text, " ");
    const char *equals = memchr(text, '=', n);
    if (equals)
      take(out, has, text, (size_t)(equals - text), equals + 1, n - (size_t)(equals + 1 - text), &next);
    text += n;
  }
  for (int i = 0; i < FA_SHAPE_NUMBERS; ++i) {
    if (!has[i] && numbers[i].usual == NEEDED) return false;
    if (!has[i]) out->number[i] = usual_number(out, i);
  }
  for (int i = 0; i < FA_SHAPE_NAMES; ++i)
    if (!out->name[i][0]) set_usual(out, i);
  return true;
}
