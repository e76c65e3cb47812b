/* The judge with the reference's real bounds: a perfect kernel passes, and a perfect kernel for a slightly
 * different problem fails. "Perfect" means exact values rounded once to the output's type. */
#include "cases/data/build.h"
#include "cases/recipe/case.h"
#include "ref/compare/verdict.h"
#include "ref/reference.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

typedef struct trial {
  const fa_problem *p;
  fa_tensors set; /* inputs as built; outputs of the imagined kernel */
  fa_profile profile;
  fa_wants forward, backward; /* with bounds */
} trial;

static const fa_tensor_id forward_ids[] = {FA_T_O, FA_T_LSE};
static const fa_tensor_id backward_ids[] = {FA_T_DQ, FA_T_DK, FA_T_DV, FA_T_DBIAS};

/* Stores the values of some problem in the outputs. */
static void store(fa_tensors *set, const fa_wants *wants, const fa_tensor_id *ids, int n) {
  for (int k = 0; k < n; ++k) {
    const fa_want *w = &wants->t[ids[k]];
    for (int64_t e = 0; e < w->n; ++e) {
      int64_t at[FA_MAX_RANK];
      fa_tensor_unravel(&set->t[ids[k]], e, at);
      fa_tensor_set(&set->t[ids[k]], at, w->value[e]);
    }
  }
}

static void run_forward(const fa_problem *p, const trial *t, const fa_profile *profile, fa_wants *out) {
  const fa_ref_options opt = {.n_threads = 2, .generic = true, .profile = profile};
  REQUIRE(fa_ref_forward(p, &t->set, &opt, out, NULL) == FA_OK);
}
static void run_backward(const fa_problem *p, const trial *t, const fa_profile *profile,
                         const fa_wants *forward, fa_wants *out) {
  const fa_ref_options opt = {.n_threads = 2, .generic = true, .profile = profile};
  REQUIRE(fa_ref_backward(p, &t->set, &t->set.t[FA_T_O], &t->set.t[FA_T_LSE], forward, &opt, out, NULL) ==
          FA_OK);
}

static void trial_init(trial *t, const fa_case *c, const char *profile) {
  fa_error err = {""};
  *t = (trial){.p = &c->problem, .profile = fa_profile_get(profile, c->problem.dtype)};
  const fa_status status = fa_case_build(c, &t->set, &err);
  CHECK_MSG(status == FA_OK, "%s", err.text);
  REQUIRE(status == FA_OK);
  run_forward(t->p, t, &t->profile, &t->forward);
  store(&t->set, &t->forward, forward_ids, 2);
  run_backward(t->p, t, &t->profile, &t->forward, &t->backward);
  store(&t->set, &t->backward, backward_ids, 4);
}

static void trial_free(trial *t) {
  fa_wants_free(&t->forward);
  fa_wants_free(&t->backward);
  fa_tensors_free(&t->set);
}

static fa_verdict judge(trial *t, fa_tensor_id id) {
  const fa_compare_options opt = {.generic = true, .profile = &t->profile};
  const fa_want *w = id == FA_T_O || id == FA_T_LSE ? &t->forward.t[id] : &t->backward.t[id];
  fa_verdict v;
  fa_error err = {""};
  const fa_status status = fa_compare_tensor(id, t->p, &t->set, w, &t->set.t[id], &opt, &v, &err);
  CHECK_MSG(status == FA_OK, "%s", err.text);
  return v;
}

static bool any_fails(trial *t, const fa_tensor_id *ids, int n, char *where) {
  for (int k = 0; k < n; ++k) {
    const fa_verdict v = judge(t, ids[k]);
    if (v.fail) return snprintf(where, 300, "%s: %s", fa_tensor_id_name(ids[k]), v.where), true;
  }
  return false;
}

/* ---- scenes ---- */

static fa_case scene_plain(fa_dtype dtype) {
  fa_case c;
  REQUIRE(fa_case_init(&c) == FA_OK);
  fa_problem *p = &c.problem;
  p->dtype = dtype;
  p->batch = 2;
  p->heads_q = 4;
  p->heads_kv = 2;
  p->seqlen_q = 80;
  p->seqlen_k = 100;
  p->head_dim = p->head_dim_v = 64;
  p->scale = 0.125;
  return c;
}
static fa_case scene_causal(fa_dtype dtype) {
  fa_case c = scene_plain(dtype);
  c.problem.mask.type = FA_MASK_CAUSAL;
  return c;
}
static fa_case scene_window(fa_dtype dtype) {
  fa_case c = scene_plain(dtype);
  c.problem.mask = (fa_mask){.type = FA_MASK_WINDOW, .align = FA_ALIGN_BOTTOM_RIGHT, .left = 33, .right = 12};
  return c;
}
static fa_case scene_long(fa_dtype dtype) {
  fa_case c = scene_plain(dtype);
  c.problem.batch = 1;
  c.problem.heads_q = c.problem.heads_kv = 1;
  c.problem.seqlen_q = 64;
  c.problem.seqlen_k = 3000;
  return c;
}
static fa_case scene_dropout(fa_dtype dtype) {
  fa_case c = scene_causal(dtype);
  c.problem.dropout = (fa_dropout){0.2, 1234, 40};
  return c;
}
static fa_case scene_bias(fa_dtype dtype) {
  fa_case c = scene_plain(dtype);
  fa_problem_set_family(&c.problem, FA_MEMEFF);
  c.problem.bias = (fa_bias){.present = true, .grad = true, .per_head = true, .per_query = true};
  c.problem.softcap = 3;
  return c;
}
static fa_case scene_alibi(fa_dtype dtype) {
  fa_case c = scene_causal(dtype);
  fa_alibi *a = &c.problem.alibi;
  *a = (fa_alibi){.present = true, .standard = true, .n = 4, .slopes = malloc(4 * sizeof(float))};
  fa_alibi_standard(4, a->slopes);
  return c;
}

typedef fa_case (*scene)(fa_dtype dtype);
static const scene scenes[] = {scene_plain,   scene_causal, scene_window, scene_long,
                               scene_dropout, scene_bias,   scene_alibi};
enum { N_SCENES = sizeof scenes / sizeof *scenes };

/* ---- mutants: what the kernel computes instead, as a change of the problem or of what it reads ---- */

typedef void (*mutation)(fa_problem *p, fa_tensors *in);
#define UNUSED(x) ((void)(x))

static void drop_last_key(fa_problem *p, fa_tensors *in) {
  UNUSED(in);
  REQUIRE(fa_int32_array_set(&p->seqused_k, NULL, p->batch) == FA_OK);
  for (int64_t b = 0; b < p->batch; ++b) p->seqused_k.v[b] = (int32_t)p->seqlen_k - 1;
  if (p->mask.type == FA_MASK_NONE) return;
  ++p->mask.right; /* bottom-right edges stay where they were */
  --p->mask.left;
}
static void widen_right(fa_problem *p, fa_tensors *in) {
  UNUSED(in);
  const bool causal = p->mask.type == FA_MASK_CAUSAL;
  p->mask = (fa_mask){.type = FA_MASK_WINDOW,
                      .align = FA_ALIGN_BOTTOM_RIGHT,
                      .left = p->mask.left,
                      .right = causal ? 1 : p->mask.right + 1};
}
static void lose_diagonal(fa_problem *p, fa_tensors *in) { /* one key less moves the bottom-right corner */
  UNUSED(in);
  REQUIRE(fa_int32_array_set(&p->seqused_k, NULL, p->batch) == FA_OK);
  for (int64_t b = 0; b < p->batch; ++b) p->seqused_k.v[b] = (int32_t)p->seqlen_k - 1;
}
static void top_left(fa_problem *p, fa_tensors *in) {
  UNUSED(in), p->mask.align = FA_ALIGN_TOP_LEFT;
}
static void left_short(fa_problem *p, fa_tensors *in) {
  UNUSED(in), --p->mask.left;
}
static void left_long(fa_problem *p, fa_tensors *in) {
  UNUSED(in), ++p->mask.left;
}
static void right_short(fa_problem *p, fa_tensors *in) {
  UNUSED(in), --p->mask.right;
}
static void no_mask(fa_problem *p, fa_tensors *in) {
  UNUSED(in),
      p->mask = (fa_mask){.type = FA_MASK_NONE, .align = FA_ALIGN_BOTTOM_RIGHT, .left = -1, .right = -1};
}
static void scale_of_128(fa_problem *p, fa_tensors *in) {
  UNUSED(in), p->scale = fa_default_scale(128);
}
static void scale_off_a_little(fa_problem *p, fa_tensors *in) {
  UNUSED(in), p->scale *= 1.0001;
}
static void other_seed(fa_problem *p, fa_tensors *in) {
  UNUSED(in), ++p->dropout.seed;
}
static void other_offset(fa_problem *p, fa_tensors *in) {
  UNUSED(in), p->dropout.offset += 32;
}
static void no_dropout(fa_problem *p, fa_tensors *in) {
  UNUSED(in), p->dropout.p = 0;
}
static void no_softcap(fa_problem *p, fa_tensors *in) {
  UNUSED(in), p->softcap = 0;
}
static void no_bias(fa_problem *p, fa_tensors *in) {
  fa_tensor *t = &in->t[FA_T_BIAS]; /* dBias stays an output */
  UNUSED(p);
  for (int64_t e = 0; e < fa_tensor_count(t); ++e) {
    int64_t at[FA_MAX_RANK];
    fa_tensor_unravel(t, e, at);
    fa_tensor_set(t, at, 0);
  }
}
static void bias_of_head_0(fa_problem *p, fa_tensors *in) {
  UNUSED(p), in->t[FA_T_BIAS].stride[1] = 0;
}
static void bias_of_row_0(fa_problem *p, fa_tensors *in) {
  UNUSED(p), in->t[FA_T_BIAS].stride[2] = 0;
}
static void slope_sign(fa_problem *p, fa_tensors *in) {
  for (int64_t h = 0; h < p->heads_q; ++h) {
    int64_t at[FA_MAX_RANK] = {h};
    fa_tensor_set(&in->t[FA_T_ALIBI_SLOPES], at, -fa_tensor_get(&in->t[FA_T_ALIBI_SLOPES], at));
  }
}
static void no_alibi(fa_problem *p, fa_tensors *in) {
  UNUSED(in), p->alibi.present = false;
}
static void reverse_heads(fa_tensor *t) {
  t->data += (t->shape[2] - 1) * t->stride[2] * (int64_t)fa_dtype_size(t->dtype);
  t->stride[2] *= -1;
}
static void k_of_other_head(fa_problem *p, fa_tensors *in) {
  UNUSED(p), reverse_heads(&in->t[FA_T_K]);
}
static void v_of_other_head(fa_problem *p, fa_tensors *in) {
  UNUSED(p), reverse_heads(&in->t[FA_T_V]);
}
static void v_of_sequence_0(fa_problem *p, fa_tensors *in) {
  UNUSED(p), in->t[FA_T_V].stride[0] = 0;
}
static void last_key_twice(fa_problem *p, fa_tensors *in) { /* an index clamped one too early */
  for (int k = FA_T_K; k <= FA_T_V; ++k)
    for (int64_t e = 0; e < p->batch * p->heads_kv * p->head_dim; ++e) {
      const int64_t d = e % p->head_dim, h = e / p->head_dim % p->heads_kv, b = e / p->head_dim / p->heads_kv;
      int64_t from[FA_MAX_RANK] = {b, p->seqlen_k - 2, h, d}, to[FA_MAX_RANK] = {b, p->seqlen_k - 1, h, d};
      fa_tensor_set(&in->t[k], to, fa_tensor_get(&in->t[k], from));
    }
}
static void zero_o(fa_problem *p, fa_tensors *in) { /* delta missing */
  fa_tensor *t = &in->t[FA_T_O];
  UNUSED(p);
  for (int64_t e = 0; e < fa_tensor_count(t); ++e) {
    int64_t at[FA_MAX_RANK];
    fa_tensor_unravel(t, e, at);
    fa_tensor_set(t, at, 0);
  }
}
static void o_of_other_head(fa_problem *p, fa_tensors *in) {
  UNUSED(p), reverse_heads(&in->t[FA_T_O]);
}
static void lse_of_head_0(fa_problem *p, fa_tensors *in) {
  UNUSED(p), in->t[FA_T_LSE].stride[1] = 0;
}
static void last_rows_lost(fa_problem *p,
                           fa_tensors *in) { /* the partial tile of 64 adds nothing to dK and dV */
  for (int64_t e = 0; e < p->batch * p->heads_q * p->head_dim * (p->seqlen_q % 64); ++e) {
    const int64_t d = e % p->head_dim, h = e / p->head_dim % p->heads_q;
    const int64_t b = e / p->head_dim / p->heads_q % p->batch, s = e / p->head_dim / p->heads_q / p->batch;
    int64_t at[FA_MAX_RANK] = {b, p->seqlen_q / 64 * 64 + s, h, d};
    fa_tensor_set(&in->t[FA_T_DO], at, 0);
    fa_tensor_set(&in->t[FA_T_O], at, 0);
  }
}

enum { FORWARD = 1, BACKWARD = 2, BOTH = 3 };
static const struct {
  const char *name;
  scene scene;
  mutation mutate;
  int passes; /* in which it must be caught */
} mutants[] = {
    {"last key dropped", scene_plain, drop_last_key, BOTH},
    {"last key dropped", scene_window, drop_last_key, BOTH},
    {"last of 3000 keys dropped", scene_long, drop_last_key, BOTH},
    {"last key is the one before", scene_plain, last_key_twice, BOTH},
    {"j <= i + 1", scene_causal, widen_right, BOTH},
    {"diagonal lost", scene_causal, lose_diagonal, BOTH},
    {"right edge + 1", scene_window, widen_right, BOTH},
    {"right edge - 1", scene_window, right_short, BOTH},
    {"left edge - 1", scene_window, left_short, BOTH},
    {"left edge + 1", scene_window, left_long, BOTH},
    {"top-left", scene_causal, top_left, BOTH},
    {"no mask", scene_causal, no_mask, BOTH},
    {"scale of the padded dim", scene_plain, scale_of_128, BOTH},
    {"scale off by 1e-4", scene_plain, scale_off_a_little, FORWARD},
    {"seed + 1", scene_dropout, other_seed, BOTH},
    {"offset + 32", scene_dropout, other_offset, BOTH},
    {"no dropout", scene_dropout, no_dropout, BOTH},
    {"no softcap", scene_bias, no_softcap, BOTH},
    {"no bias", scene_bias, no_bias, BOTH},
    {"bias of head 0", scene_bias, bias_of_head_0, BOTH},
    {"bias of row 0", scene_bias, bias_of_row_0, BOTH},
    {"slope sign", scene_alibi, slope_sign, BOTH},
    {"no alibi", scene_alibi, no_alibi, BOTH},
    {"K of another head", scene_plain, k_of_other_head, BOTH},
    {"V of another head", scene_plain, v_of_other_head, BOTH},
    {"V of entry 0", scene_plain, v_of_sequence_0, BOTH},
    {"delta missing", scene_plain, zero_o, BACKWARD},
    {"delta of another head", scene_plain, o_of_other_head, BACKWARD},
    {"lse of head 0", scene_plain, lse_of_head_0, BACKWARD},
    {"last query rows lost", scene_plain, last_rows_lost, BACKWARD},
};

static bool verbose; /* any argument: print where each mutant was caught */

static void test_mutant(int k, fa_dtype dtype) {
  fa_case c = mutants[k].scene(dtype);
  trial t;
  trial_init(&t, &c, "mma-hopper");
  for (int pass = FORWARD; pass <= BACKWARD; ++pass) {
    if (!(mutants[k].passes & pass)) continue;
    trial other = {0};
    fa_problem p;
    fa_wants wrong;
    char where[300] = "";
    REQUIRE(fa_problem_copy(&p, &c.problem) == FA_OK && fa_tensors_clone(&other.set, &t.set, NULL) == FA_OK);
    mutants[k].mutate(&p, &other.set);
    if (pass == FORWARD) {
      run_forward(&p, &other, NULL, &wrong);
      store(&t.set, &wrong, forward_ids, 2);
      CHECK_MSG(any_fails(&t, forward_ids, 2, where), "%s, %s forward", mutants[k].name,
                fa_dtype_name(dtype));
      store(&t.set, &t.forward, forward_ids, 2);
    } else {
      run_backward(&p, &other, NULL, &t.forward, &wrong);
      store(&t.set, &wrong, backward_ids, 4);
      CHECK_MSG(any_fails(&t, backward_ids, 4, where), "%s, %s backward", mutants[k].name,
                fa_dtype_name(dtype));
    }
    if (verbose) printf("%s, %s, pass %d: %s\n", mutants[k].name, fa_dtype_name(dtype), pass, where);
    fa_wants_free(&wrong);
    fa_tensors_free(&other.set);
    fa_problem_free(&p);
  }
  trial_free(&t);
  fa_case_free(&c);
}

/* Exact values pass, no bound is vacuous, and zeros in any output fail. */
static void test_scene(scene make, fa_dtype dtype) {
  fa_case c = make(dtype);
  trial t;
  trial_init(&t, &c, "mma-hopper");
  for (int k = 0; k < 6; ++k) {
    const fa_tensor_id id = k < 2 ? forward_ids[k] : backward_ids[k - 2];
    fa_verdict v = judge(&t, id);
    if (!v.judged) continue;
    CHECK_MSG(!v.fail && v.worst_ratio < 1, "%s: %s", fa_tensor_id_name(id), v.where);
    CHECK_MSG(v.vacuous[0] == 0, "%s: %s, tightness %g", fa_tensor_id_name(id), v.vacuous, v.tightness);
    for (int64_t e = 0; e < fa_tensor_count(&t.set.t[id]); ++e) {
      int64_t at[FA_MAX_RANK];
      fa_tensor_unravel(&t.set.t[id], e, at);
      fa_tensor_set(&t.set.t[id], at, 0);
    }
    CHECK_MSG(judge(&t, id).fail, "%s: zeros pass", fa_tensor_id_name(id));
  }
  trial_free(&t);
  fa_case_free(&c);
}

int main(int argc, char **argv) {
  const fa_dtype dtypes[] = {FA_F16, FA_BF16};
  UNUSED(argv);
  verbose = argc > 1;
  for (int n = 0; n < 2; ++n) {
    for (int k = 0; k < N_SCENES; ++k) test_scene(scenes[k], dtypes[n]);
    for (int k = 0; k < (int)(sizeof mutants / sizeof *mutants); ++k) test_mutant(k, dtypes[n]);
  }
  return check_done();
}
