/* One step of derivatives by hand: where the values and errors of a node's arguments are given, what reaches them, and what a chain
 * makes of its factors. */
#include "ref/mods/score_step.h"
#include "tests/support/check.h"

#include <math.h>

enum { MOST = 4 };

/* Nodes in one lane. */
typedef struct tree {
  fa_expr_node node[MOST];
  fa_expr e;
  double value[MOST * FA_EXPR_LANES], error[MOST * FA_EXPR_LANES], derivative[MOST * FA_EXPR_LANES],
      derivative_e[MOST * FA_EXPR_LANES];
  int fault[MOST * FA_EXPR_LANES];
  uint8_t reached[MOST * FA_EXPR_LANES];
  fa_ref_expr x;
} tree;

/* The last of n nodes is the root, and is op of the others. */
static tree *tree_of(fa_expr_op op, int n) {
  static tree t;
  t = (tree){.e = {.node = t.node, .n = n, .root = n - 1}};
  for (int i = 0; i < n - 1; ++i) t.node[i] = (fa_expr_node){.op = FA_EXPR_SCORE, .type = FA_EXPR_FLOAT};
  t.node[n - 1] = (fa_expr_node){.op = op, .type = FA_EXPR_FLOAT, .n_args = n - 1, .arg = {0, 1, 2}};
  t.x = (fa_ref_expr){.e = &t.e,
                      .value = t.value,
                      .error = t.error,
                      .fault = t.fault,
                      .derivative = t.derivative,
                      .derivative_e = t.derivative_e,
                      .reached = t.reached};
  t.derivative[(n - 1) * FA_EXPR_LANES] = 1;
  t.reached[(n - 1) * FA_EXPR_LANES] = FA_REACHED_BY_VALUE;
  return &t;
}

static void set(tree *t, int node, double value, double error) {
  t->value[node * FA_EXPR_LANES] = value, t->error[node * FA_EXPR_LANES] = error;
}

/* To argument k of the root. */
static fa_local step(tree *t, int k) {
  fa_expr_step_lane(&t->x, t->e.root, k, 0);
  return (fa_local){t->derivative[k * FA_EXPR_LANES], t->derivative_e[k * FA_EXPR_LANES]};
}

/* A root's own rounding counts but at 0, and a number that may be 0 has any slope. */
static void test_sqrt(void) {
  tree *t = tree_of(FA_EXPR_SQRT, 2);
  set(t, 0, 1, 0), set(t, 1, 1, 0x1p-20);
  fa_local d = step(t, 0);
  CHECK(d.v == 0.5 && d.e >= 0x1p-21);
  set(t, 0, 0, 1), set(t, 1, 0, INFINITY);
  d = step(t, 0);
  CHECK(d.v == 0 && d.e == INFINITY);
  set(t, 0, 0, 0), set(t, 1, 0, INFINITY);
  CHECK(step(t, 0).v == INFINITY);
}

/* 0 to a power that may be one or another below 0. */
static void test_pow(void) {
  tree *t = tree_of(FA_EXPR_POW, 3);
  set(t, 0, 0, 0), set(t, 1, -1, 0.5), set(t, 2, 0, INFINITY);
  CHECK(step(t, 1).v == INFINITY);
  set(t, 1, 1, 0.5), set(t, 2, 0, 0);
  const fa_local d = step(t, 1);
  CHECK(d.v == 0 && d.e == 0);
}

/* Of a node that may be reached, the argument that its condition surely leaves out is not; the other may be. */
static void test_select(void) {
  tree *t = tree_of(FA_EXPR_SELECT, 4);
  set(t, 0, 1, 0);
  t->reached[3 * FA_EXPR_LANES] = FA_REACHED_UNSURE;
  step(t, 1), step(t, 2);
  CHECK(t->reached[1 * FA_EXPR_LANES] == FA_REACHED_UNSURE &&
        t->reached[2 * FA_EXPR_LANES] == FA_REACHED_NOT);
}

/* Nothing is known behind a node that has no value. */
static void test_fault(void) {
  tree *t = tree_of(FA_EXPR_NEG, 2);
  CHECK(step(t, 0).v == -1 && step(t, 0).e < 1e-6);
  t->fault[1 * FA_EXPR_LANES] = 2;
  CHECK(step(t, 0).e == INFINITY);
}

/* Slopes of all leaves that are the score, with all their errors. */
static void test_two_scores(void) {
  tree *t = tree_of(FA_EXPR_ADD, 3);
  double value, error;
  for (int i = 0; i < 2; ++i) {
    t->reached[i * FA_EXPR_LANES] = FA_REACHED_BY_VALUE;
    t->derivative[i * FA_EXPR_LANES] = 3 - i, t->derivative_e[i * FA_EXPR_LANES] = 0.5 - 0.25 * i;
  }
  fa_mod_slope(&t->x, 0, &value, &error);
  CHECK(value == 5 && error == 0.75);
}

/* A sigmoid that is as good as 0 has a slope that a kernel may flush. */
static void test_sigmoid(void) {
  CHECK(fa_lane_sigmoid_slope(fa_lane_of(0, 0, 0)).e == FA_LANE_TINY);
}

static void test_chain(void) {
  float cap = 1, cap_err = 0;
  fa_mod_chain(-3, 0, &cap, &cap_err);
  CHECK(cap > 3 && cap < 3.00001f && cap_err > 3 * 0x1p-23f && cap_err < 3 * 0x1.001p-23f);
  cap = 1, cap_err = 2;
  fa_mod_chain(-3, 0.5, &cap, &cap_err);
  CHECK_MSG(cap_err > 7.5f && cap_err < 7.5001f, "%g", cap_err);
  cap = 1, cap_err = 0;
  fa_mod_chain(NAN, INFINITY, &cap, &cap_err);
  CHECK(cap == 0 && cap_err == 0x1p50f);
}

static void test_amplifies(void) {
  CHECK(!fa_mod_amplifies(15.5, 1) && !fa_mod_amplifies(16, 1) && fa_mod_amplifies(16.5, 1));
  CHECK(!fa_mod_amplifies(32, 4) && fa_mod_amplifies(32.5, 4) && !fa_mod_amplifies(INFINITY, 1));
}

/* Indices are exact. */
static void test_leaves(void) {
  static const fa_expr_op ops[] = {FA_EXPR_B,      FA_EXPR_H,        FA_EXPR_Q_IDX,
                                   FA_EXPR_KV_IDX, FA_EXPR_SEQLEN_Q, FA_EXPR_SEQLEN_K};
  const fa_ref_pairs p = {.b = 2, .h = 3, .i = 4, .j0 = 5, .n = 1, .seqlen_q = 6, .seqlen_k = 7};
  for (int i = 0; i < 6; ++i) {
    tree *t = tree_of(ops[i], 1);
    const fa_lane x = fa_expr_node_lane(&t->x, &p, 0, 0);
    CHECK(x.v == i + 2 && x.e == 0 && x.fault == 0);
  }
}

/* Before a buffer's first element and behind its last there is none. */
static void test_load(void) {
  float memory[] = {5, 6, 7, 8};
  static fa_tensors in;
  static const double wants[] = {-1, 6, 7, -1};
  tree *t = tree_of(FA_EXPR_LOAD, 2);
  in.t[FA_T_BUFFER_0] =
      (fa_tensor){.dtype = FA_F32, .rank = 1, .shape = {2}, .stride = {1}, .data = (char *)(memory + 1)};
  t->x.in = &in;
  for (int index = -1; index <= 2; ++index) {
    set(t, 0, index, 0);
    const fa_lane x = fa_expr_node_lane(&t->x, NULL, 1, 0);
    if (wants[index + 1] < 0)
      CHECK(x.fault == 2);
    else
      CHECK(x.fault == 0 && x.v == wants[index + 1]);
  }
}

int main(void) {
  test_sqrt();
  test_pow();
  test_select();
  test_fault();
  test_two_scores();
  test_sigmoid();
  test_chain();
  test_amplifies();
  test_leaves();
  test_load();
  return check_done();
}
