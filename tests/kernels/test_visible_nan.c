/* A NaN that a row sees shows: in every result that it is an operand of, and in none that it is not, whatever bits it has.
 * Kernels on the host executor, portable ones and those for sm_90a. What nobody may see is test_hopper_backward.c's. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "cases/recipe/case.h"
#include "gpu/backend.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

enum { ROW = 9, KEY = 21, COLUMN = 5 }; /* where the NaN is */

/* Which elements of a result are NaN. */
typedef enum spread { NOWHERE, IN_ITS_ROW, IN_ITS_COLUMN, EVERYWHERE } spread;
static const fa_tensor_id results[] = {FA_T_O, FA_T_LSE, FA_T_DQ, FA_T_DK, FA_T_DV};
typedef struct input {
  fa_tensor_id id;
  int token; /* all rows see all keys of the one head */
  spread of[5];
} input;
static const input inputs[] = {
    /*                  O              LSE         DQ          DK          DV */
    {FA_T_Q, ROW, {IN_ITS_ROW, IN_ITS_ROW, IN_ITS_ROW, EVERYWHERE, EVERYWHERE}},
    {FA_T_K, KEY, {EVERYWHERE, EVERYWHERE, EVERYWHERE, EVERYWHERE, EVERYWHERE}},
    {FA_T_V, KEY, {IN_ITS_COLUMN, NOWHERE, EVERYWHERE, EVERYWHERE, NOWHERE}},
    {FA_T_DO, ROW, {NOWHERE, NOWHERE, IN_ITS_ROW, EVERYWHERE, IN_ITS_COLUMN}},
};

static void load(const char *json, fa_case *c, fa_tensors *t) {
  fa_error err;
  if (fa_case_from_text(json, c, &err) == FA_OK && fa_case_build(c, t, &err) == FA_OK) return;
  fprintf(stderr, "%s: %s\n", json, err.text);
  exit(1);
}

static void run(const char *json, const char *kernels, const fa_problem *p, fa_tensors *t) {
  const fa_run_options opt = {.passes = FA_PASS_FORWARD | FA_PASS_BACKWARD, .n_threads = 2};
  void *self = NULL;
  fa_outcome out;
  fa_error err = {""};
  REQUIRE(fa_backend_host.open(kernels, &self, &err) == FA_OK);
  const fa_status status = fa_backend_host.run(self, p, t, &opt, &out, &err);
  CHECK_MSG(status == FA_OK && out.state == FA_SUBJECT_OK, "%s: %s", json,
            status == FA_OK ? out.text : err.text);
  fa_backend_host.close(self);
}

/* Element d of a token of a tensor [1, tokens, 1, D], or of a token's statistic, [1, 1, tokens]. */
static char *element(const fa_tensor *t, int64_t token, int64_t d) {
  const int64_t of_statistic[3] = {0, 0, token}, of_vector[4] = {0, token, 0, d};
  return (char *)t->data + fa_tensor_offset(t, t->rank == 3 ? of_statistic : of_vector);
}

static void put(const fa_tensor *t, int token, uint32_t bits) {
  const uint16_t half = (uint16_t)bits;
  if (t->dtype == FA_F32)
    memcpy(element(t, token, COLUMN), &bits, sizeof bits);
  else
    memcpy(element(t, token, COLUMN), &half, sizeof half);
}

static bool is_reached(spread to, int64_t token, int64_t d) {
  return to == EVERYWHERE || (to == IN_ITS_ROW && token == ROW) || (to == IN_ITS_COLUMN && d == COLUMN);
}

static void check_result(const char *where, const fa_tensor *t, fa_tensor_id id, spread to) {
  const bool is_statistic = t->rank == 3;
  int lost = 0, strayed = 0;
  for (int64_t s = 0; s < t->shape[is_statistic ? 2 : 1]; ++s)
    for (int64_t d = 0; d < (is_statistic ? 1 : t->shape[3]); ++d) {
      const bool got = isnan(fa_load(t->dtype, element(t, s, d))), want = is_reached(to, s, d);
      lost += want && !got;
      strayed += got && !want;
    }
  CHECK_MSG(lost == 0 && strayed == 0, "%s: %s: %d elements lost the NaN, %d have it that should not", where,
            fa_tensor_id_name(id), lost, strayed);
}

static void check_bits(const char *json, const char *kernels, const input *in, uint32_t bits) {
  fa_case c;
  fa_tensors t;
  char where[512];
  load(json, &c, &t);
  put(&t.t[in->id], in->token, bits);
  run(json, kernels, &c.problem, &t);
  snprintf(where, sizeof where, "%s by '%s', %s is %#x", json, kernels, fa_tensor_id_name(in->id), bits);
  for (int i = 0; i < 5; ++i) check_result(where, &t.t[results[i]], results[i], in->of[i]);
  fa_tensors_free(&t);
  fa_case_free(&c);
}

/* CUDA's own NaN and the one of all bits, of which a carry makes a zero; the usual one; the smallest, which is nearly infinite. */
static void check(const char *json, const char *kernels) {
  static const uint32_t f32[] = {0x7fffffffu, 0xffffffffu, 0x7fc00000u, 0x7f800001u},
                        f16[] = {0x7fffu, 0xffffu, 0x7e00u, 0x7c01u},
                        bf16[] = {0x7fffu, 0xffffu, 0x7fc0u, 0x7f81u};
  const uint32_t *bits = strstr(json, "f32") ? f32 : strstr(json, "bf16") ? bf16 : f16;
  for (int i = 0; i < 4; ++i)
    for (int b = 0; b < 4; ++b) check_bits(json, kernels, &inputs[i], bits[b]);
}

#define ONE_HEAD "\"heads_q\": 1, \"seqlen_q\": 40, \"seqlen_k\": 70"

int main(void) {
  check("{\"family\": \"memeff\", \"dtype\": \"f32\", " ONE_HEAD ", \"head_dim\": 64}", "");
  check("{\"family\": \"memeff\", \"dtype\": \"f32\", " ONE_HEAD ", \"head_dim\": 128}", "hopper");
  check("{\"family\": \"memeff\", \"dtype\": \"f32\", " ONE_HEAD ", \"head_dim\": 64}", "hopper");
  check("{\"family\": \"memeff\", \"dtype\": \"f32\", " ONE_HEAD ", \"head_dim\": 200}", "");
  check("{\"family\": \"memeff\", \"dtype\": \"f32\", " ONE_HEAD
        ", \"head_dim\": 64, \"bias\": {\"shape\": [\"b\", \"h\", \"q\", \"k\"], \"grad\": true}}",
        "");
  check("{\"family\": \"memeff\", \"dtype\": \"f16\", " ONE_HEAD ", \"head_dim\": 64}", "");
  check("{\"family\": \"flex\", \"dtype\": \"f32\", " ONE_HEAD ", \"head_dim\": 64}", "");
  check("{\"dtype\": \"f16\", " ONE_HEAD ", \"head_dim\": 64}", "");
  check("{\"dtype\": \"bf16\", " ONE_HEAD ", \"head_dim\": 128}", "");
  check("{\"dtype\": \"f16\", " ONE_HEAD ", \"head_dim\": 64}", "hopper");
  check("{\"dtype\": \"bf16\", " ONE_HEAD ", \"head_dim\": 128}", "hopper");
  check("{\"dtype\": \"bf16\", " ONE_HEAD ", \"head_dim\": 256}", "hopper");
  check("{\"family\": \"flex\", \"dtype\": \"bf16\", " ONE_HEAD ", \"head_dim\": 64}", "hopper");
  return check_done();
}
