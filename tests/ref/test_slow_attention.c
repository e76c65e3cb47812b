/* Is the oracle's oracle right? Checks its gradients against central differences of its own forward, its
 * Philox against the published test words, and answers known without computing. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "tests/support/check.h"
#include "tests/support/random_attention.h"
#include "tests/support/slow_attention.h"

#include <math.h>
#include <string.h>

static void test_philox(void) {
  static const struct {
    int rounds;
    uint64_t seed;
    uint32_t counter[4], want[4];
  } words[] = {
      {7, 1234, {0, 0, 0, 0}, {0x1c565f2e, 0xd968083a, 0x4a736ff5, 0x4e9b254c}},
      {7, 1234, {70, 0, 3, 2}, {0x9996dda1, 0x261e2aeb, 0xd232d20a, 0x802d4ff5}},
      {7, 0xdeadbeefcafef00d, {1, 1, 0, 0}, {0xf661e5e4, 0x3d5856e4, 0x00db2275, 0xd8589078}},
      {10, 4321, {0, 0, 0, 0}, {0xa6231f96, 0x47a2ac7e, 0xf8b7d181, 0xf9cf4113}},
      {10, 4321, {5, 0, 0, 0}, {0x543fd474, 0x66cb8195, 0xfaef32aa, 0xa4c2fa6a}},
      {10, 0xdeadbeefcafef00d, {1, 1, 0, 0}, {0xa4f6f083, 0x00f70270, 0x685e01b1, 0x83cc9e52}},
  };
  for (size_t k = 0; k < sizeof words / sizeof *words; ++k) {
    uint32_t c[4];
    memcpy(c, words[k].counter, sizeof c);
    slow_philox(words[k].rounds, words[k].seed, c);
    CHECK_MSG(memcmp(c, words[k].want, sizeof c) == 0, "%zu", k);
  }
}

/* ---- gradients ---- */

/* The same set in float64, so that an element can be changed by a small step. */
static void widen(const fa_tensors *from, fa_tensors *to) {
  *to = (fa_tensors){0};
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const fa_tensor *t = &from->t[id];
    if (t->data == NULL) continue;
    const fa_dtype dtype = fa_dtype_is_float(t->dtype) ? FA_F64 : t->dtype;
    REQUIRE(fa_tensors_add(to, id, dtype, t->rank, t->shape, NULL, 0, NULL) == FA_OK);
    for (int64_t e = 0; e < fa_tensor_count(t); ++e) {
      int64_t at[FA_MAX_RANK];
      fa_tensor_unravel(t, e, at);
      fa_tensor_set(&to->t[id], at, fa_tensor_get(t, at));
    }
  }
}

static long double dot(const fa_tensor *a, const slow_array *b) {
  long double sum = 0;
  for (int64_t e = 0; a->data != NULL && e < b->n; ++e) {
    int64_t at[FA_MAX_RANK];
    fa_tensor_unravel(a, e, at);
    const double x = fa_tensor_get(a, at);
    const bool padding = isnan(x) && isnan((double)b->value[e]), masked = isinf((double)b->value[e]);
    if (!padding && !masked) sum += x * b->value[e];
  }
  return sum;
}

/* The scalar whose gradient dO and dLSE define. */
static long double loss(const fa_problem *p, const fa_tensors *in) {
  slow_outputs out = {0};
  slow_forward(p, in, &out);
  const long double sum = dot(&in->t[FA_T_DO], &out.t[FA_T_O]) + dot(&in->t[FA_T_DLSE], &out.t[FA_T_LSE]);
  slow_outputs_free(&out);
  return sum;
}

static long double central_difference(const fa_problem *p, fa_tensors *in, fa_tensor_id id, int64_t e) {
  int64_t at[FA_MAX_RANK];
  const fa_tensor *t = &in->t[id];
  fa_tensor_unravel(t, e, at);
  const double x = fa_tensor_get(t, at), up = x + 0x1p-18, down = x - 0x1p-18;
  fa_tensor_set(t, at, up);
  const long double above = loss(p, in);
  fa_tensor_set(t, at, down);
  const long double below = loss(p, in);
  fa_tensor_set(t, at, x);
  return (above - below) / ((long double)up - down);
}

static int64_t n_moved;

static void check_gradient(const fa_case *c, fa_tensors *in, fa_tensor_id id, const slow_array *gradient,
                           uint64_t index) {
  const int64_t step = gradient->n / 20 + 1; /* about twenty elements of each tensor */
  for (int64_t e = 0; e < gradient->n; e += step) {
    int64_t at[FA_MAX_RANK];
    fa_tensor_unravel(&in->t[id], e, at);
    const double x = fa_tensor_get(&in->t[id], at);
    if (isnan(x)) CHECK(gradient->value[e] == 0); /* a masked key: never read */
    if (!isfinite(x)) continue;
    const long double want = central_difference(&c->problem, in, id, e), got = gradient->value[e];
    ++n_moved;
    CHECK_MSG(fabsl(got - want) <= 1e-8L * (1 + gradient->mag[e]),
              "case %llu %s[%lld]: %.12Lg, difference %.12Lg", (unsigned long long)index,
              fa_tensor_id_name(id), (long long)e, got, want);
  }
}

/* The conditional form, given the outputs that it would compute anyway. */
static void check_given(const fa_problem *p, fa_tensors *in, const slow_outputs *plain) {
  const fa_tensor_id outputs[] = {FA_T_O, FA_T_LSE}, gradients[] = {FA_T_DQ, FA_T_DK, FA_T_DV, FA_T_DBIAS};
  slow_outputs forward = {0}, given = {0};
  slow_forward(p, in, &forward);
  for (int k = 0; k < 2; ++k)
    for (int64_t e = 0; e < forward.t[outputs[k]].n; ++e) {
      int64_t at[FA_MAX_RANK];
      fa_tensor_unravel(&in->t[outputs[k]], e, at);
      fa_tensor_set(&in->t[outputs[k]], at, (double)forward.t[outputs[k]].value[e]);
    }
  slow_backward(p, in, &in->t[FA_T_O], &in->t[FA_T_LSE], &given);
  for (int k = 0; k < 4; ++k) {
    const slow_array *a = &plain->t[gradients[k]], *b = &given.t[gradients[k]];
    int64_t bad = a->n != b->n;
    for (int64_t e = 0; e < a->n && a->n == b->n; ++e)
      bad += !(fabsl(a->value[e] - b->value[e]) <= 1e-15L * a->mag[e]);
    CHECK(bad == 0);
  }
  slow_outputs_free(&forward);
  slow_outputs_free(&given);
}

static bool is_small(const fa_case *c) {
  const fa_problem *p = &c->problem;
  for (int id = 0; id < FA_T_COUNT; ++id)
    for (int axis = 0; axis < 3; ++axis)
      if (c->strides[id].expand[axis]) return false; /* one memory cell, many elements */
  return p->backward && p->batch * p->heads_q * p->seqlen_q * p->seqlen_k * p->head_dim < 20000 &&
         p->batch * p->heads_q * p->seqlen_q * p->seqlen_k > 0 && c->fill[FA_T_Q] == FA_FILL_NORMAL;
}

static void check_gradients(const fa_case *c, uint64_t index) {
  static const fa_tensor_id inputs[] = {FA_T_Q, FA_T_K, FA_T_V, FA_T_BIAS, FA_T_SINKS},
                            gradients[] = {FA_T_DQ, FA_T_DK, FA_T_DV, FA_T_DBIAS, FA_T_DSINKS};
  fa_tensors set, in;
  slow_outputs out = {0};
  REQUIRE(fa_case_build(c, &set, NULL) == FA_OK);
  widen(&set, &in);
  slow_backward(&c->problem, &in, NULL, NULL, &out);
  for (int k = 0; k < 5; ++k) check_gradient(c, &in, inputs[k], &out.t[gradients[k]], index);
  if (in.t[FA_T_O].data != NULL && !c->problem.lse_padded) check_given(&c->problem, &in, &out);
  slow_outputs_free(&out);
  fa_tensors_free(&set);
  fa_tensors_free(&in);
}

static void test_gradients(void) {
  uint64_t features = 0;
  for (uint64_t index = 0, n = 0; n < 60; ++index) {
    fa_case c;
    random_attention(22, index, &c);
    if (is_small(&c)) {
      ++n;
      features |= random_features(&c);
      check_gradients(&c, index);
    }
    fa_case_free(&c);
  }
  static const char *const needed[] = {
      "flash",     "memeff",        "flex",           "causal br",  "causal tl",   "window br",
      "gqa",       "d != dv",       "varlen",         "seqused",    "leftpad",     "softcap",
      "alibi [h]", "alibi [b][h]",  "bias [b]",       "bias [1 b]", "bias [1 h]",  "bias [1 q]",
      "dbias",     "dropout flash", "dropout memeff", "dlse",       "block lists", "block density",
      "lse -inf",  "bias -inf",     "sinks"};
  for (size_t k = 0; k < sizeof needed / sizeof *needed; ++k) {
    int bit = 0;
    while (random_feature_names[bit] != NULL && strcmp(random_feature_names[bit], needed[k]) != 0) ++bit;
    CHECK_MSG(features >> bit & 1, "no case with %s", needed[k]);
  }
  printf("%lld elements moved\n", (long long)n_moved);
}

/* Features that random_attention does not draw. */
static void test_written(void) {
  static const char *const texts[] = {
      "{\"seqlen_q\":9,\"seqlen_k\":7,\"mask\":{\"type\":\"chunk\",\"size\":4,\"left\":2},\"grad_lse\":true,"
      "\"heads_q\":2,\"head_dim\":4}",
      "{\"batch\":2,\"seqlen_q\":7,\"seqlen_k\":9,\"leftpad_k\":[2,0],\"mask\":{\"type\":\"chunk\",\"size\":"
      "3},"
      "\"sinks\":true,\"head_dim\":4}",
      "{\"batch\":2,\"seqlen_q\":7,\"seqlen_k\":9,\"mask_bits\":{\"density\":0.5,\"empty_rows\":0.2,\"seed\":"
      "\"3\"},"
      "\"mask\":{\"type\":\"window\",\"left\":5},\"head_dim\":4}",
      "{\"cu_seqlens_q\":[0,3,3,9],\"cu_seqlens_k\":[0,8,9,14],\"mask_bits\":{\"tree\":\"random\",\"seed\":"
      "\"4\"},"
      "\"heads_q\":2,\"head_dim\":4}",
      "{\"cu_seqlens_q\":[0,5,5,7,11],\"cu_seqlens_k\":[0,4,9,9,15],\"lse_layout\":\"padded\",\"grad_lse\":"
      "true,"
      "\"heads_q\":4,\"heads_kv\":2,\"head_dim\":4,\"mask\":{\"type\":\"causal\"},\"sinks\":true}",
      "{\"family\":\"memeff\",\"cu_seqlens_q\":[0,5,5,9],\"cu_seqlens_k\":[0,4,6,13],\"head_dim\":4,\"heads_"
      "q\":2,"
      "\"bias\":{\"shape\":[1,\"h\",\"q\",\"k\"]},\"dropout\":{\"p\":0.3,\"seed\":\"5\"}}",
      "{\"seqlen_q\":6,\"seqlen_k\":11,\"splits\":3,\"head_dim\":4,\"head_dim_v\":6,\"mask\":{\"type\":"
      "\"causal\"}}",
  };
  for (size_t k = 0; k < sizeof texts / sizeof *texts; ++k) {
    fa_case c;
    fa_error err = {""};
    const fa_status status = fa_case_from_text(texts[k], &c, &err);
    CHECK_MSG(status == FA_OK, "%zu: %s", k, err.text);
    if (status != FA_OK) continue;
    const int64_t before = n_moved;
    check_gradients(&c, 1000 + k);
    CHECK_MSG(n_moved > before + 40, "%zu: %lld elements", k, (long long)(n_moved - before));
    fa_case_free(&c);
  }
}

/* ---- answers known beforehand ---- */

static void test_known(void) {
  fa_case c;
  fa_tensors in;
  slow_outputs out = {0};
  REQUIRE(fa_case_init(&c) == FA_OK);
  c.problem.seqlen_q = c.problem.seqlen_k = 4;
  c.problem.head_dim = c.problem.head_dim_v = 1;
  c.problem.scale = 1;
  c.problem.mask.type = FA_MASK_CAUSAL;
  REQUIRE(fa_case_build(&c, &in, NULL) == FA_OK);
  for (int64_t s = 0; s < 4; ++s) {
    int64_t at[FA_MAX_RANK] = {0, s};
    fa_tensor_set(&in.t[FA_T_Q], at, 0);
    fa_tensor_set(&in.t[FA_T_V], at, (double)(s * s));
  }
  slow_forward(&c.problem, &in, &out); /* equal P: means of 0 1 4 9, and log of the number of keys */
  const double mean[] = {0, 0.5, 5.0 / 3, 3.5};
  for (int s = 0; s < 4; ++s) {
    CHECK(fabsl(out.t[FA_T_O].value[s] - (long double)mean[s]) < 1e-15L);
    CHECK(fabsl(out.t[FA_T_LSE].value[s] - logl(s + 1)) < 1e-18L);
  }
  slow_outputs_free(&out);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

int main(void) {
  test_philox();
  test_known();
  test_gradients();
  test_written();
  return check_done();
}
