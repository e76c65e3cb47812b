/* Arbitrary bytes as expressions: what is accepted prints and parses to the same tree, evaluates without a
 * crash on both sides, and differentiates; everything else is rejected with a column and a caret. The first
 * byte: bit 0 mask_mod, bits 1 and 2 how many of four buffers there are. */
#include "fuzz/inputs/fuzzer.h"

#include "cases/expr/ast.h"
#include "gpu/expr/diff.h"
#include "gpu/expr/emit.h"
#include "gpu/ref_f32/expr.h"
#include "ref/mods/expr.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const fa_capture captures[] = {
    {.name = "s", .rank = 1, .shape = {3}, .dtype = FA_F32, .grad = true},
    {.name = "t",
     .rank = 2,
     .shape = {2, 5},
     .n_strides = 2,
     .stride = {1, 2},
     .dtype = FA_BF16,
     .grad = true},
    {.name = "one", .rank = 0, .dtype = FA_F32, .grad = true},
    {.name = "doc", .rank = 1, .shape = {8}, .dtype = FA_I32, .below = 3},
    {.name = "l", .rank = 1, .shape = {8}, .dtype = FA_I64, .below = 3},
    {.name = "m", .rank = 1, .shape = {8}, .dtype = FA_BOOL, .share = 0.5},
};
enum { N_CAPTURES = sizeof captures / sizeof *captures, N_PAIRS = 5 };

/* Made once; a fuzz target may leak them. */
static const fa_tensors *buffers(void) {
  static fa_tensors set;
  if (set.t[FA_T_BUFFER_0].data) return &set;
  for (int k = 0; k < N_CAPTURES; ++k) {
    const int64_t one = 1, *shape = captures[k].rank ? captures[k].shape : &one;
    const int rank = captures[k].rank ? captures[k].rank : 1;
    const fa_tensor_id id = (fa_tensor_id)(FA_T_BUFFER_0 + k);
    const int64_t *stride = captures[k].n_strides ? captures[k].stride : NULL;
    FA_ASSERT(fa_tensors_add(&set, id, captures[k].dtype, rank, shape, stride, 0, NULL) == FA_OK);
    for (int64_t e = 0; e < fa_tensor_count(&set.t[id]); ++e) {
      int64_t index[FA_MAX_RANK];
      fa_tensor_unravel(&set.t[id], e, index);
      fa_tensor_set(&set.t[id], index,
                    !fa_capture_is_float(&captures[k]) ? (double)(e % 3) : (double)(e - 1) / 2);
    }
  }
  return &set;
}

static void check_printing(const fa_expr *e, fa_expr_kind kind, int n_captures) {
  fa_expr again;
  fa_error err = {""};
  char *text = fa_expr_print(e, captures);
  FA_ASSERT(text);
  if (strlen(text) <= FA_EXPR_MAX_BYTES) {
    FA_FUZZ_CHECK(fa_expr_parse(text, strlen(text), kind, captures, n_captures, &again, &err) == FA_OK,
                  "%s\n%s", err.text, text);
    FA_FUZZ_CHECK(fa_expr_equal(e, &again), "another tree comes back from %s", text);
    fa_expr_free(&again);
  }
  free(text);
}

/* If the judge has a value and a bound, f32 must be within it. */
static void check_values(const fa_expr *e, const fa_expr *graph) {
  const double score[N_PAIRS] = {0, 0.5, -1.25, 3, -40};
  const float score_f32[N_PAIRS] = {0, 0.5f, -1.25f, 3, -40};
  fa_ref_expr want;
  fa_f32_expr got;
  FA_ASSERT(fa_ref_expr_init(&want, e, buffers(), NULL) == FA_OK);
  FA_ASSERT(fa_f32_expr_init(&got, graph, buffers(), NULL) == FA_OK);
  const fa_ref_pairs p = {
      .b = 1, .h = 2, .i = 4, .j0 = 2, .n = N_PAIRS, .seqlen_q = 7, .seqlen_k = 9, .score = score};
  const fa_f32_pairs q = {
      .b = 1, .h = 2, .i = 4, .j0 = 2, .n = N_PAIRS, .seqlen_q = 7, .seqlen_k = 9, .score = score_f32};
  fa_ref_expr_eval(&want, &p);
  fa_ref_expr_derive(&want, N_PAIRS);
  fa_f32_expr_eval(&got, &q);
  const bool is_float = e->node[e->root].type == FA_EXPR_FLOAT;
  for (int lane = 0; lane < N_PAIRS; ++lane) {
    const int64_t at = (int64_t)e->root * FA_EXPR_LANES + lane;
    const fa_f32_word word = fa_f32_expr_row(&got, e->root)[lane];
    const double v = is_float ? (double)word.f : word.i, bound = is_float ? want.error[at] : 0;
    char why[256];
    fa_ref_expr_explain(&want, lane, why, sizeof why);
    if (want.fault[at] || (is_float ? bound == INFINITY : want.error[at] > 0)) continue;
    FA_FUZZ_CHECK(v == want.value[at] || fabs(v - want.value[at]) <= bound, "lane %d: %.9g, not %.9g +- %.3g",
                  lane, v, want.value[at], bound);
  }
  fa_ref_expr_free(&want);
  fa_f32_expr_free(&got);
}

static void check_derivatives(const fa_expr *e) {
  static const bool wanted[FA_MAX_CAPTURES] = {true, true, true};
  fa_expr_gradient g;
  FA_ASSERT(fa_expr_differentiate(e, &g, NULL) == FA_OK);
  FA_FUZZ_CHECK(g.e.n <= 16 * e->n + 16, "%d nodes of %d", g.e.n, e->n);
  check_values(e, &g.e);
  char *text = fa_expr_emit_gradient(&g, captures, wanted, FA_EXPR_FAST, "f");
  FA_ASSERT(text);
  free(text);
  fa_expr_gradient_free(&g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  const fa_expr_kind kind = data[0] & 1 ? FA_EXPR_MASK_MOD : FA_EXPR_SCORE_MOD;
  const int n_captures = 4 - (data[0] >> 1 & 3);
  fa_expr e;
  fa_error err = {""};
  char *text = fa_fuzzer_text(data + 1, size - 1);
  const fa_status status = fa_expr_parse(text, size - 1, kind, captures, n_captures, &e, &err);
  if (status == FA_OK) {
    check_printing(&e, kind, n_captures);
    if (kind == FA_EXPR_SCORE_MOD)
      check_derivatives(&e);
    else
      check_values(&e, &e);
    fa_expr_free(&e);
  } else {
    FA_FUZZ_CHECK(status == FA_ERR_INPUT, "status %d", (int)status);
    const bool whole = size - 1 > FA_EXPR_MAX_BYTES;
    FA_FUZZ_CHECK(whole || (strncmp(err.text, "column ", 7) == 0 && strchr(err.text, '^')),
                  "no place in \"%s\"", err.text);
  }
  free(text);
  return 0;
}
