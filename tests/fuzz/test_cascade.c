/* Cascade: attention over a prefix of the keys and over the rest, merged, is attention over all of them. An example of
 * family merge, with the plain backend: two calls of attention, whose O and LSE become the parts of a third. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "gpu/backend.h"
#include "ref/reference.h"
#include "tests/support/built_case.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 20, KEYS = 96, PREFIX = 64, HEADS = 2, WIDTH = 16 };

static fa_case read_case(const char *json) {
  fa_case c;
  fa_error err = {""};
  const fa_status status = fa_case_from_text(json, &c, &err);
  if (status != FA_OK) fprintf(stderr, "%s\n", err.text);
  REQUIRE(status == FA_OK);
  return c;
}

static void run(const fa_case *c, fa_tensors *t) {
  const fa_run_options options = {.passes = FA_PASS_FORWARD, .n_threads = 1};
  fa_outcome outcome;
  fa_error err = {""};
  REQUIRE(fa_backend_ref_f32.run(NULL, &c->problem, t, &options, &outcome, &err) == FA_OK);
  REQUIRE(outcome.state == FA_SUBJECT_OK);
}

/* Attention of the whole's queries over keys first .. first + n - 1, its result a part of the merge. */
static void attend(const fa_tensors *whole, int64_t first, int64_t n, const fa_tensors *merge, int64_t part) {
  static const fa_tensor_id keys[] = {FA_T_K, FA_T_V};
  char json[200];
  snprintf(json, sizeof json,
           "{\"dtype\":\"f32\",\"heads_q\":%d,\"seqlen_q\":%d,\"seqlen_k\":%d,\"head_dim\":%d,\"backward\":false}",
           HEADS, ROWS, (int)n, WIDTH);
  fa_case c = read_case(json);
  fa_tensors t = build(&c);
  fa_tensor_copy(&t.t[FA_T_Q], &whole->t[FA_T_Q]);
  for (int k = 0; k < 2; ++k) {
    fa_tensor some = whole->t[keys[k]];
    some.data += first * some.stride[1] * 4;
    some.shape[1] = n;
    fa_tensor_copy(&t.t[keys[k]], &some);
  }
  run(&c, &t);
  for (int64_t h = 0; h < HEADS; ++h)
    for (int64_t i = 0; i < ROWS; ++i) {
      const int64_t lse[3] = {0, h, i}, lse_part[4] = {part, 0, h, i};
      fa_tensor_set(&merge->t[FA_T_LSE_PARTS], lse_part, fa_tensor_get(&t.t[FA_T_LSE], lse));
      for (int64_t d = 0; d < WIDTH; ++d) {
        const int64_t o[4] = {0, i, h, d}, o_part[5] = {part, 0, i, h, d};
        fa_tensor_set(&merge->t[FA_T_O_PARTS], o_part, fa_tensor_get(&t.t[FA_T_O], o));
      }
    }
  fa_tensors_free(&t);
  fa_case_free(&c);
}

/* How far the merged result is from the reference's attention over all keys. */
static double error_of(const fa_wants *want, const fa_tensors *got, fa_tensor_id id) {
  double worst = 0;
  int64_t index[FA_MAX_RANK];
  for (int64_t e = 0; e < want->t[id].n; ++e) {
    fa_tensor_unravel(&got->t[id], e, index);
    worst = fmax(worst, fabs(fa_tensor_get(&got->t[id], index) - want->t[id].value[e]));
  }
  return worst;
}

/* base_2: the mistake that serving stacks make, a merge that takes natural logarithms for those to base 2. */
static double cascade(bool base_2) {
  char json[200];
  fa_case all = read_case("{\"dtype\":\"f32\",\"heads_q\":2,\"seqlen_q\":20,\"seqlen_k\":96,\"head_dim\":16,"
                          "\"backward\":false}");
  snprintf(json, sizeof json,
           "{\"family\":\"merge\",\"dtype\":\"f32\",\"heads_q\":2,\"seqlen_q\":20,\"head_dim\":16,\"backward\":false,"
           "\"merge\":{\"base\":\"%s\"}}",
           base_2 ? "2" : "e");
  fa_case merge = read_case(json);
  fa_tensors whole = build(&all), parts = build(&merge);
  const fa_ref_options options = {.n_threads = 1};
  fa_wants want;
  fa_error err = {""};
  attend(&whole, 0, PREFIX, &parts, 0);
  attend(&whole, PREFIX, KEYS - PREFIX, &parts, 1);
  run(&merge, &parts);
  REQUIRE(fa_ref_forward(&all.problem, &whole, &options, &want, &err) == FA_OK);
  const double worst = fmax(error_of(&want, &parts, FA_T_O), error_of(&want, &parts, FA_T_LSE));
  fa_wants_free(&want);
  fa_tensors_free(&whole);
  fa_tensors_free(&parts);
  fa_case_free(&all);
  fa_case_free(&merge);
  return worst;
}

int main(void) {
  const double right = cascade(false), wrong = cascade(true);
  printf("merged: %.2g from the whole; in the wrong base: %.2g\n", right, wrong);
  CHECK(right < 2e-6);
  CHECK(wrong > 1e-2);
  return check_done();
}
