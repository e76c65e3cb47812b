#include "tests/support/random_expr.h"

#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

const fa_capture random_expr_captures[RANDOM_EXPR_BUFFERS] = {
    {.name = "slopes", .rank = 1, .shape = {RANDOM_EXPR_HEADS}, .dtype = FA_F32, .grad = true},
    {.name = "table", .rank = 2, .shape = {RANDOM_EXPR_HEADS, 9}, .dtype = FA_F32, .grad = true},
    {.name = "one", .rank = 0, .dtype = FA_F32, .grad = true},
    {.name = "doc", .rank = 1, .shape = {256}, .dtype = FA_I32, .below = 3},
    {.name = "long_", .rank = 1, .shape = {256}, .n_strides = 1, .stride = {2}, .dtype = FA_I64, .below = 5},
    {.name = "keep",
     .rank = 2,
     .shape = {RANDOM_EXPR_HEADS, 256},
     .n_strides = 2,
     .stride = {1, RANDOM_EXPR_HEADS},
     .dtype = FA_BOOL,
     .share = 0.5},
    {.name = "turned",
     .rank = 2,
     .shape = {RANDOM_EXPR_HEADS, 9},
     .n_strides = 2,
     .stride = {1, RANDOM_EXPR_HEADS},
     .dtype = FA_BF16,
     .grad = true},
    {.name = "spread",
     .rank = 2,
     .shape = {2, 9},
     .n_strides = 2,
     .stride = {0, 1},
     .dtype = FA_F16,
     .grad = true},
};

typedef struct writer {
  fa_rng *r;
  bool mild, score;
  char *text;
  size_t n, size;
} writer;

static void put(writer *w, const char *part) {
  const size_t more = strlen(part);
  FA_ASSERT(w->n + more + 1 < w->size);
  memcpy(w->text + w->n, part, more + 1);
  w->n += more;
}

static int below(writer *w, int n) {
  return (int)fa_rng_below(w->r, n);
}

static void put_int(writer *w, int depth);
static void put_float(writer *w, int depth);
static void put_bool(writer *w, int depth);

static void put_pair(writer *w, const char *before, void (*x)(writer *, int), const char *between,
                     void (*y)(writer *, int), const char *after, int depth) {
  put(w, before);
  x(w, depth - 1);
  put(w, between);
  y(w, depth - 1);
  put(w, after);
}

static void put_number(writer *w) {
  char text[32];
  snprintf(text, sizeof text, "%.3f", 0.05 + 2 * (double)below(w, 1000) / 1000);
  put(w, text);
}

static void put_int(writer *w, int depth) {
  static const char *const leaves[] = {
      "b", "h", "q_idx", "kv_idx",      "seqlen_q",   "seqlen_k",         "1",
      "2", "7", "37",    "doc[kv_idx]", "doc[q_idx]", "(q_idx - kv_idx)", "long_[kv_idx]"};
  static const char *const operators[] = {" + ", " - ", " & ", " * ",  " / ",
                                          " % ", " ^ ", " | ", " >> ", " << "};
  static const char *const floors[] = {"floordiv(", "floormod("};
  if (depth <= 0 || below(w, 3) == 0) {
    put(w, leaves[below(w, sizeof leaves / sizeof *leaves)]);
    return;
  }
  switch (below(w, 8)) {
  case 3:
    if (w->mild) break;
    put_pair(w, floors[below(w, 2)], put_int, ", ", put_int, ")", depth);
    return;
  case 4:
    put(w, "~");
    put_int(w, depth - 1);
    return;
  case 5:
    if (!w->score || w->mild) break;
    put(w, "int(");
    put_float(w, depth - 1);
    put(w, ")");
    return;
  case 0:
    put_pair(w, "min(", put_int, ", ", put_int, ")", depth);
    return;
  case 1:
    put_pair(w, "(", put_bool, " ? 3 : ", put_int, ")", depth);
    return;
  case 2:
    put(w, "abs(");
    put_int(w, depth - 1);
    put(w, ")");
    return;
  default:
    break;
  }
  put_pair(w, "(", put_int, operators[below(w, w->mild ? 3 : 10)], put_int, ")", depth);
}

static void put_bool(writer *w, int depth) {
  static const char *const compare[] = {" < ", " <= ", " > ", " >= ", " == ", " != "};
  const int kind = below(w, 5);
  if (depth > 1 && kind < 2) {
    static const char *const logical[] = {" && ", " || ", " & ", " | ", " ^ "};
    put_pair(w, "(", put_bool, logical[below(w, 5)], put_bool, ")", depth);
  } else if (depth > 1 && kind == 2) {
    put(w, below(w, 2) ? "!" : "~");
    put_bool(w, depth - 1);
  } else if (kind == 3 && w->score) {
    put_pair(w, "(", put_float, compare[below(w, 4)], put_float, ")", depth);
  } else if (kind == 4 && below(w, 2)) {
    put(w, "keep[h, kv_idx]");
  } else {
    put_pair(w, "(", put_int, compare[below(w, 6)], put_int, ")", depth);
  }
}

static void put_load(writer *w) {
  static const char *const loads[] = {"slopes[h]",
                                      "table[h, abs(q_idx - kv_idx) % 9]",
                                      "table[h][kv_idx % 9]",
                                      "one",
                                      "turned[h, kv_idx % 9]",
                                      "spread[q_idx % 2, abs(q_idx - kv_idx) % 9]",
                                      "slopes[(h + 1) % 4]",
                                      "slopes[kv_idx]"};
  put(w, loads[below(w, w->mild ? 7 : 8)]);
}

/* If mild, arguments keep exp small and logarithms and roots away from 0. */
static void put_function(writer *w, int depth) {
  enum { N_OPEN = 12, TWO_CLOSE = 8 };
  static const char *const open[N_OPEN] = {"tanh(",  "sin(",     "cos(",  "abs(", "floor(", "erf(",
                                           "float(", "sigmoid(", "ceil(", "exp(", "log(",   "sqrt("};
  static const char *const mild[N_OPEN] = {
      "tanh(",  "sin(",     "cos(",      "abs(",           "tanh(",           "erf(",
      "float(", "sigmoid(", "exp(tanh(", "log(2.5 + sin(", "sqrt(1.5 + cos(", "exp(erf("};
  const int k = below(w, N_OPEN);
  put(w, w->mild ? mild[k] : open[k]);
  put_float(w, depth - 1);
  put(w, w->mild && k >= TWO_CLOSE ? "))" : ")");
}

static void put_power(writer *w, int depth) {
  static const char *const exponents[] = {"2.0", "0.5", "-1.5", "3", "1.0 + 0.5 * sin(score)", "0.0"};
  put(w, w->mild ? "pow(1.25 + tanh(" : "pow(");
  put_float(w, depth - 1);
  put(w, w->mild ? "), " : ", ");
  put(w, exponents[below(w, 6)]);
  put(w, ")");
}

static void put_float(writer *w, int depth) {
  static const char *const operators[] = {" + ", " + ", " - ", " * "};
  if (depth <= 0 || below(w, 5) == 0) {
    const int leaf = below(w, 5);
    if (leaf == 0) put_number(w);
    if (leaf == 1) put_load(w);
    if (leaf > 1) put(w, "score");
    return;
  }
  const int kind = below(w, 10);
  switch (kind) {
  case 9:
    put_power(w, depth);
    return;
  case 0:
  case 1:
  case 2:
  case 3:
    put_pair(w, "(", put_float, operators[kind], put_float, ")", depth);
    return;
  case 4:
    put_pair(w, "(", put_float, w->mild ? " / (2.0 + abs(" : " / ", put_float, w->mild ? ")))" : ")", depth);
    return;
  case 5:
    put_pair(w, below(w, 2) ? "min(" : "max(", put_float, ", ", put_float, ")", depth);
    return;
  case 6:
    put(w, "(");
    put_bool(w, depth - 1);
    put_pair(w, " ? ", put_float, " : ", put_float, ")", depth);
    return;
  case 7:
    put_pair(w, "(", put_float, " + 0.01 * ", put_int, ")", depth);
    return;
  default:
    put_function(w, depth);
  }
}

void random_expr_score(fa_rng *r, int depth, bool mild, char *text, size_t size) {
  writer w = {.r = r, .mild = mild, .score = true, .text = text, .size = size};
  put_float(&w, depth);
}

void random_expr_mask(fa_rng *r, int depth, char *text, size_t size) {
  writer w = {.r = r, .mild = true, .text = text, .size = size};
  put_bool(&w, depth);
}

void random_expr_tensors(fa_rng *r, fa_tensors *set) {
  memset(set, 0, sizeof *set);
  for (int k = 0; k < RANDOM_EXPR_BUFFERS; ++k) {
    const fa_capture *c = &random_expr_captures[k];
    const fa_tensor_id id = (fa_tensor_id)(FA_T_BUFFER_0 + k);
    const int64_t one = 1;
    REQUIRE(fa_tensors_add(set, id, c->dtype, c->rank ? c->rank : 1, c->rank ? c->shape : &one,
                           c->n_strides ? c->stride : NULL, 0, NULL) == FA_OK);
    for (int64_t e = 0; e < fa_tensor_count(&set->t[id]); ++e) {
      int64_t index[FA_MAX_RANK];
      fa_tensor_unravel(&set->t[id], e, index);
      fa_tensor_set(&set->t[id], index,
                    c->dtype == FA_BOOL    ? (double)fa_rng_below(r, 2)
                    : fa_capture_is_int(c) ? (double)fa_rng_below(r, c->below)
                                           : (double)(float)fa_rng_range(r, -2000, 2000) / 1024);
    }
  }
}
