/* The backward kernels for sm_90a on the host executor, for sequences of various lengths: nothing of a
 * sequence's neighbours or of hidden keys reaches its gradients, even if it is NaN or infinite; deterministic
 * calls give the same bits under every schedule; and the right kernel is launched. fa_simt_run is wrapped
 * (CMakeLists.txt) to see that. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "cases/recipe/case.h"
#include "gpu/backend.h"
#include "gpu/simt/launch.h"
#include "tests/support/check.h"
#include "tests/support/flash_entry.h"

#include <math.h>
#include <string.h>

static const fa_tensor_id gradients[3] = {FA_T_DQ, FA_T_DK, FA_T_DV};
static char launched[96]; /* the last of these kernels */

fa_status __real_fa_simt_run(const fa_simt_launch *launch, fa_simt_report *out, fa_error *err);
fa_status __wrap_fa_simt_run(const fa_simt_launch *launch, fa_simt_report *out, fa_error *err);
fa_status __wrap_fa_simt_run(const fa_simt_launch *launch, fa_simt_report *out, fa_error *err) {
  if (strncmp(launch->name, "hopper_backward", 15) == 0)
    snprintf(launched, sizeof launched, "%s", launch->name);
  return __real_fa_simt_run(launch, out, err);
}

static void load(const char *json, fa_case *c, fa_tensors *t) {
  fa_error err;
  if (fa_case_from_text(json, c, &err) == FA_OK && fa_case_build(c, t, &err) == FA_OK) return;
  fprintf(stderr, "%s: %s\n", json, err.text);
  exit(1);
}

/* By the kernel of this name. */
static void run(const char *json, const fa_problem *p, fa_tensors *t, uint64_t seed, int n_threads,
                const char *kernel) {
  const fa_run_options opt = {
      .passes = FA_PASS_FORWARD | FA_PASS_BACKWARD, .schedule_seed = seed, .n_threads = n_threads};
  void *self = NULL;
  fa_outcome out;
  fa_error err = {""};
  REQUIRE(fa_backend_host.open("hopper", &self, &err) == FA_OK);
  launched[0] = 0;
  const fa_status status = fa_backend_host.run(self, p, t, &opt, &out, &err);
  CHECK_MSG(status == FA_OK && out.state == FA_SUBJECT_OK, "%s: %s", json,
            status == FA_OK ? out.text : err.text);
  CHECK_MSG(strcmp(launched, kernel) == 0, "%s: %s instead of %s", json, launched, kernel);
  fa_backend_host.close(self);
}

/* ---- neighbours ---- */

static bool has_batch(const fa_tensor *t) {
  return t->rank == 4;
}
static char *element(const fa_tensor *t, int64_t b, int64_t s, int64_t h) {
  const int64_t at[4] = {b, s, h, 0};
  return (char *)t->data + fa_tensor_offset(t, has_batch(t) ? at : at + 1);
}

/* Fills all of a token that exists; s counts the tokens of all sequences if they are packed. */
static void fill(const fa_tensor *t, int64_t b, int64_t s, float value) {
  for (int64_t h = 0; h < t->shape[t->rank - 2]; ++h)
    for (int64_t d = 0; d < t->shape[t->rank - 1]; ++d)
      fa_store(t->dtype, element(t, b, s, h) + d * 2, value);
}

/* Fills what must not matter to the sequences looked at: other sequences, and keys that do not count. */
static void fill_others(const fa_problem *p, const fa_tensors *t, int looked_at, float value) {
  static const fa_tensor_id inputs[4] = {FA_T_Q, FA_T_DO, FA_T_K, FA_T_V};
  const entry e = entry_of(p, looked_at);
  for (int i = 0; i < 4; ++i) {
    const fa_tensor *x = &t->t[inputs[i]];
    const int64_t first = i < 2 ? e.q0 : e.k0, n = i < 2 ? e.sq : e.sk;
    for (int64_t b = 0; b < (has_batch(x) ? p->batch : 1); ++b)
      for (int64_t s = 0; s < x->shape[has_batch(x) ? 1 : 0]; ++s)
        if ((has_batch(x) && b != looked_at) || s < first || s >= first + n) fill(x, b, s, value);
  }
}

/* A digest of a sequence's gradients; with a batch axis, also of hidden keys'. */
static uint64_t digest(const fa_problem *p, const fa_tensors *t, int which, int b) {
  const fa_tensor *x = &t->t[gradients[which]];
  const entry e = entry_of(p, b);
  const bool all = has_batch(x);
  const int64_t first = all ? 0 : which ? e.k0 : e.q0, n = all ? x->shape[1] : which ? e.sk : e.sq;
  uint64_t hash = 1469598103934665603ull;
  for (int64_t s = first; s < first + n; ++s)
    for (int64_t h = 0; h < x->shape[x->rank - 2]; ++h)
      for (int64_t i = 0; i < 2 * x->shape[x->rank - 1]; ++i)
        hash = (hash ^ (unsigned char)element(x, b, s, h)[i]) * 1099511628211ull;
  return hash;
}

/* One thread and one schedule, so that sums in memory have one order. */
static void check_neighbours(const char *json, const char *kernel) {
  static const float values[3] = {0, NAN, INFINITY};
  fa_case c;
  for (int b = 0; b < 2; ++b) { /* with one neighbour before, and one after */
    uint64_t first[3] = {0};
    for (int v = 0; v < 3; ++v) {
      fa_tensors t;
      load(json, &c, &t);
      fill_others(&c.problem, &t, b, values[v]);
      run(json, &c.problem, &t, 0, 1, kernel);
      for (int i = 0; i < 3; ++i) {
        const uint64_t hash = digest(&c.problem, &t, i, b);
        if (v == 0) first[i] = hash;
        CHECK_MSG(hash == first[i], "%s: %s of entry %d changes with %g outside of it", json,
                  fa_tensor_id_name(gradients[i]), b, values[v]);
      }
      fa_tensors_free(&t);
      fa_case_free(&c);
    }
  }
}

#define SIDE_BY_SIDE                                                                                         \
  "\"heads_q\": 2, \"heads_kv\": 1, \"cu_seqlens_q\": [0, 70, 90, 91], \"cu_seqlens_k\": [0, 40, 90, 99]"
#define HIDDEN                                                                                               \
  "\"batch\": 3, \"seqlen_q\": 40, \"seqlen_k\": 150, \"seqused_k\": [150, 140, 7], \"leftpad_k\": [20, 0, " \
  "7]"

static void check_several(void) {
  check_neighbours("{" SIDE_BY_SIDE ", \"head_dim\": 256, \"dropout\": {\"p\": 0.3}}", "hopper_backward_pair_f16_256_several");
  check_neighbours("{" HIDDEN ", \"head_dim\": 192, \"dtype\": \"bf16\", \"dropout\": {\"p\": 0.3}, \"softcap\": 3}",
                   "hopper_backward_pair_bf16_192_several");
  check_neighbours("{" SIDE_BY_SIDE ", \"head_dim\": 32, \"mask\": {\"type\": \"causal\"}}", "hopper_backward_f16_32_several");
  check_neighbours("{" HIDDEN ", \"head_dim\": 128, \"softcap\": 3, \"alibi\": {\"slopes\": \"standard\"}}",
                   "hopper_backward_f16_128_several");
}

static void check_all_neighbours(void) {
  check_neighbours("{" SIDE_BY_SIDE ", \"head_dim\": 64}", "hopper_backward_f16_64_varlen");
  check_neighbours("{" SIDE_BY_SIDE ", \"head_dim\": 128, \"dtype\": \"bf16\", \"softcap\": 3}",
                   "hopper_backward_bf16_128_varlen_softcap");
  check_neighbours("{" SIDE_BY_SIDE ", \"head_dim\": 96, \"alibi\": {\"slopes\": \"standard\"}, \"mask\": "
                   "{\"type\": \"causal\"}}",
                   "hopper_backward_f16_96_varlen_alibi");
  check_neighbours("{" SIDE_BY_SIDE ", \"head_dim\": 64, \"dropout\": {\"p\": 0.3}, \"deterministic\": true}",
                   "hopper_backward_f16_64_varlen_dropout");
  check_neighbours("{" HIDDEN ", \"head_dim\": 64, \"dtype\": \"bf16\", \"dropout\": {\"p\": 0.3}}",
                   "hopper_backward_bf16_64_varlen_dropout");
  check_neighbours("{" HIDDEN ", \"head_dim\": 96, \"softcap\": 3, \"deterministic\": true}",
                   "hopper_backward_f16_96_varlen_softcap");
  check_neighbours("{" SIDE_BY_SIDE ", \"head_dim\": 256, \"dtype\": \"bf16\"}",
                   "hopper_backward_pair_bf16_256_varlen");
  check_neighbours("{" HIDDEN ", \"head_dim\": 192, \"alibi\": {\"slopes\": \"standard\"}, \"mask\": "
                   "{\"type\": \"causal\"}}",
                   "hopper_backward_pair_f16_192_varlen_alibi");
}

/* ---- the same bits under every schedule ---- */

static void check_repeats(const char *json, const char *kernel) {
  fa_case c;
  fa_tensors t;
  uint64_t first[3][3] = {{0}};
  load(json, &c, &t);
  for (int n = 0; n < 3; ++n) {
    for (int i = 0; i < 3; ++i) fa_tensors_poison(&t, gradients[i], FA_POISON_A);
    run(json, &c.problem, &t, (uint64_t)n, 1 + n % 2, kernel);
    for (int i = 0; i < 3; ++i)
      for (int b = 0; b < c.problem.batch; ++b) {
        const uint64_t hash = digest(&c.problem, &t, i, b);
        if (n == 0) first[i][b] = hash;
        CHECK_MSG(hash == first[i][b], "%s: run %d gives another %s", json, n,
                  fa_tensor_id_name(gradients[i]));
      }
  }
  fa_tensors_free(&t);
  fa_case_free(&c);
}

/* Three accumulators for four key blocks. */
#define LONG                                                                                                 \
  "\"heads_q\": 2, \"heads_kv\": 1, \"cu_seqlens_q\": [0, 70, 91], \"cu_seqlens_k\": [0, 400, 700], "        \
  "\"deterministic\": true"

static void check_all_repeats(void) {
  check_repeats("{" LONG ", \"head_dim\": 24, \"softcap\": 3, \"dropout\": {\"p\": 0.3}}", "hopper_backward_f16_32_several");
  check_repeats("{" LONG ", \"head_dim\": 192, \"dtype\": \"bf16\", \"dropout\": {\"p\": 0.3}}",
                "hopper_backward_pair_bf16_192_several");
  check_repeats("{" LONG ", \"head_dim\": 64}", "hopper_backward_f16_64_varlen");
  check_repeats("{" LONG ", \"head_dim\": 96, \"dtype\": \"bf16\", \"dropout\": {\"p\": 0.3}}",
                "hopper_backward_bf16_96_varlen_dropout");
  check_repeats("{" LONG ", \"head_dim\": 128, \"alibi\": {\"slopes\": \"standard\"}}",
                "hopper_backward_f16_128_varlen_alibi");
  check_repeats("{\"batch\": 2, \"seqlen_q\": 70, \"seqlen_k\": 400, \"head_dim\": 96, \"softcap\": 3, "
                "\"deterministic\": true}",
                "hopper_backward_f16_96_varlen_softcap");
  check_repeats("{\"seqlen_q\": 20, \"seqlen_k\": 520, \"head_dim\": 192, \"deterministic\": true}",
                "hopper_backward_pair_f16_192_ordered");
  check_repeats("{\"seqlen_q\": 20, \"seqlen_k\": 520, \"head_dim\": 160, \"dropout\": {\"p\": 0.3}, "
                "\"dtype\": \"bf16\", \"deterministic\": true}",
                "hopper_backward_pair_bf16_192_dropout");
  check_repeats("{\"cu_seqlens_q\": [0, 20, 30], \"cu_seqlens_k\": [0, 400, 410], \"head_dim\": 256, "
                "\"deterministic\": true}",
                "hopper_backward_pair_f16_256_varlen");
}

/* ---- which kernel ---- */

static void check_kernel(const char *json, const char *kernel) {
  fa_case c;
  fa_tensors t;
  load(json, &c, &t);
  run(json, &c.problem, &t, 0, 1, kernel);
  fa_tensors_free(&t);
  fa_case_free(&c);
}

static void check_kernels(void) {
  check_kernel("{\"seqlen_q\": 20, \"head_dim\": 64}", "hopper_backward_f16_64");
  check_kernel("{\"seqlen_q\": 20, \"head_dim\": 64, \"softcap\": 3}", "hopper_backward_f16_64_softcap");
  check_kernel("{\"seqlen_q\": 20, \"head_dim\": 64, \"deterministic\": true}",
               "hopper_backward_f16_64_ordered");
  check_kernel("{\"seqlen_q\": 20, \"head_dim\": 80, \"deterministic\": true}",
               "hopper_backward_f16_96_varlen");
  check_kernel("{\"seqlen_q\": 20, \"head_dim\": 80, \"softcap\": 3}",
               "hopper_backward_f16_96_varlen_softcap");
  check_kernel("{\"seqlen_q\": 20, \"head_dim\": 64, \"softcap\": 3, \"alibi\": {\"slopes\": \"standard\"}}",
               "hopper_backward_f16_64_several");
  check_kernel("{\"seqlen_q\": 20, \"head_dim\": 24}", "hopper_backward_f16_32");
  check_kernel("{\"seqlen_q\": 20, \"head_dim\": 24, \"softcap\": 3}", "hopper_backward_f16_32_several");
  check_kernel("{\"seqlen_q\": 20, \"head_dim\": 64, \"mask\": {\"type\": \"chunk\", \"size\": 8}}", "");
  check_kernel("{\"seqlen_q\": 20, \"head_dim\": 136}", "hopper_backward_pair_f16_192");
  check_kernel("{\"seqlen_q\": 20, \"head_dim\": 200, \"softcap\": 3}",
               "hopper_backward_pair_f16_256_softcap");
  check_kernel("{\"seqlen_q\": 20, \"head_dim\": 200, \"dropout\": {\"p\": 0.3}}",
               "hopper_backward_pair_f16_256_dropout");
  check_kernel("{\"seqlen_q\": 20, \"head_dim\": 192, \"softcap\": 3, \"deterministic\": true}",
               "hopper_backward_pair_f16_192_varlen_softcap");
  check_kernel(
      "{\"cu_seqlens_q\": [0, 20], \"cu_seqlens_k\": [0, 20], \"head_dim\": 192, \"dropout\": {\"p\": "
      "0.3}}",
      "hopper_backward_pair_f16_192_several");
}

int main(void) {
  check_all_neighbours();
  check_several();
  check_all_repeats();
  check_kernels();
  return check_done();
}
