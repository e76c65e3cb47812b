/* Calls with known verdicts: what the reference on the CPU wants of them, rounded, is right. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "fuzz/judging/canary.h"
#include "fuzz/judging/two.h"
#include "ref/cuda/try.h"
#include "ref/reference.h"

#include <stdlib.h>

static const char *const recipes[] = {
    "{\"dtype\":\"bf16\",\"batch\":2,\"heads_q\":2,\"seqlen_q\":65,\"seqlen_k\":130,\"head_dim\":64,"
    "\"mask\":{\"type\":\"causal\"}}",
    "{\"dtype\":\"f16\",\"heads_q\":4,\"heads_kv\":2,\"seqlen_q\":70,\"head_dim\":32,\"softcap\":20}",
    "{\"dtype\":\"f32\",\"seqlen_q\":33,\"seqlen_k\":40,\"head_dim\":16,\"mask\":{\"type\":\"window\","
    "\"left\":8,"
    "\"right\":3}}",
};

typedef struct known {
  fa_case c;
  fa_tensors in, got;
  fa_profile profile;
  fa_ref_options options;
  fa_wants forward, gradients;
} known;

static void put_wanted(const fa_want *w, const fa_tensor *t) {
  int64_t index[FA_MAX_RANK] = {0};
  for (int64_t e = 0; e < w->n; ++e) {
    fa_tensor_unravel(t, e, index);
    fa_tensor_set(t, index, w->value[e]);
  }
}

static fa_status answer(known *k, fa_error *err) {
  const fa_problem *p = &k->c.problem;
  fa_tensor *t = k->got.t;
  fa_status status = fa_ref_forward(p, &k->in, &k->options, &k->forward, err);
  if (status != FA_OK) return status;
  put_wanted(&k->forward.t[FA_T_O], &t[FA_T_O]);
  put_wanted(&k->forward.t[FA_T_LSE], &t[FA_T_LSE]);
  status = fa_ref_backward(p, &k->in, &t[FA_T_O], &t[FA_T_LSE], &k->forward, &k->options, &k->gradients, err);
  if (status != FA_OK) return status;
  put_wanted(&k->gradients.t[FA_T_DQ], &t[FA_T_DQ]);
  put_wanted(&k->gradients.t[FA_T_DK], &t[FA_T_DK]);
  put_wanted(&k->gradients.t[FA_T_DV], &t[FA_T_DV]);
  return FA_OK;
}

static fa_status make(const char *recipe, known *k, fa_error *err) {
  *k = (known){.options = {.n_threads = 1, .profile = &k->profile}};
  fa_status status = fa_case_from_text(recipe, &k->c, err);
  if (status != FA_OK) return status;
  k->profile = fa_profile_get("simt-f32", k->c.problem.dtype);
  status = fa_case_build(&k->c, &k->in, err);
  if (status == FA_OK) status = fa_tensors_clone(&k->got, &k->in, err);
  return status == FA_OK ? answer(k, err) : status;
}

static void drop(known *k) {
  fa_wants_free(&k->forward);
  fa_wants_free(&k->gradients);
  fa_tensors_free(&k->got);
  fa_tensors_free(&k->in);
  fa_case_free(&k->c);
}

static fa_status try_right(const fa_canary_call *c, fa_error *err) {
  fa_judge_trial *t = malloc(sizeof *t);
  if (!t) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  *t = (fa_judge_trial){.passed = true};
  fa_status status = fa_judge_try_both(c->machine, c->p, c->in, c->got, c->options, c->as, t, err);
  if (status == FA_OK && (!t->passed || t->n != 5))
    status = fa_fail(err, FA_ERR_DEVICE, "the judge on the GPU does not pass outputs that are right");
  free(t);
  return status;
}

/* The first element, the last one, and NaN in the middle. */
static fa_status try_wrong(const fa_canary_call *c, const known *k, fa_error *err) {
  static const fa_tensor_id ids[] = {FA_T_O, FA_T_LSE, FA_T_DQ, FA_T_DK, FA_T_DV};
  fa_status status = FA_OK;
  for (int i = 0; i < 5; ++i) {
    const fa_want *w = &(i < 2 ? &k->forward : &k->gradients)->t[ids[i]];
    if (status == FA_OK) status = fa_canary_try_at(c, ids[i], w, 0, false, err);
    if (status == FA_OK) status = fa_canary_try_at(c, ids[i], w, w->n - 1, false, err);
    if (status == FA_OK) status = fa_canary_try_at(c, ids[i], w, w->n / 2, true, err);
  }
  return status;
}

fa_status fa_canary_try_known(fa_judge_machine *m, fa_error *err) {
  fa_status status = FA_OK;
  for (size_t i = 0; status == FA_OK && i < sizeof recipes / sizeof *recipes; ++i) {
    known *k = malloc(sizeof *k);
    if (!k) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
    status = make(recipes[i], k, err);
    const fa_compare_options as = {.poison = FA_POISON_A, .profile = &k->profile, .doubt = FA_MACHINE_DOUBT};
    const fa_canary_call call = {.machine = m,
                                 .p = &k->c.problem,
                                 .in = &k->in,
                                 .got = &k->got,
                                 .options = &k->options,
                                 .as = &as,
                                 .backward = true};
    if (status == FA_OK) status = try_right(&call, err);
    if (status == FA_OK) status = try_wrong(&call, k, err);
    drop(k);
    free(k);
  }
  return status;
}
