/* Expressions as C text: what it looks like, and, if the machine has a C compiler, that it computes bit for
 * bit what the f32 evaluator does, derivatives included; the interpreter of the host's kernels too. */
#include "gpu/expr/emit.h"
#include "gpu/expr/functions.h"
#include "gpu/ref_f32/expr.h"
#include "tests/support/check.h"
#include "tests/support/random_expr.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static bool parse(const char *text, fa_expr_kind kind, fa_expr *e) {
  fa_error err = {""};
  const fa_status status =
      fa_expr_parse(text, strlen(text), kind, random_expr_captures, RANDOM_EXPR_BUFFERS, e, &err);
  CHECK_MSG(status == FA_OK, "%s: %s", text, err.text);
  return status == FA_OK;
}

/* Every line of `lines` (separated by newlines) appears in the text, in this order. */
static void emits_at(fa_expr_speed speed, const char *source, fa_expr_kind kind, const char *body) {
  fa_expr e;
  if (!parse(source, kind, &e)) return;
  char *text = kind == FA_EXPR_MASK_MOD ? fa_expr_emit_mask(&e, random_expr_captures, "f")
                                        : fa_expr_emit_score(&e, random_expr_captures, speed, "f");
  REQUIRE(text);
  const char *begin = strstr(text, ";\n") + 2; /* after the statements that mark parameters as used */
  CHECK_MSG(strcmp(begin, body) == 0, "%s:\n%s", source, text);
  free(text);
  fa_expr_free(&e);
}

static void emits(const char *source, fa_expr_kind kind, const char *body) {
  emits_at(FA_EXPR_ACCURATE, source, kind, body);
}

/* Approximations; a quotient becomes a product if the divisor is an ordinary constant. */
static void test_fast_text(void) {
  emits_at(FA_EXPR_FAST, "exp(score / 4)", FA_EXPR_SCORE_MOD,
           "  const float x0 = score;\n  const float x3 = x0 * 0.25f;\n  const float x4 = fa_fast_exp(x3);\n "
           " return x4;\n}\n");
  emits_at(FA_EXPR_FAST, "score / 0.0 / score", FA_EXPR_SCORE_MOD,
           "  const float x0 = score;\n  const float x1 = 0.0f;\n  const float x2 = fa_fast_div(x0, x1);\n"
           "  const float x3 = score;\n  const float x4 = fa_fast_div(x2, x3);\n  return x4;\n}\n");
  emits_at(FA_EXPR_FAST, "tanh(sqrt(1.0) / 2.0) > 0.1 && 7 / 2 > 3", FA_EXPR_MASK_MOD,
           "  const float x0 = 1.0f;\n  const float x1 = sqrtf(x0);\n  const float x2 = 2.0f;\n"
           "  const float x3 = x1 / x2;\n  const float x4 = tanhf(x3);\n  const float x5 = 0.100000001f;\n"
           "  const int x6 = x4 > x5;\n  const int x7 = 7;\n  const int x8 = 2;\n"
           "  const int x9 = fa_expr_div(x7, x8);\n  const int x10 = 3;\n  const int x11 = x9 > x10;\n"
           "  const int x12 = x6 && x11;\n  return x12;\n}\n");
}

static void test_text(void) {
  emits(
      "20 * tanh(score / 20)", FA_EXPR_SCORE_MOD,
      "  const int x0 = 20;\n  const float x1 = score;\n  const int x2 = 20;\n  const float x3 = (float)x2;\n"
      "  const float x4 = x1 / x3;\n  const float x5 = tanhf(x4);\n  const float x6 = (float)x0;\n"
      "  const float x7 = x6 * x5;\n  return x7;\n}\n");
  emits("q_idx >= kv_idx && doc[q_idx] == 1", FA_EXPR_MASK_MOD,
        "  const int x0 = q_idx;\n  const int x1 = kv_idx;\n  const int x2 = x0 >= x1;\n  const int x3 = "
        "q_idx;\n"
        "  const int i4 = 0 + 1 * fa_expr_index(x3, 256);\n  const int x4 = ((const int "
        "*)buffer[3])[i4];\n"
        "  const int x5 = 1;\n  const int x6 = x4 == x5;\n  const int x7 = x2 && x6;\n  return x7;\n}\n");
  emits("true ? -inf : 0.1", FA_EXPR_SCORE_MOD,
        "  const int x0 = 1;\n  const float x1 = FA_EXPR_INF;\n  const float x2 = -x1;\n"
        "  const float x3 = 0.100000001f;\n  const float x4 = x0 ? x2 : x3;\n  return x4;\n}\n");
  emits("table[h, 2] + 3e38", FA_EXPR_SCORE_MOD,
        "  const int x0 = h;\n  const int x1 = 2;\n"
        "  const int i2 = 0 + 9 * fa_expr_index(x0, 4) + 1 * fa_expr_index(x1, 9);\n"
        "  const float x2 = ((const float *)buffer[1])[i2];\n  const float x3 = 3.00000001e+38f;\n"
        "  const float x4 = x2 + x3;\n  return x4;\n}\n");
}

/* Simplifications leave a constant derivative a constant. */
static void test_simple(void) {
  fa_expr e;
  fa_expr_gradient g;
  if (!parse("score * 1 + slopes[h] * (kv_idx - q_idx) - 0.5", FA_EXPR_SCORE_MOD, &e)) return;
  REQUIRE(fa_expr_differentiate(&e, &g, NULL) == FA_OK);
  CHECK(g.n_reads == 1 && g.e.node[g.score].op == FA_EXPR_TO_FLOAT); /* the factor 1 of score */
  CHECK(g.e.node[g.read[0].derivative].op == FA_EXPR_TO_FLOAT);      /* kv_idx - q_idx */
  fa_expr_gradient_free(&g);
  fa_expr_free(&e);
  if (!parse("floor(score) + 2.0 * 3.0", FA_EXPR_SCORE_MOD, &e)) return;
  REQUIRE(fa_expr_differentiate(&e, &g, NULL) == FA_OK);
  CHECK(g.e.node[g.score].op == FA_EXPR_CONST && g.e.node[g.score].value == 0);
  fa_expr_gradient_free(&g);
  fa_expr_free(&e);
}

/* ---- compiled ---- */

enum { N_EXPRESSIONS = 150, MOST_READS = 512 };

typedef float score_fn(float, int, int, int, int, int, int, const void *const *);
typedef int mask_fn(int, int, int, int, int, int, const void *const *);
typedef float gradient_fn(float, int, int, int, int, int, int, const void *const *, float *, long long *);

typedef struct subject {
  fa_expr score, mask;
  fa_expr_gradient gradient;
  char *text;
} subject;

static subject subjects[N_EXPRESSIONS];
static const bool wanted[FA_MAX_CAPTURES] = {true, false, true};

static void put_text(FILE *f, char *text) {
  REQUIRE(text);
  fputs(text, f);
  free(text);
}

static void make(fa_rng *r, int k, FILE *f) {
  char text[16384], name[32];
  subject *s = &subjects[k];
  random_expr_score(r, 1 + k % 6, k % 2 == 0, text, sizeof text);
  REQUIRE(parse(text, FA_EXPR_SCORE_MOD, &s->score));
  s->text = strdup(text);
  random_expr_mask(r, 1 + k % 6, text, sizeof text);
  REQUIRE(parse(text, FA_EXPR_MASK_MOD, &s->mask));
  REQUIRE(fa_expr_differentiate(&s->score, &s->gradient, NULL) == FA_OK && s->gradient.n_reads <= MOST_READS);
  snprintf(name, sizeof name, "score_%d", k);
  put_text(f, fa_expr_emit_score(&s->score, random_expr_captures, FA_EXPR_ACCURATE, name));
  snprintf(name, sizeof name, "mask_%d", k);
  put_text(f, fa_expr_emit_mask(&s->mask, random_expr_captures, name));
  snprintf(name, sizeof name, "gradient_%d", k);
  put_text(f, fa_expr_emit_gradient(&s->gradient, random_expr_captures, wanted, FA_EXPR_ACCURATE, name));
}

static bool same(float a, float b) {
  return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b)) || (a == 0 && b == 0);
}

/* The results of all for one pair. */
static void compare_interpreter(const subject *s, const fa_flex_functions *f, const fa_flex_pair *at,
                                float score, const fa_f32_expr *x, const fa_f32_expr *m, int lane) {
  static fa_flex_read read[FA_FLEX_MAX_READS];
  const float got = f->score(f->self, score, at), want = fa_f32_expr_row(x, s->score.root)[lane].f;
  CHECK_MSG(same(got, want), "%s: interpreted %.9g, not %.9g", s->text, got, want);
  CHECK(f->mask(f->self, at) == (fa_f32_expr_row(m, s->mask.root)[lane].i != 0));
  const float d = f->derivative(f->self, score, at, read);
  CHECK_MSG(same(d, fa_f32_expr_row(x, s->gradient.score)[lane].f), "%s: slope %.9g", s->text, d);
  int n = 0;
  for (int r = 0; r < s->gradient.n_reads; ++r) {
    const fa_expr_read *want_read = &s->gradient.read[r];
    const int buffer = s->gradient.e.node[want_read->load].buffer;
    if (!wanted[buffer]) continue;
    CHECK(n < f->n_reads && read[n].buffer == buffer);
    CHECK_MSG(same(read[n].derivative, fa_f32_expr_row(x, want_read->derivative)[lane].f), "%s: read %d",
              s->text, r);
    CHECK(read[n].element == x->element[(int64_t)want_read->load * FA_F32_PAIRS + lane]);
    ++n;
  }
  CHECK(n == f->n_reads);
}

static void compare(const subject *s, void *library, int k, const fa_tensors *set, const fa_f32_pairs *p) {
  const void *buffer[FA_MAX_CAPTURES] = {NULL};
  char name[3][32];
  for (int i = 0; i < RANDOM_EXPR_BUFFERS; ++i) buffer[i] = set->t[FA_T_BUFFER_0 + i].data;
  snprintf(name[0], sizeof name[0], "score_%d", k);
  snprintf(name[1], sizeof name[1], "mask_%d", k);
  snprintf(name[2], sizeof name[2], "gradient_%d", k);
  score_fn *score = (score_fn *)dlsym(library, name[0]);
  mask_fn *mask = (mask_fn *)dlsym(library, name[1]);
  gradient_fn *gradient = (gradient_fn *)dlsym(library, name[2]);
  REQUIRE(score && mask && gradient);
  fa_f32_expr x, m;
  REQUIRE(fa_f32_expr_init(&x, &s->gradient.e, set, NULL) == FA_OK &&
          fa_f32_expr_init(&m, &s->mask, set, NULL) == FA_OK);
  fa_f32_expr_eval(&x, p);
  fa_f32_expr_eval(&m, p);
  fa_flex_interpreter *interpreter;
  REQUIRE(fa_flex_interpreter_make(&s->score, &s->mask, random_expr_captures, RANDOM_EXPR_BUFFERS, buffer,
                                   wanted, &interpreter, NULL) == FA_OK);
  for (int lane = 0; lane < p->n; ++lane) {
    float derivative[MOST_READS];
    long long element[MOST_READS];
    const int b = (int)p->b, h = (int)p->h, i = (int)p->i, j = (int)p->j0 + lane, sq = (int)p->seqlen_q,
              sk = (int)p->seqlen_k, root = s->score.root;
    const float got = score(p->score[lane], b, h, i, j, sq, sk, buffer),
                want = fa_f32_expr_row(&x, root)[lane].f;
    CHECK_MSG(same(got, want), "%s: %.9g, not %.9g", s->text, got, want);
    CHECK(mask(b, h, i, j, sq, sk, buffer) == fa_f32_expr_row(&m, s->mask.root)[lane].i);
    const float d = gradient(p->score[lane], b, h, i, j, sq, sk, buffer, derivative, element);
    CHECK_MSG(same(d, fa_f32_expr_row(&x, s->gradient.score)[lane].f), "%s: slope %.9g", s->text, d);
    for (int r = 0, at = 0; r < s->gradient.n_reads; ++r) {
      const fa_expr_read *read = &s->gradient.read[r];
      if (!wanted[s->gradient.e.node[read->load].buffer]) continue;
      CHECK_MSG(same(derivative[at], fa_f32_expr_row(&x, read->derivative)[lane].f), "%s: read %d", s->text,
                r);
      CHECK(element[at] == x.element[(int64_t)read->load * FA_F32_PAIRS + lane]);
      ++at;
    }
    compare_interpreter(s, fa_flex_interpreter_functions(interpreter), &(fa_flex_pair){b, h, i, j, sq, sk},
                        p->score[lane], &x, &m, lane);
  }
  fa_flex_interpreter_free(interpreter);
  fa_f32_expr_free(&x);
  fa_f32_expr_free(&m);
}

static void test_compiled(const char *folder) {
  char path[128], command[512], so[128];
  fa_rng r = fa_rng_make(31, 0);
  fa_tensors set;
  if (system("command -v cc >/dev/null 2>&1") != 0) {
    puts("no C compiler here: the text is not compiled");
    return;
  }
  snprintf(path, sizeof path, "%s/emitted.c", folder);
  snprintf(so, sizeof so, "%s/emitted.so", folder);
  FILE *f = fopen(path, "w");
  REQUIRE(f);
  fprintf(f, "#include <math.h>\n#define FA_EXPR_FN\n%s", fa_expr_prelude);
  for (int k = 0; k < N_EXPRESSIONS; ++k) make(&r, k, f);
  fclose(f);
  snprintf(command, sizeof command,
           "cc -std=gnu11 -O0 -Wall -Werror -ffp-contract=off -shared -fPIC -o %s %s -lm", so, path);
  CHECK_MSG(system(command) == 0, "%s", command);
  void *library = dlopen(so, RTLD_NOW);
  REQUIRE(library);
  random_expr_tensors(&r, &set);
  for (int k = 0; k < N_EXPRESSIONS; ++k) {
    float score[16];
    for (int lane = 0; lane < 16; ++lane)
      score[lane] = lane == 0 ? 0 : (float)fa_rng_range(&r, -4000, 4000) / 1000;
    const fa_f32_pairs p = {.b = 1,
                            .h = k % RANDOM_EXPR_HEADS,
                            .i = fa_rng_below(&r, 300),
                            .j0 = fa_rng_below(&r, 300),
                            .n = 16,
                            .seqlen_q = 200,
                            .seqlen_k = 232,
                            .score = score};
    compare(&subjects[k], library, k, &set, &p);
    fa_expr_free(&subjects[k].score);
    fa_expr_free(&subjects[k].mask);
    fa_expr_gradient_free(&subjects[k].gradient);
    free(subjects[k].text);
  }
  fa_tensors_free(&set);
  dlclose(library);
  unlink(path);
  unlink(so);
}

int main(void) {
  char folder[] = "/tmp/fa-test-expr-XXXXXX";
  test_text();
  test_fast_text();
  test_simple();
  REQUIRE(mkdtemp(folder));
  test_compiled(folder);
  rmdir(folder);
  return check_done();
}
