/* The host backend's contract: what it says it can do, what it rejects, and that neither the number of
 * threads nor the schedule changes a bit of the result. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "cases/recipe/case.h"
#include "gpu/backend.h"
#include "tests/support/check.h"

#include <stdbool.h>
#include <string.h>

static void load(const char *json, fa_case *c) {
  fa_error err;
  const fa_status status = fa_case_from_text(json, c, &err);
  if (status != FA_OK) fprintf(stderr, "%s: %s\n", json, err.text);
  REQUIRE(status == FA_OK);
}

static void check_reason(const char *json, unsigned passes, const char *words) {
  fa_case c;
  char reason[256] = "";
  load(json, &c);
  CHECK_MSG(fa_backend_host.supports(NULL, &c.problem, reason, sizeof reason) == passes, "%s", json);
  CHECK_MSG(strstr(reason, words) != NULL, "%s: \"%s\" lacks \"%s\"", json, reason, words);
  if (passes == 0) { /* run rejects it too, and touches nothing */
    fa_tensors t = {0};
    fa_outcome out;
    fa_error err;
    const fa_run_options opt = {.passes = FA_PASS_FORWARD, .n_threads = 1};
    CHECK(fa_backend_host.run(NULL, &c.problem, &t, &opt, &out, &err) == FA_ERR_UNSUPPORTED);
    CHECK_MSG(strstr(err.text, words) != NULL, "%s: %s", json, err.text);
  }
  fa_case_free(&c);
}

/* The forward pass at least. */
static void check_forward(const char *json) {
  fa_case c;
  char reason[256] = "";
  load(json, &c);
  CHECK_MSG(fa_backend_host.supports(NULL, &c.problem, reason, sizeof reason) & FA_PASS_FORWARD, "%s: %s",
            json, reason);
  fa_case_free(&c);
}

static void check_supports(void) {
  check_reason("{\"backward\": false}", FA_PASS_FORWARD | FA_PASS_BACKWARD, "");
  check_reason("{\"head_dim\": 128, \"dtype\": \"bf16\"}", FA_PASS_FORWARD | FA_PASS_BACKWARD, "");
  check_forward("{\"head_dim\": 8}");
  check_forward("{\"head_dim\": 256, \"dtype\": \"bf16\"}");
  check_forward("{\"dropout\": {\"p\": 0.1, \"seed\": \"1\", \"offset\": \"0\"}, \"return_softmax\": true}");
  check_forward("{\"mask\": {\"type\": \"causal\"}, \"return_softmax\": true}");
  check_reason("{\"head_dim\": 12}", FA_PASS_FORWARD | FA_PASS_BACKWARD, "");
  check_reason("{\"head_dim\": 264}", FA_PASS_FORWARD | FA_PASS_BACKWARD, "");
  check_reason("{\"dtype\": \"f32\"}", FA_PASS_FORWARD | FA_PASS_BACKWARD, "");
  check_reason("{\"family\": \"memeff\"}", FA_PASS_FORWARD | FA_PASS_BACKWARD, "");
  check_reason("{\"family\": \"flex\"}", FA_PASS_FORWARD | FA_PASS_BACKWARD, "");
  check_reason("{\"family\": \"flex\", \"dtype\": \"f32\", \"head_dim\": 12, \"softcap\": 5.0, "
               "\"score_mod\": \"-score\"}",
               FA_PASS_FORWARD | FA_PASS_BACKWARD, "");
  check_reason("{\"family\": \"flex\", \"seqlen_q\": 80000, \"seqlen_k\": 80000, \"mask_mod\": \"true\", "
               "\"block_sparse\": {\"from\": \"mask_mod\", \"q_block\": 1, \"kv_block\": 1}}",
               0, "blocks to a head are too many");
  check_reason("{\"dtype\": \"f32\", \"dropout\": {\"p\": 0.1}}", FA_PASS_FORWARD | FA_PASS_BACKWARD, "");
  check_reason("{\"dtype\": \"f32\", \"dropout\": {\"p\": 0.1}, \"return_softmax\": true}", 0, "dtype f32");
  check_reason("{\"head_dim\": 12, \"dropout\": {\"p\": 0.1}, \"return_softmax\": true}", 0, "multiple of 8");
  check_reason("{\"splits\": 3, \"head_dim_v\": 32}", 0, "splits = 3: not together with a head_dim_v");
  check_reason("{\"scale\": 1e35}", 0, "scale");
  check_reason("{\"softcap\": 1e-35}", 0, "softcap");
}

/* Bit patterns of every O and LSE, in order of addresses. */
static uint64_t digest(const fa_tensors *t) {
  uint64_t h = 1469598103934665603ull;
  static const fa_tensor_id ids[] = {FA_T_O, FA_T_LSE};
  for (int i = 0; i < 2; ++i) {
    const fa_buffer *b = &t->buffer[ids[i]];
    for (size_t j = 0; j < b->bytes; ++j)
      h = (h ^ (unsigned char)b->base[FA_GUARD_BYTES + j]) * 1099511628211ull;
  }
  return h;
}

static void check_schedules(void) {
  fa_case c;
  fa_tensors t;
  fa_error err;
  fa_outcome out;
  load("{\"cu_seqlens_q\": [0, 150, 160], \"cu_seqlens_k\": [0, 70, 210], \"heads_q\": 2, \"heads_kv\": 1, "
       "\"mask\": "
       "{\"type\": \"causal\"}}",
       &c);
  REQUIRE(fa_case_build(&c, &t, &err) == FA_OK);
  uint64_t first = 0;
  for (int n = 0; n < 12; ++n) {
    const fa_run_options opt = {
        .passes = FA_PASS_FORWARD, .schedule_seed = (uint64_t)n / 2, .n_threads = 1 + n % 3};
    fa_tensors_poison(&t, FA_T_O, FA_POISON_A);
    fa_tensors_poison(&t, FA_T_LSE, FA_POISON_A);
    REQUIRE(fa_backend_host.run(NULL, &c.problem, &t, &opt, &out, &err) == FA_OK);
    CHECK_MSG(out.state == FA_SUBJECT_OK, "%s", out.text);
    CHECK_MSG(strcmp(out.kernel, "flash_forward<f16,64,causal>") == 0, "%s", out.kernel);
    if (n == 0) first = digest(&t);
    CHECK_MSG(digest(&t) == first, "run %d differs", n);
  }
  fa_tensors_free(&t);
  fa_case_free(&c);
}

static void check_rejects(void) {
  fa_case c;
  fa_tensors t;
  fa_error err;
  fa_outcome out;
  const fa_run_options opt = {.passes = FA_PASS_FORWARD, .n_threads = 1};
  load("{\"seqlen_q\": 8, \"seqused_k\": [5]}", &c);
  REQUIRE(fa_case_build(&c, &t, &err) == FA_OK);
  for (int what = 0; what < 9; ++what) {
    fa_tensors broken = t;
    static const fa_tensor_id missing[] = {FA_T_Q, FA_T_V, FA_T_O, FA_T_LSE, FA_T_SEQUSED_K};
    if (what < 5) broken.t[missing[what]].data = NULL;
    if (what == 5) broken.t[FA_T_K].dtype = FA_BF16;
    if (what == 6) broken.t[FA_T_Q].shape[1] = 9;
    if (what == 7) broken.t[FA_T_K].stride[3] = 2;
    if (what == 8) broken.t[FA_T_V].rank = 3;
    CHECK(fa_backend_host.run(NULL, &c.problem, &broken, &opt, &out, &err) == FA_OK);
    CHECK_MSG(out.state == FA_SUBJECT_REJECTED && out.text[0], "%d: %s", what, out.text);
  }
  /* The tensors and the memory ranges disagree: detected while running. */
  fa_tensors short_k = t;
  short_k.buffer[FA_T_K].bytes -= 128;
  CHECK(fa_backend_host.run(NULL, &c.problem, &short_k, &opt, &out, &err) == FA_OK);
  CHECK(out.state == FA_SUBJECT_OK); /* keys past seqused_k are not read */
  short_k.buffer[FA_T_K].bytes = 4 * 128;
  CHECK(fa_backend_host.run(NULL, &c.problem, &short_k, &opt, &out, &err) == FA_OK);
  CHECK_MSG(out.state == FA_SUBJECT_OOB && strstr(out.text, "buffer k") &&
                strstr(out.text, "gpu/kernels/parts/tile.cuh:") == out.text,
            "%s", out.text);
  fa_tensors_free(&t);
  fa_case_free(&c);
}

/* lse_padded is of variable lengths, and changes nothing elsewhere (gpu/fa.h): one number for every row, and none read of lengths
 * that are not there. */
static void check_padded(const char *json) {
  fa_case c;
  fa_tensors t;
  fa_error err;
  fa_outcome out = {0};
  uint64_t of[2] = {0, 1};
  const fa_run_options opt = {.passes = FA_PASS_FORWARD, .schedule_seed = 1, .n_threads = 1};
  load(json, &c);
  REQUIRE(fa_case_build(&c, &t, &err) == FA_OK);
  for (int padded = 0; padded < 2; ++padded) {
    c.problem.lse_padded = padded;
    fa_tensors_poison(&t, FA_T_O, FA_POISON_A);
    fa_tensors_poison(&t, FA_T_LSE, FA_POISON_A);
    REQUIRE(fa_backend_host.run(NULL, &c.problem, &t, &opt, &out, &err) == FA_OK);
    CHECK_MSG(out.state == FA_SUBJECT_OK, "%s: %s", json, out.text);
    of[padded] = digest(&t);
  }
  CHECK_MSG(of[0] == of[1], "%s", json);
  fa_tensors_free(&t);
  fa_case_free(&c);
}

/* Whether dQ may differ from run to run, where few rows take a portable kernel forward and one for sm_90a, which adds dQ to
 * memory, backward. */
static void check_order_of_dq(void) {
  fa_case c;
  void *self;
  fa_error err;
  load("{\"family\": \"flex\", \"seqlen_q\": 7, \"seqlen_k\": 320, \"heads_q\": 2, "
       "\"scale\": -0.125, \"mask\": {\"type\": \"window\", \"left\": 320, \"right\": 0}}",
       &c);
  REQUIRE(fa_backend_host.open("hopper", &self, &err) == FA_OK);
  for (int hopper = 0; hopper < 2; ++hopper) {
    fa_profile profile;
    fa_backend_host.profile(hopper ? self : NULL, &c.problem, &profile);
    CHECK_MSG(profile.dq_atomic == (hopper == 1), "hopper %d: %d", hopper, profile.dq_atomic);
  }
  fa_backend_host.close(self);
  fa_case_free(&c);
}

int main(void) {
  void *self;
  fa_error err;
  CHECK(fa_backend_host.open(NULL, &self, &err) == FA_OK &&
        fa_backend_host.open("gpu0", &(void *){NULL}, &err) == FA_ERR_INPUT);
  fa_backend_host.close(self);
  check_supports();
  check_schedules();
  check_rejects();
  check_padded("{\"batch\": 2, \"seqlen_q\": 70, \"heads_q\": 2}");
  check_padded("{\"family\": \"kvcache\", \"batch\": 2, \"heads_q\": 2, \"seqlen_q\": 3, \"seqlen_k\": 300, "
               "\"kvcache\": {\"len\": [290, 40]}, \"splits\": 3}");
  check_order_of_dq();
  return check_done();
}
