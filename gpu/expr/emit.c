/* Emits one function per use of an expression. */
#include "gpu/expr/emit.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char fa_expr_prelude[] =
    "#ifndef FA_EXPR_FN\n"
    "#ifdef __CUDACC__\n"
    "#define FA_EXPR_FN static __device__ __forceinline__ __attribute__((unused))\n"
    "#else\n"
    "#define FA_EXPR_FN static inline __attribute__((unused))\n"
    "#endif\n"
    "#endif\n"
    "#ifdef __CUDACC__\n"
    "#define FA_EXPR_INF __int_as_float(0x7f800000)\n"
    "#else\n"
    "#define FA_EXPR_INF __builtin_inff()\n"
    "#endif\n"
    "FA_EXPR_FN int fa_expr_add(int a, int b) { return (int)((unsigned)a + (unsigned)b); }\n"
    "FA_EXPR_FN int fa_expr_sub(int a, int b) { return (int)((unsigned)a - (unsigned)b); }\n"
    "FA_EXPR_FN int fa_expr_mul(int a, int b) { return (int)((unsigned)a * (unsigned)b); }\n"
    "FA_EXPR_FN int fa_expr_div(int a, int b) { return b == 0 ? 0 : b == -1 ? fa_expr_sub(0, a) : a / b; }\n"
    "FA_EXPR_FN int fa_expr_rem(int a, int b) { return b == 0 || b == -1 ? 0 : a % b; }\n"
    "FA_EXPR_FN int fa_expr_floordiv(int a, int b) {\n"
    "  const int rest = fa_expr_rem(a, b), q = fa_expr_div(a, b);\n"
    "  return rest != 0 && (rest < 0) != (b < 0) ? q - 1 : q;\n"
    "}\n"
    "FA_EXPR_FN int fa_expr_floormod(int a, int b) {\n"
    "  const int rest = fa_expr_rem(a, b);\n"
    "  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;\n"
    "}\n"
    "FA_EXPR_FN int fa_expr_shl(int a, int b) { return (int)((unsigned)a << (b & 31)); }\n"
    "FA_EXPR_FN int fa_expr_shr(int a, int b) { return a >> (b & 31); }\n"
    "FA_EXPR_FN int fa_expr_truncate(float x) {\n"
    "  if (x >= 2147483648.0f) return 2147483647;\n"
    "  if (x <= -2147483648.0f) return -2147483647 - 1;\n"
    "  return x == x ? (int)x : 0;\n"
    "}\n"
    "#ifdef __CUDACC__\n"
    "FA_EXPR_FN float fa_expr_f16(unsigned short h) {\n"
    "  float x;\n"
    "  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(x) : \"h\"(h));\n"
    "  return x;\n"
    "}\n"
    "FA_EXPR_FN float fa_expr_bf16(unsigned short h) { return __int_as_float((int)((unsigned)h << 16)); }\n"
    "#else\n"
    "FA_EXPR_FN float fa_expr_bits(unsigned u) {\n"
    "  float x;\n"
    "  __builtin_memcpy(&x, &u, sizeof x);\n"
    "  return x;\n"
    "}\n"
    "FA_EXPR_FN float fa_expr_f16(unsigned short h) {\n" /* 2^112 makes up for the other bias */
    "  const unsigned sign = (h & 0x8000u) << 16, rest = (h & 0x7fffu) << 13;\n"
    "  if ((h & 0x7c00u) == 0x7c00u) return fa_expr_bits(sign | 0x7f800000u | rest);\n"
    "  const float x = fa_expr_bits(rest) * 5.19229686e33f;\n"
    "  return sign ? -x : x;\n"
    "}\n"
    "FA_EXPR_FN float fa_expr_bf16(unsigned short h) { return fa_expr_bits((unsigned)h << 16); }\n"
    "#endif\n"
    "FA_EXPR_FN float fa_expr_sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }\n"
    "FA_EXPR_FN int fa_expr_abs(int a) { return a < 0 ? fa_expr_sub(0, a) : a; }\n"
    "FA_EXPR_FN int fa_expr_min(int a, int b) { return a < b ? a : b; }\n"
    "FA_EXPR_FN int fa_expr_max(int a, int b) { return a > b ? a : b; }\n"
    "FA_EXPR_FN int fa_expr_index(int a, int n) { return fa_expr_max(0, fa_expr_min(a, n - 1)); }\n"
    "#ifdef __CUDACC__\n"
    /* not inlined: what reduces arguments beyond 2^16 would be there for each of 64 pairs */
    "static __device__ __noinline__ __attribute__((unused)) float fa_expr_sin(float x) { return sinf(x); }\n"
    "static __device__ __noinline__ __attribute__((unused)) float fa_expr_cos(float x) { return cosf(x); }\n"
    "static __device__ __noinline__ __attribute__((unused)) float fa_expr_pow(float x, float y) {\n"
    "  return powf(x, y);\n"
    "}\n"
    "FA_EXPR_FN float fa_fast_turn(float x) {\n" /* minus a multiple of 2 pi */
    "  const float n = rintf(x * 0.159154943f);\n"
    "  return fmaf(n, 1.74845557e-7f, fmaf(n, -6.28318548f, x));\n"
    "}\n"
    "FA_EXPR_FN float fa_fast_sin(float x) {\n"
    "  if (!(fabsf(x) <= 65536.0f)) return fa_expr_sin(x);\n"
    "  asm(\"sin.approx.f32 %0, %1;\" : \"=f\"(x) : \"f\"(fa_fast_turn(x)));\n"
    "  return x;\n"
    "}\n"
    "FA_EXPR_FN float fa_fast_cos(float x) {\n"
    "  if (!(fabsf(x) <= 65536.0f)) return fa_expr_cos(x);\n"
    "  asm(\"cos.approx.f32 %0, %1;\" : \"=f\"(x) : \"f\"(fa_fast_turn(x)));\n"
    "  return x;\n"
    "}\n"
    "FA_EXPR_FN float fa_fast_exp(float x) {\n"
    "  asm(\"ex2.approx.f32 %0, %1;\" : \"=f\"(x) : \"f\"(x * 1.44269504f));\n"
    "  return x;\n"
    "}\n"
    "FA_EXPR_FN float fa_fast_log(float x) {\n"
    "  asm(\"lg2.approx.f32 %0, %1;\" : \"=f\"(x) : \"f\"(x));\n"
    "  return x * 0.693147182f;\n"
    "}\n"
    "FA_EXPR_FN float fa_fast_sqrt(float x) {\n"
    "  asm(\"sqrt.approx.f32 %0, %1;\" : \"=f\"(x) : \"f\"(x));\n"
    "  return x;\n"
    "}\n"
    "FA_EXPR_FN float fa_fast_tanh(float x) {\n"
    "  asm(\"tanh.approx.f32 %0, %1;\" : \"=f\"(x) : \"f\"(x));\n"
    "  return x;\n"
    "}\n"
    "FA_EXPR_FN float fa_fast_div(float x, float y) {\n"
    "  asm(\"div.full.f32 %0, %1, %2;\" : \"=f\"(x) : \"f\"(x), \"f\"(y));\n"
    "  return x;\n"
    "}\n"
    "FA_EXPR_FN float fa_fast_sigmoid(float x) {\n"
    "  asm(\"rcp.approx.f32 %0, %1;\" : \"=f\"(x) : \"f\"(1.0f + fa_fast_exp(-x)));\n"
    "  return x;\n"
    "}\n"
    "#else\n"
    "#define fa_expr_sin sinf\n"
    "#define fa_expr_cos cosf\n"
    "#define fa_expr_pow powf\n"
    "#define fa_fast_sigmoid fa_expr_sigmoid\n"
    "#define fa_fast_sin sinf\n"
    "#define fa_fast_cos cosf\n"
    "#define fa_fast_exp expf\n"
    "#define fa_fast_log logf\n"
    "#define fa_fast_sqrt sqrtf\n"
    "#define fa_fast_tanh tanhf\n"
    "#define fa_fast_div(x, y) ((x) / (y))\n"
    "#endif\n";

typedef struct emitter {
  const fa_expr *e;
  const fa_capture *captures;
  fa_expr_speed speed;
  bool *needed; /* per node */
  char *text;
  size_t n, capacity;
  bool failed;
} emitter;

static void put(emitter *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(emitter *w, const char *format, ...) {
  char part[320];
  va_list args;
  va_start(args, format);
  const int more = vsnprintf(part, sizeof part, format, args);
  va_end(args);
  FA_ASSERT(more >= 0 && (size_t)more < sizeof part);
  if (w->n + (size_t)more + 1 > w->capacity) {
    const size_t capacity = 2 * w->capacity + sizeof part;
    char *grown = w->failed ? NULL : realloc(w->text, capacity);
    if (!grown) {
      w->failed = true;
      return;
    }
    w->text = grown;
    w->capacity = capacity;
  }
  memcpy(w->text + w->n, part, (size_t)more + 1);
  w->n += (size_t)more;
}

/* ---- nodes ---- */

static void put_float(emitter *w, double value) {
  char text[40];
  if (isinf(value)) {
    put(w, "%sFA_EXPR_INF", value < 0 ? "-" : "");
    return;
  }
  snprintf(text, sizeof text, "%.9g", value);
  put(w, "%s%sf", text, strpbrk(text, ".e") ? "" : ".0");
}

/* How an element is stored, and what makes an int or a float of it. */
typedef struct storage {
  const char *type, *before, *after;
} storage;

static storage storage_of(fa_dtype dtype) {
  switch (dtype) {
  case FA_I32:
    return (storage){"int", "", ""};
  case FA_I64:
    return (storage){"long long", "(int)", ""};
  case FA_BOOL:
    return (storage){"unsigned char", "", " != 0"};
  case FA_F16:
    return (storage){"unsigned short", "fa_expr_f16(", ")"};
  case FA_BF16:
    return (storage){"unsigned short", "fa_expr_bf16(", ")"};
  default:
    return (storage){"float", "", ""};
  }
}

/* The sum of the clamped indices times their steps. */
static void put_index(emitter *w, char name, int node, const fa_expr_node *n, const int64_t *step,
                      int64_t span) {
  const fa_capture *c = &w->captures[n->buffer];
  const bool is_small = span <= INT32_MAX;
  put(w, "  const %s %c%d = 0", is_small ? "int" : "long long", name, node);
  for (int k = 0; k < n->n_args; ++k)
    put(w, " + %lld%s * fa_expr_index(x%d, %lld)", (long long)step[k], is_small ? "" : "ll", n->arg[k],
        (long long)c->shape[k]);
  put(w, ";\n");
}

/* Emits the element's row-major index as i<node>, and where its strides are others its place in memory as o<node>, then
 * the value. It is a plain load: if 64 pairs read one element (a slope of their head), the compiler keeps one load,
 * whereas it treats __ldg as volatile and keeps them all. */
static void put_load(emitter *w, int node, const fa_expr_node *n) {
  const fa_capture *c = &w->captures[n->buffer];
  fa_capture dense = *c;
  int64_t step[FA_MAX_CAPTURE_RANK];
  const storage s = storage_of(c->dtype);
  dense.n_strides = 0;
  fa_capture_strides(&dense, step);
  put_index(w, 'i', node, n, step, fa_capture_span(&dense));
  if (c->n_strides) {
    put_index(w, 'o', node, n, c->stride, fa_capture_span(c));
    put(w, "  (void)i%d;\n", node);
  }
  put(w, "  const %s x%d = %s((const %s *)buffer[%d])[%c%d]%s;\n", n->type == FA_EXPR_FLOAT ? "float" : "int",
      node, s.before, s.type, n->buffer, c->n_strides ? 'o' : 'i', node, s.after);
}

/* Names of functions; NULL: written as an operator. */
static const char *function_of(fa_expr_op op, bool is_float, fa_expr_speed speed) {
  static const char *const floats[FA_EXPR_N_OPS] = {[FA_EXPR_ABS] = "fabsf",
                                                    [FA_EXPR_EXP] = "expf",
                                                    [FA_EXPR_LOG] = "logf",
                                                    [FA_EXPR_SQRT] = "sqrtf",
                                                    [FA_EXPR_TANH] = "tanhf",
                                                    [FA_EXPR_SIN] = "fa_expr_sin",
                                                    [FA_EXPR_COS] = "fa_expr_cos",
                                                    [FA_EXPR_FLOOR] = "floorf",
                                                    [FA_EXPR_MIN] = "fminf",
                                                    [FA_EXPR_MAX] = "fmaxf",
                                                    [FA_EXPR_CEIL] = "ceilf",
                                                    [FA_EXPR_ERF] = "erff",
                                                    [FA_EXPR_SIGMOID] = "fa_expr_sigmoid",
                                                    [FA_EXPR_POW] = "fa_expr_pow",
                                                    [FA_EXPR_AS_INT] = "fa_expr_truncate",
                                                    [FA_EXPR_AS_FLOAT] = ""};
  static const char *const ints[FA_EXPR_N_OPS] = {[FA_EXPR_ABS] = "fa_expr_abs",
                                                  [FA_EXPR_MIN] = "fa_expr_min",
                                                  [FA_EXPR_MAX] = "fa_expr_max",
                                                  [FA_EXPR_ADD] = "fa_expr_add",
                                                  [FA_EXPR_SUB] = "fa_expr_sub",
                                                  [FA_EXPR_MUL] = "fa_expr_mul",
                                                  [FA_EXPR_DIV] = "fa_expr_div",
                                                  [FA_EXPR_REM] = "fa_expr_rem",
                                                  [FA_EXPR_FLOORDIV] = "fa_expr_floordiv",
                                                  [FA_EXPR_FLOORMOD] = "fa_expr_floormod",
                                                  [FA_EXPR_SHL] = "fa_expr_shl",
                                                  [FA_EXPR_SHR] = "fa_expr_shr",
                                                  [FA_EXPR_AS_INT] = ""};
  static const char *const fast[FA_EXPR_N_OPS] = {
      [FA_EXPR_EXP] = "fa_fast_exp",   [FA_EXPR_LOG] = "fa_fast_log",        [FA_EXPR_SQRT] = "fa_fast_sqrt",
      [FA_EXPR_TANH] = "fa_fast_tanh", [FA_EXPR_SIN] = "fa_fast_sin",        [FA_EXPR_COS] = "fa_fast_cos",
      [FA_EXPR_DIV] = "fa_fast_div",   [FA_EXPR_SIGMOID] = "fa_fast_sigmoid"};
  if (is_float && speed == FA_EXPR_FAST && fast[op]) return fast[op];
  return is_float ? floats[op] : ints[op];
}

/* The factor that may replace a division: the divisor is a constant, neither tiny nor huge. */
static bool has_reciprocal(const emitter *w, const fa_expr_node *quotient, float *out) {
  if (w->speed != FA_EXPR_FAST || quotient->op != FA_EXPR_DIV || quotient->type != FA_EXPR_FLOAT)
    return false;
  const fa_expr_node *n = &w->e->node[quotient->arg[1]];
  if (n->op == FA_EXPR_TO_FLOAT) n = &w->e->node[n->arg[0]];
  const float divisor = (float)n->value;
  *out = 1 / divisor;
  return n->op == FA_EXPR_CONST && fabsf(divisor) >= 0x1p-100f && fabsf(divisor) <= 0x1p100f;
}

static void put_value(emitter *w, const fa_expr_node *n) {
  const int a = n->arg[0], b = n->arg[1];
  const bool is_float = n->n_args > 0 && w->e->node[a].type == FA_EXPR_FLOAT;
  const char *function = n->n_args > 0 ? function_of(n->op, is_float, w->speed) : NULL;
  float factor;
  if (n->op == FA_EXPR_CONST && n->type == FA_EXPR_FLOAT)
    put_float(w, n->value);
  else if (n->op == FA_EXPR_CONST)
    put(w, "%.0f", n->value);
  else if (n->n_args == 0)
    put(w, "%s", fa_expr_op_text(n->op)); /* a parameter */
  else if (n->op == FA_EXPR_SELECT)
    put(w, "x%d ? x%d : x%d", a, b, n->arg[2]);
  else if (n->op == FA_EXPR_TO_BOOL)
    put(w, "x%d != 0", a);
  else if (n->op == FA_EXPR_TO_INT)
    put(w, "x%d", a);
  else if (n->op == FA_EXPR_TO_FLOAT)
    put(w, "(float)x%d", a);
  else if (n->op == FA_EXPR_NEG && !is_float)
    put(w, "fa_expr_sub(0, x%d)", a);
  else if (has_reciprocal(w, n, &factor)) {
    put(w, "x%d * ", a);
    put_float(w, factor);
  } else if (function && n->n_args == 1)
    put(w, "%s(x%d)", function, a);
  else if (function)
    put(w, "%s(x%d, x%d)", function, a, b);
  else if (n->n_args == 1)
    put(w, "%sx%d", fa_expr_op_text(n->op), a);
  else
    put(w, "x%d %s x%d", a, fa_expr_op_text(n->op), b);
}

static void put_nodes(emitter *w) {
  for (int node = w->e->n - 1; node >= 0; --node) {
    const fa_expr_node *n = &w->e->node[node];
    float factor;
    const int n_args = has_reciprocal(w, n, &factor) ? 1 : n->n_args;
    for (int k = 0; w->needed[node] && k < n_args; ++k) w->needed[n->arg[k]] = true;
  }
  for (int node = 0; node < w->e->n; ++node) {
    const fa_expr_node *n = &w->e->node[node];
    if (!w->needed[node]) continue;
    if (n->op == FA_EXPR_LOAD) {
      put_load(w, node, n);
      continue;
    }
    put(w, "  const %s x%d = ", n->type == FA_EXPR_FLOAT ? "float" : "int", node);
    put_value(w, n);
    put(w, ";\n");
  }
}

/* ---- functions ---- */

static emitter begin(const fa_expr *e, const fa_capture *captures, fa_expr_speed speed) {
  emitter w = {.e = e, .captures = captures, .speed = speed};
  w.needed = calloc((size_t)e->n + 1, sizeof *w.needed);
  w.failed = w.needed == NULL;
  return w;
}

static char *finish(emitter *w) {
  free(w->needed);
  if (!w->failed) return w->text;
  free(w->text);
  return NULL;
}

static void put_head(emitter *w, const char *type, const char *name, bool score, const char *rest) {
  put(w, "FA_EXPR_FN %s ", type);
  put(w,
      "%.128s(%sint b, int h, int q_idx, int kv_idx, int seqlen_q, int seqlen_k, const void *const *buffer",
      name, score ? "float score, " : "");
  put(w, "%s) {\n", rest);
  put(w, "  (void)b, (void)h, (void)q_idx, (void)kv_idx, (void)seqlen_q, (void)seqlen_k, (void)buffer%s;\n",
      score ? ", (void)score" : "");
}

static char *emit_value(const fa_expr *e, const fa_capture *captures, fa_expr_speed speed, const char *type,
                        const char *name, bool score) {
  emitter w = begin(e, captures, speed);
  if (w.failed) return finish(&w);
  w.needed[e->root] = true;
  put_head(&w, type, name, score, "");
  put_nodes(&w);
  put(&w, "  return x%d;\n}\n", e->root);
  return finish(&w);
}

char *fa_expr_emit_score(const fa_expr *e, const fa_capture *captures, fa_expr_speed speed,
                         const char *name) {
  return emit_value(e, captures, speed, "float", name, true);
}

char *fa_expr_emit_mask(const fa_expr *e, const fa_capture *captures, const char *name) {
  return emit_value(e, captures, FA_EXPR_ACCURATE, "int", name, false);
}

char *fa_expr_emit_gradient(const fa_expr_gradient *g, const fa_capture *captures, const bool *wanted,
                            fa_expr_speed speed, const char *name) {
  emitter w = begin(&g->e, captures, speed);
  if (w.failed) return finish(&w);
  w.needed[g->score] = true;
  for (int k = 0; k < g->n_reads; ++k)
    if (wanted[g->e.node[g->read[k].load].buffer])
      w.needed[g->read[k].load] = w.needed[g->read[k].derivative] = true;
  put_head(&w, "float", name, true, ", float *slope, long long *element");
  put(&w, "  (void)slope, (void)element;\n");
  put_nodes(&w);
  for (int k = 0, at = 0; k < g->n_reads; ++k) {
    const int load = g->read[k].load;
    if (!wanted[g->e.node[load].buffer]) continue;
    put(&w, "  slope[%d] = x%d, element[%d] = i%d, (void)x%d;\n", at, g->read[k].derivative, at, load, load);
    ++at;
  }
  put(&w, "  return x%d;\n}\n", g->score);
  return finish(&w);
}
