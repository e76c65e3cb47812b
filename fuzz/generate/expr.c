/* Random score and mask expressions that have a value at every pair: indices in range, no logarithm of
 * possibly negative numbers, masks that rounding cannot decide. A score expression is "score" with a few
 * steps around it. */
#include "fuzz/generate/operators.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 3000 };

typedef struct fa_gen_expr {
  fa_rng r;
  fa_problem *p;
  fa_capture capture[FA_MAX_CAPTURES];
  int n_captures;
} fa_gen_expr;

static int64_t at_least_one(int64_t n) {
  return n > 0 ? n : 1;
}

/* Strides that are not dense: transposed or with gaps, or an axis that repeats one element. */
static void lay_out(fa_gen_expr *x, fa_capture *c) {
  if (c->rank == 0 || !fa_rng_chance(&x->r, 0.2)) return;
  const int64_t gap = fa_rng_range(&x->r, 1, 3), inner = c->shape[c->rank - 1];
  const int repeated = (int)fa_rng_below(&x->r, 2 * c->rank); /* at or above rank: none */
  c->n_strides = c->rank;
  if (c->rank == 2 && fa_rng_chance(&x->r, 0.5)) {
    c->stride[0] = gap;
    c->stride[1] = gap * c->shape[0];
  } else {
    c->stride[c->rank - 1] = gap;
    if (c->rank == 2) c->stride[0] = gap * inner + gap - 1;
  }
  if (repeated < c->rank) c->stride[repeated] = 0;
}

/* Adds a buffer; writes its name to name[16]. False: there are enough. */
static bool add_buffer(fa_gen_expr *x, const char *stem, int rank, int64_t n0, int64_t n1, char *name) {
  static const char *const fills[] = {"normal", "normal", "small", "uniform"};
  static const fa_dtype types[] = {FA_F32, FA_F32, FA_F16, FA_BF16};
  if (x->n_captures == FA_MAX_CAPTURES) return false;
  fa_capture *c = &x->capture[x->n_captures];
  *c = (fa_capture){.rank = rank,
                    .shape = {n0, n1},
                    .dtype = types[fa_rng_below(&x->r, 4)],
                    .grad = fa_rng_chance(&x->r, 0.8)};
  snprintf(name, 16, "%.8s_%d", stem, x->n_captures);
  snprintf(c->name, sizeof c->name, "%s", name);
  snprintf(c->fill, sizeof c->fill, "%s", fills[fa_rng_below(&x->r, 4)]);
  lay_out(x, c);
  ++x->n_captures;
  return true;
}

static bool add_bools(fa_gen_expr *x, int rank, int64_t n0, int64_t n1, char *name) {
  if (!add_buffer(x, "keep", rank, n0, n1, name)) return false;
  fa_capture *c = &x->capture[x->n_captures - 1];
  snprintf(c->fill, sizeof c->fill, "normal");
  c->grad = false;
  c->dtype = FA_BOOL;
  c->share = 0.125 * (double)fa_rng_range(&x->r, 1, 7);
  return true;
}

static bool add_ints(fa_gen_expr *x, const char *stem, int64_t n, int64_t below, bool sorted, char *name) {
  if (!add_buffer(x, stem, 1, n, 0, name)) return false;
  fa_capture *c = &x->capture[x->n_captures - 1];
  snprintf(c->fill, sizeof c->fill, "normal");
  c->grad = false;
  c->dtype = fa_rng_chance(&x->r, 0.4) ? FA_I64 : FA_I32;
  c->sorted = sorted;
  c->below = below;
  return true;
}

static bool add_documents(fa_gen_expr *x, int64_t n, char *name) {
  const bool sorted = fa_rng_chance(&x->r, 0.8);
  return add_ints(x, "doc", n, fa_rng_range(&x->r, 1, 6), sorted, name);
}

/* ---- scores ---- */

/* More buffers than there could be once. */
static void with_many(fa_gen_expr *x, const char *s, char *out) {
  char name[16];
  size_t n = (size_t)snprintf(out, TEXT, "(%s", s);
  for (int64_t left = fa_rng_range(&x->r, 9, 14); left > 0; --left) {
    if (!add_buffer(x, "w", 1, x->p->heads_q, 0, name)) break;
    n += (size_t)snprintf(out + n, TEXT - n, " + 0.1 * %s[h]", name);
  }
  snprintf(out + n, TEXT - n, ")");
}

static void with_buffer(fa_gen_expr *x, const char *s, char *out) {
  const int64_t rows = at_least_one(x->p->seqlen_q), keys = at_least_one(x->p->seqlen_k),
                heads = x->p->heads_q;
  const int64_t reach = fa_rng_range(&x->r, 1, 40), longest = rows > keys ? rows : keys;
  char name[16], other[16];
  switch (fa_rng_below(&x->r, 11)) {
  case 9: /* where a buffer says so */
    if (!add_bools(x, 1, keys, 0, name)) break;
    snprintf(out, TEXT, "(%s[kv_idx] ? %s : 0.5 * %s)", name, s, s);
    return;
  case 10:
    if (x->n_captures > 4 || !fa_rng_chance(&x->r, 0.3)) break;
    with_many(x, s, out);
    return;
  case 5: /* one element, read by every pair */
    if (!add_buffer(x, "one", 0, 0, 0, name)) break;
    snprintf(out, TEXT, "(%s * (1.0 + 0.125 * %s))", s, name);
    return;
  case 6: /* an index read from a buffer */
    if (x->n_captures + 2 > FA_MAX_CAPTURES) break;
    add_ints(x, "bucket", keys, reach, false, name);
    add_buffer(x, "by", 1, reach, 0, other);
    snprintf(out, TEXT, "(%s + 0.5 * %s[%s[kv_idx]])", s, other, name);
    return;
  case 7:
    if (!add_documents(x, longest, name)) break;
    snprintf(out, TEXT, "(%s + 0.1 * (%s[q_idx] - %s[kv_idx]))", s, name, name);
    return;
  case 8:
    if (!add_buffer(x, "keys", 2, x->p->batch, keys, name)) break;
    snprintf(out, TEXT, "(%s + %s[b][kv_idx])", s, name);
    return;
  case 0:
    if (!add_buffer(x, "slopes", 1, heads, 0, name)) break;
    snprintf(out, TEXT, "(%s + %.4f * %s[h] * (kv_idx - q_idx))", s, 2.0 / (double)longest, name);
    return;
  case 1:
    if (!add_buffer(x, "table", 2, heads, 2 * reach + 1, name)) break;
    snprintf(out, TEXT, "(%s + %s[h, min(max(q_idx - kv_idx + %lld, 0), %lld)])", s, name, (long long)reach,
             (long long)(2 * reach));
    return;
  case 2:
    if (rows * keys > 100000 || !add_buffer(x, "pair", 2, rows, keys, name)) break;
    snprintf(out, TEXT, "(%s + %s[q_idx][kv_idx])", s, name);
    return;
  case 3:
    if (!add_buffer(x, "scales", 2, x->p->batch, heads, name)) break;
    snprintf(out, TEXT, "(%s * (1.0 + 0.125 * %s[b, h]))", s, name);
    return;
  default:
    if (!add_buffer(x, "row", 1, reach, 0, name)) break;
    snprintf(out, TEXT, "(%s + 0.5 * %s[kv_idx %% %lld])", s, name, (long long)reach);
    return;
  }
  snprintf(out, TEXT, "%s", s);
}

/* Wraps s in one more step. */
static void score_step(fa_gen_expr *x, const char *s, char *out) {
  static const char *const forms[] = {
      "(%s + 0.25)",
      "(%s - 0.01 * abs(q_idx - kv_idx))",
      "(0.5 * %s)",
      "(-%s)",
      "(%s / 1.7)",
      "(q_idx >= kv_idx ? %s : -0.5)",
      "(h %% 2 == 0 ? %s : 0.1 * kv_idx / seqlen_k)",
      "(%s + 0.3 * sin(0.1 * (q_idx - kv_idx)))",
      "max(%s, -1.0)",
      "abs(%s)",
      "cos(%s)",
      "log(1.0 + exp(min(%s, 20.0)))",
      "0.5 * score + (%s > 0.3 ? 0.5 : 0.0)", /* a jump that rounding may decide, so a small one */
      "sqrt(101.0 + min(max(%s, -100.0), 100.0) * score / (1.0 + abs(score)))",
      "min(%s, 3.0 * tanh(score))",
      "(%s + (q_idx + kv_idx + b) %% 5 * 0.1)",
      "(kv_idx %% 3 == 0 ? 0.5 : %s)",
      "(-0.5 * %s)",
      "0.0 * %s + 0.1 * (kv_idx %% 7)",
      "(kv_idx == q_idx ? %s : %s - 1.0 / abs(q_idx - kv_idx))",
  };
  static const double caps[] = {4, 15, 30};
  const int64_t n = (int64_t)(sizeof forms / sizeof *forms), kind = fa_rng_below(&x->r, 3 * n / 2);
  if (kind >= n + 2) {
    with_buffer(x, s, out);
  } else if (kind >= n) {
    const double cap = caps[fa_rng_below(&x->r, 3)];
    snprintf(out, TEXT, "%.1f * tanh(%s / %.1f)", cap, s, cap);
  } else {
    /* the only conversions in a form are %s (twice at most) and %% */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(out, TEXT, forms[kind], s, s);
#pragma GCC diagnostic pop
  }
}

static char *draw_score(fa_gen_expr *x) {
  char text[TEXT] = "score", next[TEXT];
  for (int64_t n = fa_rng_range(&x->r, 0, 4); n > 0 && strlen(text) < TEXT / 4; --n) {
    score_step(x, text, next);
    memcpy(text, next, sizeof text);
  }
  return strdup(text);
}

/* ---- masks ---- */

static void mask_part(fa_gen_expr *x, char *out) {
  const int64_t rows = at_least_one(x->p->seqlen_q), keys = at_least_one(x->p->seqlen_k);
  const int64_t longest = rows > keys ? rows : keys, n = fa_rng_range(&x->r, 0, longest),
                side = fa_rng_range(&x->r, 1, 30);
  char name[16];
  switch (fa_rng_below(&x->r, 14)) {
  case 11: /* padding */
    if (!add_bools(x, 2, x->p->batch, keys, name)) break;
    snprintf(out, TEXT, "%s[b, kv_idx]", name);
    return;
  case 12:
    if (rows * keys > 100000 || !add_bools(x, 2, rows, keys, name)) break;
    snprintf(out, TEXT, "%s[q_idx][kv_idx]", name);
    return;
  case 9: /* fully masked rows */
    snprintf(out, TEXT, "q_idx %% %lld != 1", (long long)side + 1);
    return;
  case 10:
    if (!add_buffer(x, "noise", 1, keys, 0, name)) break;
    x->capture[x->n_captures - 1].grad = false;
    snprintf(out, TEXT, "%s[kv_idx] > -0.5", name);
    return;
  case 0:
    snprintf(out, TEXT, "kv_idx < %lld", (long long)n);
    return;
  case 1:
    snprintf(out, TEXT, "abs(q_idx - kv_idx) <= %lld", (long long)n);
    return;
  case 2:
    snprintf(out, TEXT, "(q_idx - kv_idx) %% %lld == 0", (long long)side);
    return;
  case 3:
    snprintf(out, TEXT, "abs(q_idx / %lld - kv_idx / %lld) <= 2 && abs(q_idx %% %lld - kv_idx %% %lld) <= 2",
             (long long)side, (long long)side, (long long)side, (long long)side);
    return;
  case 4:
    snprintf(out, TEXT, "h %% 2 == 0");
    return;
  case 5:
    snprintf(out, TEXT, "(b + h + q_idx / %lld) %% 3 != 0", (long long)side);
    return;
  case 6:
    snprintf(out, TEXT, "q_idx + seqlen_k - seqlen_q >= kv_idx");
    return;
  case 7:
    if (!add_documents(x, longest, name)) break;
    snprintf(out, TEXT, "%s[q_idx] == %s[kv_idx]", name, name);
    return;
  case 8:
    if (!add_documents(x, longest, name)) break;
    snprintf(out, TEXT, "(q_idx < kv_idx || %s[q_idx - kv_idx] != 1)", name);
    return;
  default:
    break;
  }
  snprintf(out, TEXT, "q_idx >= kv_idx");
}

static char *draw_mask(fa_gen_expr *x) {
  char text[TEXT], part[TEXT / 4], both[TEXT];
  mask_part(x, text);
  for (int64_t n = fa_rng_range(&x->r, 0, 2); n > 0; --n) {
    char longer[TEXT];
    mask_part(x, longer);
    snprintf(part, sizeof part, "%s", longer);
    snprintf(both, sizeof both, fa_rng_chance(&x->r, 0.2) ? "!(%.1000s) || %s" : "(%.1000s) || (%s)", text,
             part);
    if (fa_rng_chance(&x->r, 0.6)) snprintf(both, sizeof both, "(%.1000s) && (%s)", text, part);
    memcpy(text, both, sizeof text);
  }
  return strdup(text);
}

/* ---- the case ---- */

fa_status fa_gen_expressions(fa_gen *g) {
  static const int64_t sizes[] = {16, 32, 64, 64, 128, 128, 48, 96, 80, 192, 256};
  const int64_t n_sizes = (int64_t)(sizeof sizes / sizeof *sizes);
  fa_problem *p = &g->c->problem;
  fa_gen_expr x = {.r = fa_gen_rng(g, FA_GEN_EXPRESSIONS), .p = p};
  const bool mixed = g->rules->mixed;
  if (p->mask_bits.present || p->topk.present) return FA_OK; /* which are not together with these */
  if ((p->family != FA_FLEX && !mixed) || !fa_rng_chance(&x.r, g->rules->expressions)) return FA_OK;
  const bool mask = fa_rng_chance(&x.r, 0.6), score = !mask || fa_rng_chance(&x.r, 0.6);
  if (score && !(p->score_mod = fa_gen_operators(g, FA_EXPR_SCORE_MOD, draw_score(&x)))) return FA_ERR_MEMORY;
  if (mask && !(p->mask_mod = fa_gen_operators(g, FA_EXPR_MASK_MOD, draw_mask(&x)))) return FA_ERR_MEMORY;
  if (x.n_captures > 0) {
    p->captures = malloc((size_t)x.n_captures * sizeof *p->captures);
    if (!p->captures) return FA_ERR_MEMORY;
    memcpy(p->captures, x.capture, (size_t)x.n_captures * sizeof *p->captures);
    p->n_captures = x.n_captures;
  }
  fa_block_sparse *s = &p->block_sparse;
  const bool replaces = s->present && s->source == FA_BLOCKS_DENSITY && fa_rng_chance(&x.r, 0.6);
  if (mask && (replaces || !s->present) && fa_rng_chance(&x.r, 0.7)) {
    *s = (fa_block_sparse){0}; /* a density owns no memory */
    s->present = true;
    s->source = FA_BLOCKS_MASK_MOD;
    s->q_block = sizes[fa_rng_below(&x.r, n_sizes)];
    s->kv_block = sizes[fa_rng_below(&x.r, n_sizes)];
  }
  return fa_problem_complete(p);
}
